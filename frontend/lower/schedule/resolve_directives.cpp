// Directives beside a schedule's own: `partition` and `split` of the caller replace the callee's if
// the extents agree. The pass that places work decides which `place` applies
// (passes/transform/place.cpp), because the targets of a line depend on the model. Orders:
// resolve_orders.cpp.

#include <algorithm>

#include "frontend/lower/schedule/schedule_builder.h"

namespace piper::lower {

namespace {

/// Whether two selectors name the same regions and dimensions, whichever indices.
bool same_names(const directive::Selector& a, const directive::Selector& b) {
  if (a.pass != b.pass || a.coordinates.size() != b.coordinates.size()) return false;
  return std::all_of(
      a.coordinates.begin(), a.coordinates.end(), [&](const directive::Coordinate& c) {
        return std::any_of(
            b.coordinates.begin(), b.coordinates.end(),
            [&](const directive::Coordinate& d) { return c.name == d.name && c.rest == d.rest; });
      });
}

}  // namespace

std::uint32_t ScheduleBuilder::depth(std::uint32_t scope) const {
  std::uint32_t depth = 0;
  for (; scope != 0; scope = parents_[scope]) ++depth;
  return depth;
}

bool ScheduleBuilder::encloses(std::uint32_t outer, std::uint32_t inner) const {
  while (inner != outer && inner != 0) inner = parents_[inner];
  return inner == outer;
}

void ScheduleBuilder::resolve_partitions() {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const auto* a = std::get_if<directive::Partition>(&entries_[i].directive);
    for (std::size_t j = 0; a && j < i && !entries_[i].replaced; ++j) {
      const auto* b = std::get_if<directive::Partition>(&entries_[j].directive);
      if (!b || entries_[j].replaced || b->into.name != a->into.name ||
          !same_names(a->region, b->region))
        continue;
      const std::string_view name = evaluator_->context().text(a->into.name);
      const bool outer_is_a = encloses(entries_[i].scope, entries_[j].scope);
      const bool outer_is_b = encloses(entries_[j].scope, entries_[i].scope);
      // In one body, or in two that do not call each other: the passes refuse it.
      if (outer_is_a == outer_is_b) continue;
      const directive::Partition& outer = outer_is_a ? *a : *b;
      const directive::Partition& inner = outer_is_a ? *b : *a;
      if (outer.into.extent != inner.into.extent) {
        evaluator_
            ->fail_at(Code::extents_differ, outer.into.loc,
                      "this partition makes {} of `{}`, the schedule's own makes {}",
                      outer.into.extent, name, inner.into.extent)
            .related(inner.into.loc, "the schedule's partition")
            .hint("write `{}: {}` here, or leave the line out", name, inner.into.extent);
        lacks_places_ = true;
      }
      (outer_is_a ? entries_[j] : entries_[i]).replaced = true;
    }
  }
}

void ScheduleBuilder::resolve_splits() {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const auto* a = std::get_if<directive::Split>(&entries_[i].directive);
    for (std::size_t j = 0; a && j < i && !entries_[i].replaced; ++j) {
      const auto* b = std::get_if<directive::Split>(&entries_[j].directive);
      if (!b || entries_[j].replaced || b->dim != a->dim || !a->targets.empty() ||
          !b->targets.empty())
        continue;
      const std::string_view name = evaluator_->context().text(a->dim);
      const bool outer_is_a = encloses(entries_[i].scope, entries_[j].scope);
      const bool outer_is_b = encloses(entries_[j].scope, entries_[i].scope);
      if (outer_is_a == outer_is_b) continue;
      const bool equal = std::equal(
          a->into.begin(), a->into.end(), b->into.begin(), b->into.end(),
          [](const auto& x, const auto& y) { return x.name == y.name && x.extent == y.extent; });
      const directive::Split& outer = outer_is_a ? *a : *b;
      const directive::Split& inner = outer_is_a ? *b : *a;
      if (!equal) {
        const auto parts = [&](const directive::Split& split) {
          std::string text;
          for (const directive::NamedExtent& part : split.into) {
            text += (text.empty() ? "" : ", ") +
                    std::string(evaluator_->context().text(part.name)) + ": " +
                    std::to_string(part.extent);
          }
          return text;
        };
        evaluator_
            ->fail_at(Code::extents_differ, outer.into.front().loc,
                      "this splits `{}` into `{}`, the schedule's own line into `{}`", name,
                      parts(outer), parts(inner))
            .related(inner.into.front().loc, "the schedule's split")
            .hint("pass the number to the schedule, and leave this line out");
        lacks_places_ = true;
      }
      (outer_is_a ? entries_[j] : entries_[i]).replaced = true;
    }
  }
}

void ScheduleBuilder::finish() {
  resolve_partitions();
  resolve_splits();
  evaluator_->resume();
  evaluate_orders();
  for (Entry& entry : entries_) {
    if (!entry.replaced) strategy_->directives.push_back(std::move(entry.directive));
  }
  entries_.clear();
}

}  // namespace piper::lower
