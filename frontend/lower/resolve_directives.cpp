// Directives beside a schedule's own: `partition`, `split` and `place` of the caller replace the callee's if the extents agree.

#include <algorithm>

#include "frontend/lower/schedule_builder.h"

namespace piper::lower {
namespace {

bool same_names(const directive::Selector& a, const directive::Selector& b) {
  if (a.pass != b.pass || a.coordinates.size() != b.coordinates.size()) return false;
  return std::all_of(a.coordinates.begin(), a.coordinates.end(), [&](const directive::Coordinate& c) {
    return std::any_of(b.coordinates.begin(), b.coordinates.end(), [&](const directive::Coordinate& d) { return c.name == d.name; });
  });
}

/// Everything that `inner` selects is selected by `outer`, which names the same things.
bool covers(const directive::Selector& outer, const directive::Selector& inner) {
  if (!same_names(outer, inner)) return false;
  for (const directive::Coordinate& o : outer.coordinates) {
    const auto& i = *std::find_if(inner.coordinates.begin(), inner.coordinates.end(), [&](const auto& c) { return c.name == o.name; });
    if (o.all) continue;
    if (i.all) return false;
    for (const std::uint32_t index : i.indices) {
      if (std::find(o.indices.begin(), o.indices.end(), index) == o.indices.end()) return false;
    }
  }
  return true;
}

}  // namespace

void ScheduleBuilder::resolve_partitions() {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const auto* a = std::get_if<directive::Partition>(&entries_[i].directive);
    for (std::size_t j = 0; a && j < i && !entries_[i].replaced; ++j) {
      const auto* b = std::get_if<directive::Partition>(&entries_[j].directive);
      if (!b || entries_[j].replaced || b->into.name != a->into.name || !same_names(a->region, b->region)) continue;
      const std::string_view name = evaluator_->context().text(a->into.name);
      if (entries_[i].depth == entries_[j].depth) {
        evaluator_->set_failed();
        evaluator_->sink().report(Code::partitioned_twice, a->loc, "the same work is partitioned into `{}` twice", name).related(b->loc, "the other partition");
        return;
      }
      if (a->into.extent != b->into.extent) {
        const bool outer_is_a = entries_[i].depth < entries_[j].depth;
        const directive::Partition& outer = outer_is_a ? *a : *b;
        const directive::Partition& inner = outer_is_a ? *b : *a;
        evaluator_->set_failed();
        evaluator_->sink()
            .report(Code::extents_differ, outer.loc, "this partition makes {} of `{}`, the schedule's own makes {}", outer.into.extent, name,
                    inner.into.extent)
            .related(inner.loc, "the schedule's partition")
            .hint("write `{}: {}` here, or leave the line out", name, inner.into.extent);
        return;
      }
      (entries_[i].depth < entries_[j].depth ? entries_[j] : entries_[i]).replaced = true;
    }
  }
}

void ScheduleBuilder::resolve_splits() {
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    const auto* a = std::get_if<directive::Split>(&entries_[i].directive);
    for (std::size_t j = 0; a && j < i && !entries_[i].replaced; ++j) {
      const auto* b = std::get_if<directive::Split>(&entries_[j].directive);
      if (!b || entries_[j].replaced || b->dim != a->dim || !a->targets.empty() || !b->targets.empty()) continue;
      const std::string_view name = evaluator_->context().text(a->dim);
      if (entries_[i].depth == entries_[j].depth) {
        evaluator_->set_failed();
        evaluator_->sink()
            .report(Code::dimension_split_twice, a->loc, "`{}` is split twice", name)
            .related(b->loc, "the other split")
            .hint("write one split with all dimensions: `split {} into copy: 2, mb: 4`", name);
        return;
      }
      const bool equal = std::equal(a->into.begin(), a->into.end(), b->into.begin(), b->into.end(),
                                    [](const auto& x, const auto& y) { return x.name == y.name && x.extent == y.extent; });
      const bool outer_is_a = entries_[i].depth < entries_[j].depth;
      if (!equal) {
        evaluator_->set_failed();
        evaluator_->sink()
            .report(Code::extents_differ, (outer_is_a ? *a : *b).loc, "this split of `{}` differs from the schedule's own", name)
            .related((outer_is_a ? *b : *a).loc, "the schedule's split");
        return;
      }
      (outer_is_a ? entries_[j] : entries_[i]).replaced = true;
    }
  }
}

void ScheduleBuilder::resolve_places() {
  const auto deepest = std::max_element(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.depth < b.depth; });
  if (deepest == entries_.end() || deepest->depth == 0) return;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < entries_.size(); ++i) {
    if (std::holds_alternative<directive::Place>(entries_[i].directive)) places.push_back(i);
  }
  const std::uint32_t lowest = places.empty() ? 0 : entries_[*std::min_element(places.begin(), places.end(), [&](std::size_t a, std::size_t b) {
                                                      return entries_[a].depth < entries_[b].depth;
                                                    })].depth;
  for (const std::size_t inner : places) {
    if (entries_[inner].depth == lowest) continue;
    auto& place = std::get<directive::Place>(entries_[inner].directive);
    std::erase_if(place.targets, [&](const directive::Selector& target) {
      return std::any_of(places.begin(), places.end(), [&](std::size_t outer) {
        if (entries_[outer].depth >= entries_[inner].depth) return false;
        const auto& targets = std::get<directive::Place>(entries_[outer].directive).targets;
        return std::any_of(targets.begin(), targets.end(), [&](const directive::Selector& o) { return covers(o, target); });
      });
    });
    entries_[inner].replaced = place.targets.empty();
  }
}

void ScheduleBuilder::finish() {
  if (evaluator_->failed()) return;
  resolve_partitions();
  resolve_splits();
  resolve_places();
  for (Entry& entry : entries_) {
    if (!entry.replaced) strategy_->directives.push_back(std::move(entry.directive));
  }
  entries_.clear();
}

}  // namespace piper::lower
