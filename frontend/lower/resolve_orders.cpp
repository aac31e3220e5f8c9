// Orders, evaluated when the placement that holds is known: they may ask what a rank holds, and an order beside a schedule's call replaces the schedule's.

#include <algorithm>
#include <numeric>

#include "frontend/lower/schedule_builder.h"
#include "ir/diagnostics/suggestion.h"

namespace piper::lower {
namespace {

/// How many devices both have.
std::uint64_t common_devices(const DeviceSet& a, const DeviceSet& b, const Mesh& mesh) {
  std::uint64_t count = 1;
  for (std::size_t i = 0; i < mesh.axes.size(); ++i) {
    const bool whole = a.at[i] == DeviceSet::kWhole && b.at[i] == DeviceSet::kWhole;
    if (a.at[i] != DeviceSet::kWhole && b.at[i] != DeviceSet::kWhole && a.at[i] != b.at[i]) return 0;
    if (whole) count *= mesh.axes[i].size;
  }
  return count;
}

/// What `held` is asked of each target of a `place`.
enum class Answer : std::uint8_t { no, yes, depends };

const directive::Coordinate* coordinate(const directive::Selector& selector, Symbol name) {
  const auto found = std::find_if(selector.coordinates.begin(), selector.coordinates.end(), [&](const auto& c) { return c.name == name && !c.rest; });
  return found == selector.coordinates.end() ? nullptr : &*found;
}

}  // namespace

bool ScheduleBuilder::claimed_beside(const DeviceSet& claim) const {
  if (evaluating_ == nullptr) return false;
  const std::uint32_t scope = entries_[evaluating_->entry].scope;
  std::uint64_t claimed = 0;  // the claims of orders that hold have no device twice
  for (const Claim& outer : claims_) {
    if (outer.scope == scope || !encloses(outer.scope, scope)) continue;
    claimed += common_devices(outer.devices, claim, *evaluator_->mesh);
  }
  return claimed > 0 && claimed >= claim.devices(*evaluator_->mesh);
}

void ScheduleBuilder::note_claim(const DeviceSet& claim) {
  if (evaluating_ != nullptr) claims_.push_back({claim, entries_[evaluating_->entry].scope});
}

void ScheduleBuilder::leave_out_claimed(OrderValue& value) const {
  for (std::size_t i = value.order.ranks.size(); i-- > 0;) {
    if (!claimed_beside((*evaluator_->device_sets)[value.order.ranks[i].devices])) continue;
    value.order.ranks.erase(value.order.ranks.begin() + static_cast<std::ptrdiff_t>(i));
    std::erase_if(value.pending, [&](const PendingGradient& pending) { return pending.rank == i; });
    for (PendingGradient& pending : value.pending) pending.rank -= pending.rank > i ? 1 : 0;
  }
}

std::optional<OrderValue> ScheduleBuilder::evaluate_order(const ast::OrderStmt& stmt, Frame& frame) {
  // An order walks through what the cuts make: without their extents its mistakes would be theirs.
  if (lacks_extents_) evaluator_->set_failed();
  if (evaluator_->failed()) return std::nullopt;
  OrderValue value;
  if (stmt.value) {
    Value order = evaluator_->eval(*stmt.value, frame);
    if (evaluator_->failed()) return std::nullopt;
    value = unshare<OrderValue>(std::move(order));
    leave_out_claimed(value);
  } else {
    OrderBuilder builder(*evaluator_);
    OrderBuilder* const outer = std::exchange(evaluator_->order, &builder);
    evaluator_->execute(*stmt.body, frame);
    evaluator_->order = outer;
    if (evaluator_->failed()) return std::nullopt;
    value = builder.take();
  }
  // A block is shown by its first word.
  const std::uint32_t end = stmt.value ? stmt.range.end : stmt.range.begin + static_cast<std::uint32_t>(std::string_view("order").size());
  value.order.loc = evaluator_->here({stmt.range.file, stmt.range.begin, end}, frame);
  if (!value.pending.empty()) {
    const PendingGradient& first = value.pending.front();
    std::string text;
    for (std::uint32_t c = 0; c < first.op.num_coordinates; ++c) {
      const directive::OrderCoordinate& at = value.order.coordinates[first.op.first_coordinate + c];
      text += directive::coordinate_text(evaluator_->context().text(at.name), at.rest, c == 0);
      if (!at.all) text += "[" + std::to_string(at.index) + "]";
    }
    evaluator_
        ->fail_at(Code::weight_gradients_left, first.op.loc, "{} weight gradient{} still pending when the order ends, the oldest is `BW {}`",
                value.pending.size(), value.pending.size() == 1 ? " is" : "s are", text)
        .related(value.order.loc, "the order is applied here")
        .hint("end the rank with `repeat left(BW) { BW }`");
    note_missing(stmt);
    leave_out_ranks_of(value, 0);
    evaluator_->resume();
  }
  return value;
}

void ScheduleBuilder::evaluate_orders() {
  const auto depth = [&](const PostponedOrder& order) {
    std::size_t depth = 0;
    for (std::uint32_t scope = entries_[order.entry].scope; scope != 0; scope = parents_[scope]) ++depth;
    return depth;
  };
  std::stable_sort(orders_.begin(), orders_.end(), [&](const auto& a, const auto& b) { return depth(a) < depth(b); });
  for (PostponedOrder& order : orders_) {
    if (evaluator_->failed()) break;
    evaluating_ = &order;
    Entry& entry = entries_[order.entry];
    std::optional<OrderValue> value;
    if (!evaluator_->run_postponed(order.in_function, [&] { value = evaluate_order(*order.stmt, order.frame); })) {
      note_missing(*order.stmt);
      note_claim({std::vector<std::int32_t>(evaluator_->mesh->axes.size(), DeviceSet::kWhole)});  // any of them
    }
    if (value) {
      const bool stands_alone = std::none_of(claims_.begin(), claims_.end(), [&](const Claim& outer) { return outer.scope != entry.scope && encloses(outer.scope, entry.scope); });
      for (const directive::RankSteps& rank : value->order.ranks) note_claim((*evaluator_->device_sets)[rank.devices]);
      entry.replaced = value->order.ranks.empty() && !stands_alone;
      entry.directive = std::move(value->order);
    }
    evaluating_ = nullptr;
  }
  orders_.clear();
}

Value ScheduleBuilder::held(const ast::CallExpr& call, const directive::Selector& work, const DeviceSet& devices, Frame& frame) {
  if (evaluating_ == nullptr) {
    evaluator_->fail(Code::placement_not_known, call.range, frame, "what a rank holds is known in an `order` only, when the placement that holds is")
        .hint("call `held` in the steps of an `order`, and give `order` the call that makes them: `order ranks(p, m)`");
    return {};
  }
  const std::span<const directive::Coordinate> asked = work.coordinates;
  const auto family = std::find_if(asked.begin(), asked.end(), [](const directive::Coordinate& c) { return c.all; });
  const directive::Partition* made = nullptr;
  std::vector<std::string_view> names;
  for (const Entry& entry : entries_) {
    const auto* partition = entry.replaced ? nullptr : std::get_if<directive::Partition>(&entry.directive);
    if (partition == nullptr) continue;
    names.push_back(evaluator_->context().text(partition->into.name));
    if (family != asked.end() && partition->into.name == family->name) made = partition;
  }
  const directive::Missing& missing = strategy_->missing;
  if (missing.unknown || missing.place || !missing.names.empty()) {
    evaluator_->set_failed();
    return {};
  }
  if (made == nullptr || work.pass || work.part != directive::Part::none) {
    const std::string_view best = family == asked.end() ? std::string_view() : nearest_name(evaluator_->context().text(family->name), names);
    evaluator_->fail(Code::selector_not_allowed, call.range, frame, "`held` lists the indices of what a `partition` makes, and `{}` is no name of one", ast::source_text(*call.args[0].value))
        .hint("write {}", best.empty() ? "its name without an index, as in `held(stage, p[r])`" : "`" + std::string(best) + "`");
    return {};
  }
  if (!evaluator_->step(call.range, frame, entries_.size() / 8 + 1)) return {};

  const auto answer = [&](const directive::Selector& target, Symbol& other) {
    const directive::Coordinate* mine = coordinate(target, made->into.name);
    if (mine == nullptr && !target.coordinates.empty()) return Answer::no;
    Answer all = target.pass ? Answer::depends : Answer::yes;
    for (const directive::Coordinate& c : target.coordinates) {
      if (c.rest) return Answer::no;  // loose work beside what the partition made
      if (&c == mine || c.all) continue;
      const directive::Coordinate* given = coordinate(work, c.name);
      const bool meets = given != nullptr && std::any_of(given->indices.begin(), given->indices.end(), [&](std::uint32_t i) {
        return std::find(c.indices.begin(), c.indices.end(), i) != c.indices.end();
      });
      if (given != nullptr && !meets) return Answer::no;
      const bool whole = given != nullptr && std::all_of(given->indices.begin(), given->indices.end(), [&](std::uint32_t i) {
        return std::find(c.indices.begin(), c.indices.end(), i) != c.indices.end();
      });
      if (whole) continue;
      other = c.name;
      all = Answer::depends;
    }
    return all;
  };
  std::vector<std::uint32_t> indices;
  for (const Entry& entry : entries_) {
    const auto* place = entry.replaced ? nullptr : std::get_if<directive::Place>(&entry.directive);
    if (place == nullptr || !(*evaluator_->device_sets)[place->devices].intersects(devices)) continue;
    for (const directive::Selector& target : place->targets) {
      Symbol other;
      const Answer holds = answer(target, other);
      if (holds == Answer::no) continue;
      if (entry.scope != entries_[evaluating_->entry].scope && !held_beside_.valid()) held_beside_ = place->loc;
      if (holds == Answer::depends) {
        const std::string on = other.valid() ? "`" + std::string(evaluator_->context().text(other)) + "`" : "the pass";
        evaluator_->fail(Code::held_depends, call.range, frame, "where `{}` runs depends on {}, and this `held` asks for all of it", evaluator_->context().text(made->into.name), on)
            .related(place->loc, "it is placed here")
            .hint("write an `order` for this placement beside the call: it replaces the schedule's own");
        return {};
      }
      const directive::Coordinate* mine = coordinate(target, made->into.name);
      if (mine != nullptr && !mine->all) {
        indices.insert(indices.end(), mine->indices.begin(), mine->indices.end());
      } else {
        indices.resize(indices.size() + made->into.extent);
        std::iota(indices.end() - made->into.extent, indices.end(), 0u);
      }
    }
  }
  std::sort(indices.begin(), indices.end());
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  Values values;
  for (const std::uint32_t index : indices) values.push_back(Value(std::int64_t{index}));
  return share(std::move(values));
}

}  // namespace piper::lower
