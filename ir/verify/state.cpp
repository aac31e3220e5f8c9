#include <algorithm>
#include <array>

#include "ir/alignment.h"
#include "ir/verify/plan_facts.h"

namespace piper::verify {

namespace {

using dag::Buffer;
using dag::BufferClass;

// Learning rate, corrections and the like, written before each step.
constexpr std::int64_t kScalarBytes = 64;

class State {
 public:
  State(const PlanFacts& plan, const RoleView& view, Reports reports)
      : facts_(plan.facts),
        dag_(facts_.dag),
        view_(view),
        role_(view.role()),
        reports_(reports),
        state_(dag_.buckets.size()) {}

  void check() {
    buffers_of_buckets();
    scalars();
    for (const bool host : {false, true}) front(host);
    for (std::size_t a = 0; a < view_.size() && !reports_.enough(); ++a) {
      if (writes_state(view_.entry(a).kind)) {
        update(a);
      } else if (view_.entry(a).bucket != kNone && dag_.buckets[view_.entry(a).bucket].sharded() &&
                 !copies_to_or_from_host(view_.entry(a).kind)) {
        moved(a);
      }
    }
  }

 private:
  static constexpr std::array kOfBucket = {BufferClass::parameters, BufferClass::gradients,
                                           BufferClass::optimizer};
  // The buffer of each class; kNone: none.
  using OfBucket = std::array<std::uint32_t, kOfBucket.size()>;

  static const char* what(BufferClass cls) {
    return cls == BufferClass::parameters  ? "parameter buffer"
           : cls == BufferClass::gradients ? "gradient buffer"
                                           : "optimizer state";
  }
  std::string_view role_name() const { return facts_.text(role_.name); }
  std::string_view bucket_name(std::uint32_t bucket) const {
    return facts_.text(dag_.buckets[bucket].name);
  }

  /// Bytes of a state: parameters and gradients have the size of the bucket unless they are
  /// sharded, every slot of the optimizer that of this device's shard.
  std::int64_t bytes_of(std::uint32_t bucket, BufferClass cls) const {
    const dag::Bucket& of = dag_.buckets[bucket];
    const std::int64_t elements = bucket_elements(dag_, of), block = elements / shares_of(dag_, of);
    switch (cls) {
      case BufferClass::parameters:
        return parameter_bytes(dag_, of, of.parameters.replicated() ? elements : block);
      case BufferClass::gradients:
        return gradient_bytes(dag_, of, of.gradients.replicated() ? elements : block);
      default: return slots_of(dag_, of) * gradient_bytes(dag_, of, block);
    }
  }

  /// One buffer of a class per bucket.
  void buffers_of_buckets() {
    state_.assign(dag_.buckets.size(), OfBucket{kNone, kNone, kNone});
    for (std::uint32_t b = 0; b < role_.buffers.size() && !reports_.enough(); ++b) {
      const Buffer& buffer = role_.buffers[b];
      // Optimizer state is either on the host or on the device.
      const bool optimizer =
          buffer.cls == BufferClass::optimizer || buffer.cls == BufferClass::offloaded_optimizer;
      const auto found = std::find(kOfBucket.begin(), kOfBucket.end(),
                                   optimizer ? BufferClass::optimizer : buffer.cls);
      if (found == kOfBucket.end()) continue;
      if (!buffer.bucket.valid()) {
        reports_.sink.report(Code::wrong_state, LocId(), "a {} of role `{}` belongs to no bucket",
                             what(buffer.cls), role_name());
        continue;
      }
      const std::uint32_t bucket = buffer.bucket.value();
      if (optimizer && buffer.cls != optimizer_class(dag_.buckets[bucket])) {
        reports_.sink.report(
            Code::wrong_state, LocId(),
            "the optimizer state of bucket `{}` on role `{}` is in the wrong memory",
            bucket_name(bucket), role_name());
        continue;
      }
      std::uint32_t& known = state_[bucket][static_cast<std::size_t>(found - kOfBucket.begin())];
      if (known != kNone) {
        reports_.sink.report(Code::wrong_state, LocId(),
                             "role `{}` has the {} of bucket `{}` twice", role_name(),
                             what(buffer.cls), bucket_name(bucket));
        continue;
      }
      known = b;
      if (buffer.cls != BufferClass::parameters && dag_.frozen(dag_.buckets[bucket])) {
        reports_.sink.report(Code::wrong_frozen, LocId(),
                             "role `{}` has a {} of bucket `{}`, which is frozen", role_name(),
                             what(buffer.cls), bucket_name(bucket));
        continue;
      }
      const std::int64_t wanted = bytes_of(bucket, *found);
      if (buffer.bytes == wanted) continue;
      reports_.sink.report(
          Code::wrong_state, LocId(),
          "the {} of bucket `{}` on role `{}` takes `{}` bytes, and the bucket needs `{}`",
          what(buffer.cls), bucket_name(bucket), role_name(), buffer.bytes, wanted);
    }
  }

