#include "passes/transform/place.h"

#include <algorithm>

#include "ir/dag/segment_text.h"
#include "llvm/ADT/DenseSet.h"
#include "passes/selectors/select.h"
#include "passes/transform/buckets.h"
#include "passes/transform/idle_devices.h"

namespace piper::passes {

using namespace dag;

namespace {

struct Rule {
  const directive::Place* place = nullptr;
  const directive::Selector* selector = nullptr;
  DeviceSetId devices;
  LocId loc() const { return directive::narrowest(selector->loc, place->loc); }
  bool holds_over(const Rule& other) const {
    return directive::holds_over(*place, *selector, *other.place, *other.selector);
  }
};

constexpr std::uint32_t kNoRule = 0xFFFFFFFFu;

class Placer {
 public:
  Placer(Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink)
      : dag_(dag), strategy_(strategy), sink_(sink), selection_(dag) {}
  bool run();
  Places places();

 private:
  void collect();
  bool decide();
  DeviceSetId place_of(std::size_t at, Pass pass) const;
  Pass placed_as(const Node& node);
  bool apply(std::uint32_t rule, Pass pass, std::vector<std::uint32_t>& table);
  bool check_halves();
  bool check_complete() const;
  void report_without_effect();
  void report_idle_devices();
  bool finish();
  DeviceSetId canonical(DeviceSetId devices);

