// The parts of a partition with their ranks, for `greedy` and `search`.

#include <algorithm>
#include <map>

#include "frontend/lower/schedule/schedule_builder.h"
#include "ir/diagnostics/counted.h"

namespace piper::lower {

using directive::Coordinate;
using directive::NamedExtent;

namespace {

/// A target of a `place`, as conditions on part and instance.
struct Target {
  const directive::Place* place = nullptr;
  const directive::Selector* selector = nullptr;
  const Coordinate* part = nullptr;                             // null: all parts
  std::vector<std::pair<std::size_t, const Coordinate*>> dims;  // position of the dimension

  bool holds(std::span<const std::uint32_t> instance) const {
    return std::all_of(dims.begin(), dims.end(), [&](const auto& condition) {
      const auto& indices = condition.second->indices;
      return std::find(indices.begin(), indices.end(), instance[condition.first]) != indices.end();
    });
  }
};

/// The target as conditions; nothing if it names other work than whole parts.
std::optional<Target> read(const directive::Place& place, const directive::Selector& selector,
                           const NamedExtent& part, std::span<const NamedExtent> dims) {
  Target target{&place, &selector, nullptr, {}};
  if (selector.pass || selector.part != directive::CommClass::none) return std::nullopt;
  for (const Coordinate& c : selector.coordinates) {
    const auto dim = std::find_if(dims.begin(), dims.end(),
                                  [&](const NamedExtent& known) { return known.name == c.name; });
    if (!c.rest && dim != dims.end()) {
      if (!c.all) target.dims.emplace_back(static_cast<std::size_t>(dim - dims.begin()), &c);
    } else if (!c.rest && c.name == part.name && target.part == nullptr) {
      target.part = &c;
    } else {
      return std::nullopt;
    }
  }
  return target;
}

}  // namespace

std::optional<orders::PlacedParts> ScheduleBuilder::placed_parts(const ast::CallExpr& call,
                                                                 std::string_view name,
                                                                 Frame& frame) {
  const std::optional<orders::Facts> known = facts(call, name, frame);
  if (!known) return std::nullopt;
  if (known->parts.size() != 1) {
    evaluator_
        ->fail(Code::work_does_not_move, call.range, frame,
               "`{}` orders the parts of one `partition`, and this schedule has {}", name,
               counted(known->parts.size(), "partition"))
        .hint("write the order with `rank`, or leave it out for the default one");
    return std::nullopt;
  }
  orders::PlacedParts work;
  work.part = known->parts.front();
  work.dims = known->dims;
  std::vector<Target> targets;
  for (const Entry& entry : entries_) {
    if (const auto* split = std::get_if<directive::Split>(&entry.directive);
        split != nullptr && !entry.replaced && !split->targets.empty()) {
      evaluator_
          ->fail(Code::work_does_not_move, call.range, frame,
                 "`{}` orders a batch that is split in one way", name)
          .related(split->loc, "this splits a part of the work");
      return std::nullopt;
    }
    const auto* place = std::get_if<directive::Place>(&entry.directive);
    if (place == nullptr) continue;
    for (const directive::Selector& selector : place->targets) {
      std::optional<Target> target = read(*place, selector, work.part, work.dims);
      if (!target) {
        evaluator_
            ->fail(Code::work_does_not_move, call.range, frame,
                   "`{}` orders whole parts of the partition, and other work is placed", name)
            .related(selector.loc, "this is no part of it in all passes")
            .hint("write the order with `rank`, or leave it out for the default one");
        return std::nullopt;
      }
      targets.push_back(std::move(*target));
    }
  }
  std::stable_sort(targets.begin(), targets.end(), [](const Target& a, const Target& b) {
    return directive::holds_over(*a.place, *a.selector, *b.place, *b.selector);
  });
  std::vector<std::vector<const Target*>> of_part(work.part.extent);
  std::size_t looked_at = 0;
  const auto add = [&](std::uint32_t part, const Target& target) {
    if (part >= of_part.size()) return;
    of_part[part].push_back(&target);
    ++looked_at;
  };
  for (const Target& target : targets) {
    if (target.part != nullptr && !target.part->all) {
      for (const std::uint32_t part : target.part->indices) add(part, target);
    } else {
      for (std::uint32_t part = 0; part < of_part.size(); ++part) add(part, target);
    }
    if (!evaluator_->step(call.range, frame, looked_at / 8 + 1)) return std::nullopt;
  }

  std::uint64_t instances = 1;
  for (const NamedExtent& dim : work.dims) instances *= dim.extent;  // bounded by `take`
  std::map<DeviceSetId, std::uint32_t> ranks;
  DeviceSetIndex apart;
  std::vector<std::uint32_t> instance(work.dims.size(), 0);
  for (std::uint64_t i = 0; i < instances; ++i) {
    if (!evaluator_->step(call.range, frame, kStepsOfOperation * of_part.size()))
      return std::nullopt;
    for (std::uint32_t part = 0; part < of_part.size(); ++part) {
      const auto found =
          std::find_if(of_part[part].begin(), of_part[part].end(),
                       [&](const Target* target) { return target->holds(instance); });
      if (found == of_part[part].end()) {
        evaluator_
            ->fail(Code::placed_nowhere, call.range, frame,
                   "`{}` orders placed work, and `{}[{}]` is placed nowhere", name,
                   evaluator_->context().text(work.part.name), part)
            .hint("write `place {}[{}] on ...`", evaluator_->context().text(work.part.name), part);
        return std::nullopt;
      }
      const DeviceSetId devices = (*found)->place->devices;
      const auto [rank, fresh] =
          ranks.try_emplace(devices, static_cast<std::uint32_t>(work.ranks.size()));
      if (fresh) {
        const DeviceSet& set = (*evaluator_->device_sets)[devices];
        bool shared = false;
        apart.for_each_intersecting(set, [&](std::uint32_t, const DeviceSet&) { shared = true; });
        if (shared) {
          evaluator_
              ->fail(Code::work_does_not_move, call.range, frame,
                     "`{}` needs device sets that are equal or have no device in common", name)
              .related((*found)->place->loc, "some of these devices are in another set, too");
          return std::nullopt;
        }
        apart.add(set, 0);
        work.ranks.push_back(devices);
      }
      work.rank_of.push_back(rank->second);
    }
    for (std::size_t d = 0; d < instance.size(); ++d) {
      if (++instance[d] < work.dims[d].extent) break;
      instance[d] = 0;
    }
  }
  return work;
}

}  // namespace piper::lower