  /// The runtime writes the scalars before each step.
  void scalars() {
    for (std::uint32_t b = 0; b < role_.buffers.size(); ++b) {
      if (role_.buffers[b].cls != BufferClass::scalars) continue;
      if (scalars_ != kNone || role_.buffers[b].bytes != kScalarBytes) {
        reports_.sink.report(Code::wrong_state, LocId(),
                             "role `{}` has one buffer of scalars at most, of `{}` bytes",
                             role_name(), kScalarBytes);
        return;
      }
      scalars_ = b;
    }
  }

  /// State shares no bytes, even if no action uses them: padding of a bucket stays zero, so that
  /// reductions and updates may run over the whole bucket. State is the front of the arena, which
  /// the two programs of a rank share, and ends with the scalars.
  void front(bool host) {
    std::vector<const Buffer*> state;
    for (const Buffer& buffer : role_.buffers) {
      if (is_state(buffer.cls) && is_on_host(buffer.cls) == host) state.push_back(&buffer);
    }
    if (state.empty()) return;
    std::sort(state.begin(), state.end(),
              [](const Buffer* a, const Buffer* b) { return a->offset < b->offset; });
    const auto bucket = std::find_if(state.rbegin(), state.rend(), [](const Buffer* each) {
      return each->cls != BufferClass::scalars;
    });
    for (std::size_t i = 1; i < state.size(); ++i) {
      if (state[i]->offset < state[i - 1]->offset + state[i - 1]->bytes)
        return shared(*state[i], *state[i - 1], "shares bytes with");
    }
    const std::int64_t front = bucket != state.rend() ? (*bucket)->offset + (*bucket)->bytes : 0,
                       end = state.back()->offset + state.back()->bytes;
    for (const Buffer& buffer : role_.buffers) {
      const bool scalars = buffer.cls == BufferClass::scalars;
      if (is_on_host(buffer.cls) != host || (is_state(buffer.cls) && !scalars) ||
          buffer.offset >= end)
        continue;
      const auto under = std::find_if(state.begin(), state.end(), [&](const Buffer* each) {
        return each != &buffer && buffer.offset < each->offset + each->bytes &&
               each->offset < buffer.offset + buffer.bytes;
      });
      if (under != state.end()) return shared(buffer, **under, "shares bytes with");
      if (!scalars || buffer.offset < front)
        return shared(buffer, scalars ? **bucket : *state.back(), "stands before");
    }
  }

  void shared(const Buffer& buffer, const Buffer& state, const char* how) {
    const std::string of = state.bucket.valid()
                               ? "the " + std::string(what(state.cls)) + " of bucket `" +
                                     std::string(bucket_name(state.bucket.value())) + "`"
                               : "the scalars";
    reports_.sink.report(
        Code::wrong_state, LocId(),
        "a buffer of role `{}` at `{}` with `{}` bytes {} {} at `{}` with `{}`: state has the front of the arena for itself",
        role_name(), buffer.offset, buffer.bytes, how, of, state.offset, state.bytes);
  }