  Dag& dag_;
  const directive::Strategy& strategy_;
  DiagnosticSink& sink_;
  Selection selection_;
  std::vector<Rule> rules_;
  NodePolls polls_{dag_.context->cancellation};
  // Rule per (chunk, instance); empty if no rule names the pass.
  std::vector<std::uint32_t> by_pass_[kPasses];
};

/// On an axis with one device a fixed coordinate and the whole axis are the same set; stored as
/// whole, so that equal sets compare equal.
DeviceSetId Placer::canonical(DeviceSetId devices) {
  DeviceSet set = dag_.device_sets[devices];
  for (std::size_t i = 0; i < set.at.size(); ++i) {
    if (dag_.mesh.axes[i].size == 1) set.at[i] = DeviceSet::kWhole;
  }
  return dag_.device_sets.intern(set);
}

void Placer::collect() {
  for (const directive::Directive& directive : strategy_.directives) {
    const auto* place = std::get_if<directive::Place>(&directive);
    if (place == nullptr) continue;
    const DeviceSetId devices = canonical(place->devices);
    for (const directive::Selector& target : place->targets) {
      rules_.push_back({place, &target, devices});
    }
  }
}

bool Placer::apply(std::uint32_t number, Pass pass, std::vector<std::uint32_t>& table) {
  const Rule& rule = rules_[number];
  const std::optional<Selection::Found> found = selection_.find(*rule.selector, sink_);
  if (!found) return false;
  polls_.visit(found->chunks.size() * found->instances.size());
  bool good = true;
  if (table.empty()) table.assign(dag_.chunks.size() * selection_.instances().size(), kNoRule);
  for (const ChunkId chunk : found->chunks) {
    for (const std::uint32_t instance : found->instances) {
      std::uint32_t& entry = table[chunk.index() * selection_.instances().size() + instance];
      if (entry == kNoRule || rule.holds_over(rules_[entry])) {
        entry = number;
        continue;
      }
      const Rule& other = rules_[entry];
      if (other.holds_over(rule) || other.devices == rule.devices || !good) continue;
      sink_
          .report(
              Code::placed_twice, rule.loc(),
              "`{}` is placed on `{}` here and on `{}` elsewhere, by selectors with equally many coordinates",
              std::string(pass_name(pass)) + " " + region_text(dag_, chunk),
              dag_.text(rule.devices), dag_.text(other.devices))
          .related(other.place->loc, "`{}` is placed on `{}` here",
                   print_selector(*other.selector, dag_.context->symbols), dag_.text(other.devices))
          .hint("remove one of the two, or add a coordinate to the one that shall hold");
      good = false;
    }
  }
  return good;
}

/// A place of `BI` or `BW` has an effect only if an order splits the backward. It is legal if some
/// of its work is split, or if a narrower one overrides it.
bool Placer::check_halves() {
  llvm::DenseSet<LocId> reported;  // a loop may reach the same line again
  for (const Rule& rule : rules_) {
    const std::optional<Pass> pass = rule.selector->pass;
    if (pass != Pass::BI && pass != Pass::BW) continue;
    const std::optional<Selection::Found> found = selection_.find(*rule.selector);
    const bool any = std::any_of(found->chunks.begin(), found->chunks.end(), [&](ChunkId chunk) {
      return std::any_of(found->instances.begin(), found->instances.end(),
                         [&](std::uint32_t instance) {
                           return selection_.work().at(chunk, *pass, instance).valid();
                         });
    });
    const LocId loc = rule.loc();
    if (any || !reported.insert(loc).second) continue;
    directive::Selector whole = *rule.selector;
    whole.pass = Pass::B;
    report_missing_pass(sink_, loc, print_selector(*rule.selector, dag_.context->symbols), *pass,
                        "place `" + print_selector(whole, dag_.context->symbols) +
                            "`, or name `BI` and `BW` of this work in an order");
  }
  return reported.empty();
}

bool Placer::check_complete() const {
  constexpr std::size_t kShown = 4;
  struct Nowhere {
    std::string region, instance;  // in the words of a selector
    LocId loc;
    std::string text() const { return region + instance; }
  };
  std::vector<Nowhere> nowhere;
  bool complete = true;
  for (std::size_t c = 0; c < dag_.chunks.size(); ++c) {
    std::uint32_t missing = 0, first = 0;
    const auto is_missing = [&](std::uint32_t i) {
      return by_pass_[0].empty() || by_pass_[0][c * selection_.instances().size() + i] == kNoRule;
    };
    for (std::uint32_t i = selection_.instances().size(); i-- > 0;) {
      if (is_missing(i)) {
        ++missing;
        first = i;
      }
    }
    if (missing == 0) continue;
    complete = false;
    const Chunk& chunk = dag_.chunks[c];
    Nowhere work{region_text(dag_, chunk), {}, chunk.loc};
    if (missing < selection_.instances().size()) {
      const Instance instance = selection_.instances().at(first);
      for (std::size_t d = 0; d < dag_.dims.size(); ++d) {
        // A dimension is left out if every index is missing: `stage[0] copy[1]` means all
        // microbatches of that copy.
        Instance other = instance;
        bool all = true;
        for (other.at[d] = 0; all && other.at[d] < static_cast<std::int32_t>(dag_.dims[d].extent);
             ++other.at[d])
          all = is_missing(selection_.instances().position(other));
        if (!all)
          work.instance += " " + std::string(dag_.context->text(dag_.dims[d].name)) + "[" +
                           std::to_string(instance.at[d]) + "]";
      }
    }
    const bool reported = std::any_of(nowhere.begin(), nowhere.end(), [&](const Nowhere& known) {
      return known.text() == work.text();
    });
    if (!reported) nowhere.push_back(std::move(work));
  }
  if (nowhere.empty()) return complete;
  std::string list;
  for (std::size_t i = 0; i < std::min(kShown, nowhere.size()); ++i)
    list += (i == 0 ? "`" : ", `") + nowhere[i].text() + "`";
  if (nowhere.size() > kShown) list += " and " + std::to_string(nowhere.size() - kShown) + " more";
  auto builder = sink_.report(
      Code::placed_nowhere, rules_.front().place->loc,
      "work of {} is placed nowhere; with a `place` in the program every region needs one", list);
  for (std::size_t i = 0; i < std::min(kShown, nowhere.size()); ++i)
    builder.related(nowhere[i].loc, "`{}` starts here", nowhere[i].region);
  builder.hint("add `place {} on ...`", nowhere.front().text());
  return false;
}

/// Reports a line (all of its repetitions in a loop) that other lines of its own schedule override
/// for all of its work.
void Placer::report_without_effect() {
  llvm::DenseSet<LocId> effective;
  for (const std::vector<std::uint32_t>& table : by_pass_) {
    for (const std::uint32_t rule : table) {
      if (rule != kNoRule) effective.insert(rules_[rule].loc());
    }
  }
  for (const Rule& rule : rules_) {
    if (effective.contains(rule.loc())) continue;
    const std::optional<Selection::Found> found = selection_.find(*rule.selector);
    const Pass pass = rule.selector->pass.value_or(Pass::F);
    const std::vector<std::uint32_t>& table = by_pass_[static_cast<std::size_t>(pass)];
    const Rule* other = nullptr;
    for (const ChunkId chunk : found->chunks) {
      for (const std::uint32_t instance : found->instances) {
        const Rule& holds = rules_[table[chunk.index() * selection_.instances().size() + instance]];
        if (other == nullptr || holds.place->depth < other->place->depth) other = &holds;
      }
    }
    if (other->place == rule.place) continue;  // it names the work twice
    if (!rule.loc().valid() || other->place->depth != rule.place->depth ||
        !effective.insert(rule.loc()).second)
      continue;
    sink_
        .report(Code::place_without_effect, rule.loc(),
                "this `place` has no effect: another line applies to all of `{}`",
                print_selector(*rule.selector, dag_.context->symbols))
        .related(other->place->loc, "`{}` is placed on `{}` here",
                 print_selector(*other->selector, dag_.context->symbols), dag_.text(other->devices))
        .hint("leave the line out, or name the work that it is for");
  }
}

void Placer::report_idle_devices() {
  if (!dag_.settings.data) return;  // the mesh of a schedule by itself is no choice of the user
  const std::vector<std::uint64_t> idle = idle_devices(dag_);
  if (idle.empty()) return;
  sink_
      .report(Code::devices_without_work, rules_.front().loc(),
              "{} of {} devices {} no work: nothing is placed on {}", idle.size(),
              dag_.mesh.devices(), idle.size() == 1 ? "has" : "have", idle_devices_text(dag_, idle))
      .related(dag_.mesh.loc, "the mesh has {} devices", dag_.mesh.devices())
      .hint("place work on them, or make the mesh smaller");
}

bool Placer::run() {
  collect();
  if (rules_.empty()) {
    const DeviceSetId everything = dag_.device_sets.intern(
        {std::vector<std::int32_t>(dag_.mesh.axes.size(), DeviceSet::kWhole)});
    for (Node& node : dag_.nodes) node.devices = everything;
    return finish();
  }
  if (!decide() || !check_halves() || !check_complete()) return false;
  report_without_effect();
  NodePolls polls(dag_.context->cancellation);
  for (Node& node : dag_.nodes) {
    polls.visit();
    if (runs_body(node.kind))
      node.devices = place_of(node.chunk.index() * selection_.instances().size() +
                                  selection_.instances().position(node.instance),
                              placed_as(node));
  }
  report_idle_devices();
  return finish();
}

/// An `R` runs on the devices of its backward.
Pass Placer::placed_as(const Node& node) {
  if (node.pass != Pass::R) return node.pass;
  return selection_.work()
                 .at(node.chunk, Pass::B, selection_.instances().position(node.instance))
                 .valid()
             ? Pass::B
             : Pass::BI;
}

/// The rule that applies to every pass, chunk and instance.
bool Placer::decide() {
  bool good = true;
  for (std::uint32_t r = 0; r < rules_.size(); ++r) {
    const std::optional<Pass> pass = rules_[r].selector->pass;
    if (!pass || *pass == Pass::F) {
      good = apply(r, Pass::F, by_pass_[0]) && good;
    } else if (*pass == Pass::B) {
      for (const Pass part : {Pass::B, Pass::BI, Pass::BW})
        good = good && apply(r, part, by_pass_[static_cast<std::size_t>(part)]);
    } else {
      good = apply(r, *pass, by_pass_[static_cast<std::size_t>(*pass)]) && good;
    }
  }
  return good;
}

DeviceSetId Placer::place_of(std::size_t at, Pass pass) const {
  const auto rule = [&](Pass each) {
    const std::vector<std::uint32_t>& table = by_pass_[static_cast<std::size_t>(each)];
    return table.empty() ? kNoRule : table[at];
  };
  const std::uint32_t forward = rule(Pass::F);
  std::uint32_t own = rule(pass) == kNoRule ? forward : rule(pass);
  // A line of the caller without a pass applies to the backward too, and overrides lines of the
  // schedule for it.
  if (own != forward && forward != kNoRule && !rules_[forward].selector->pass &&
      rules_[forward].place->depth < rules_[own].place->depth)
    own = forward;
  return own == kNoRule ? DeviceSetId() : rules_[own].devices;
}

Places Placer::places() {
  Places places;
  for (std::vector<DeviceSetId>& of_pass : places)
    of_pass.resize(dag_.chunks.size() * selection_.instances().size());
  collect();
  decide();
  for (const Pass pass : kAllPasses) {
    std::vector<DeviceSetId>& of_pass = places[static_cast<std::size_t>(pass)];
    for (std::size_t at = 0; at < of_pass.size(); ++at) of_pass[at] = place_of(at, pass);
  }
  return places;
}

/// Owners follow from devices. `replicate` completes the level when it shards the samples.
bool Placer::finish() {
  const std::vector<BucketRules> rules(dag_.chunks.size());
  return make_buckets(dag_, rules, sink_);
}

}  // namespace

Places places_of(Dag& dag, const directive::Strategy& strategy) {
  DiagnosticSink unread(dag.context->locations);
  return Placer(dag, strategy, unread).places();
}

bool place(Dag& dag, const directive::Strategy& strategy, DiagnosticSink& sink) {
  return Placer(dag, strategy, sink).run();
}

}  // namespace piper::passes