  /// An update runs over its bucket as a whole: parameters, gradients and slots have the same
  /// element offsets.
  void update(std::size_t a) {
    const RoleView::Entry& entry = view_.entry(a);
    const dag::Action& action = role_.actions[a];
    const LocId loc = facts_.loc(action.node);
    const OfBucket& state = state_[entry.bucket];
    for (std::size_t k = 0; k < kOfBucket.size(); ++k) {
      if (state[k] != kNone || (kOfBucket[k] == BufferClass::optimizer &&
                                slots_of(dag_, dag_.buckets[entry.bucket]) == 0))
        continue;
      reports_.sink.report(Code::wrong_state, loc,
                           "role `{}` updates bucket `{}` and has no {} for it", role_name(),
                           bucket_name(entry.bucket), what(kOfBucket[k]));
    }
    if (scalars_ == kNone)
      reports_.sink.report(Code::wrong_state, loc,
                           "role `{}` updates bucket `{}` and has no buffer of scalars",
                           role_name(), bucket_name(entry.bucket));
    const dag::Bucket& bucket = dag_.buckets[entry.bucket];
    const auto inputs = static_cast<std::uint32_t>(view_.ports(a).size());
    if (lies_flat(action, entry.bucket, 0, inputs, bucket.gradients.replicated(), true, state[1]))
      lies_flat(action, entry.bucket, inputs, entry.num_outputs, bucket.parameters.replicated(),
                false, state[0]);
  }

  /// Collectives and sums of squares of a sharded bucket run over it with its padding, from its
  /// first value on.
  void moved(std::size_t a) {
    const RoleView::Entry& entry = view_.entry(a);
    const dag::Action& action = role_.actions[a];
    const dag::Bucket& bucket = dag_.buckets[entry.bucket];
    const auto inputs = static_cast<std::uint32_t>(view_.ports(a).size());
    const bool gathers = gathers_shards(entry.kind), scatters = reduces_to_shards(entry.kind);
    if (!lies_flat(action, entry.bucket, 0, inputs,
                   scatters || (gathers ? bucket.parameters : bucket.gradients).replicated(),
                   !gathers, kNone))
      return;
    const bool values = gathers || reduces_members(entry.kind);  // else the sums of squares
    if (values)
      lies_flat(action, entry.bucket, inputs, entry.num_outputs,
                gathers || bucket.gradients.replicated(), !gathers, kNone);
  }

  /// Operands of an action from `first` on, one per parameter of the bucket or one for its shard,
  /// have the offsets of the bucket, in that buffer; kNone: in any one. `wide`: as gradients. Other
  /// operands may follow.
  bool lies_flat(const dag::Action& action, std::uint32_t of, std::uint32_t first,
                 std::uint32_t count, bool whole, bool wide, std::uint32_t buffer) {
    const dag::Bucket& bucket = dag_.buckets[of];
    std::int64_t at = 0;
    for (std::uint32_t i = 0;
         i < std::min<std::uint32_t>(count,
                                     whole ? static_cast<std::uint32_t>(bucket.params.size()) : 1);
         ++i) {
      const dag::Operand& operand = role_.operands[action.first_operand + first + i];
      if (buffer == kNone) buffer = operand.buffer.value();
      if (operand.buffer.value() != buffer ||
          operand.offset !=
              (wide ? gradient_bytes(dag_, bucket, at) : parameter_bytes(dag_, bucket, at))) {
        reports_.sink.report(
            Code::wrong_state, facts_.loc(action.node),
            "`{}` has parameter `{}` or its gradient elsewhere than `{}` elements into the buffers of its bucket",
            facts_.name(action.node), facts_.text(dag_.params[bucket.params[i].index()].name), at);
        return false;
      }
      at += whole_elements(dag_, bucket.params[i]);
    }
    return true;
  }

  const Facts& facts_;
  const Dag& dag_;
  const RoleView& view_;
  const dag::Role& role_;
  Reports reports_;
  std::vector<OfBucket> state_;  // per bucket
  std::uint32_t scalars_ = kNone;
};

}  // namespace

void check_state(const PlanFacts& plan, const RoleView& view, Reports reports) {
  State(plan, view, reports).check();
}

void check_live_bytes(const PlanFacts& plan, const RoleView& view, Reports reports) {
  const Facts& facts = plan.facts;
  const dag::Role& role = view.role();
  const std::size_t actions = role.actions.size();
  // Walking backwards, by buffer: the action that named it last.
  std::vector<std::uint32_t> seen(role.buffers.size(), kNone);
  // of the live bytes, at the start of an action
  std::vector<std::int64_t> change(actions + 1, 0);
  for (std::uint32_t a = static_cast<std::uint32_t>(actions); a-- > 0;) {
    for (const dag::Operand& operand :
         std::span(role.operands)
             .subspan(role.actions[a].first_operand, role.actions[a].num_operands)) {
      const Buffer& buffer = role.buffers[operand.buffer.index()];
      std::uint32_t& known = seen[operand.buffer.index()];
      if (known == a) continue;
      if (is_on_host(buffer.cls)) {
        known = a;
        continue;
      }
      if (is_state(buffer.cls)) continue;
      const bool workspace = buffer.cls == BufferClass::workspace;
      if (workspace || known == kNone) change[a + 1] -= aligned(buffer.bytes);
      if (workspace) change[a] += aligned(buffer.bytes);
      known = a;
    }
  }
  std::int64_t bytes = 0, end = 0, host_end = 0;
  for (std::uint32_t b = 0; b < role.buffers.size(); ++b) {
    const Buffer& buffer = role.buffers[b];
    std::int64_t& end_of_arena = is_on_host(buffer.cls) ? host_end : end;
    end_of_arena = std::max(end_of_arena, buffer.offset + aligned(buffer.bytes));
    if (is_state(buffer.cls)) {
      if (!is_on_host(buffer.cls)) bytes += aligned(buffer.bytes);
    } else if (seen[b] == kNone) {
      reports.sink.report(Code::wrong_live_bytes, LocId(),
                          "no action of role `{}` names its buffer at `{}` with `{}` bytes",
                          facts.text(role.name), buffer.offset, buffer.bytes);
      return;
    } else if (buffer.cls != BufferClass::workspace && !is_on_host(buffer.cls)) {
      change[seen[b]] += aligned(buffer.bytes);
    }
  }
  if (role.arena_bytes != end) {
    reports.sink.report(Code::wrong_live_bytes, LocId(),
                        "role `{}` has an arena of `{}` bytes, and its buffers end at `{}`",
                        facts.text(role.name), role.arena_bytes, end);
    return;
  }
  if (role.host_bytes != host_end) {
    reports.sink.report(
        Code::wrong_live_bytes, LocId(),
        "role `{}` has an arena of `{}` bytes in the memory of the host, and its buffers end at `{}`",
        facts.text(role.name), role.host_bytes, host_end);
    return;
  }
  std::int64_t most = bytes;
  std::size_t where = actions;
  for (std::size_t a = 0; a < actions; ++a) {
    bytes += change[a];
    if (bytes <= most) continue;
    most = bytes;
    where = a;
  }
  if (most == role.live_bytes) return;
  const LocId loc = where == actions ? LocId() : facts.loc(role.actions[where].node);
  auto report = reports.sink.report(Code::wrong_live_bytes, loc,
                                    "role `{}` says that `{}` bytes are live at most, and `{}` do",
                                    facts.text(role.name), role.live_bytes, most);
  if (where != actions)
    report.related(loc, "so many live while `{}` runs", facts.name(role.actions[where].node));
}

}  // namespace piper::verify
