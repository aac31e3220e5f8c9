// Orders, evaluated when the placement that holds is known: they may ask what a rank holds, and an order beside a schedule's call replaces the schedule's.

#include <algorithm>

#include "frontend/lower/schedule/schedule_builder.h"
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
  std::stable_sort(orders_.begin(), orders_.end(), [&](const auto& a, const auto& b) {
    return depth(entries_[a.entry].scope) < depth(entries_[b.entry].scope);
  });
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
    if (made == nullptr && family != asked.end() && partition->into.name == family->name) made = partition;
  }
  if (lacks_places_) {
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

  struct Found {
    bool placed = false, whole = false, here = false;
    const PlacedBy* part = nullptr;  // the first that names a part alone
  };
  std::vector<Found> found(made->into.extent);
  const Found* mixed = nullptr;
  const auto meet = [&](Found& index, const PlacedBy& by) {
    if (index.whole) return;
    if (by.covers == Covers::part && index.part == nullptr) index.part = &by;
    if (!index.placed) index.here = by.here;
    index.placed = true;
    index.whole = by.covers == Covers::all;
    if (index.here != by.here && mixed == nullptr) mixed = &index;
  };
  const std::vector<PlacedBy> placed = places_of(work, *made, devices);
  const std::uint32_t own_depth = depth(entries_[evaluating_->entry].scope);
  for (const PlacedBy& by : placed) {
    if (by.indices == nullptr || by.indices->all) {
      for (Found& index : found) meet(index, by);
    } else {
      for (const std::uint32_t index : by.indices->indices) {
        if (index < found.size()) meet(found[index], by);
      }
    }
    if (by.here && by.place->depth != own_depth && !held_beside_.valid()) held_beside_ = by.place->loc;
    if (mixed == nullptr) continue;
    const PlacedBy& part = *mixed->part;  // nothing is looked at behind a place of the whole
    const bool loose = std::any_of(part.target->coordinates.begin(), part.target->coordinates.end(), [](const directive::Coordinate& c) { return c.rest; });
    const std::string on = loose ? "what of it is loose work" : part.part.valid() ? "`" + std::string(evaluator_->context().text(part.part)) + "`" : "the pass";
    evaluator_->fail(Code::held_depends, call.range, frame, "where `{}` runs depends on {}, and this `held` asks for all of it", evaluator_->context().text(made->into.name), on)
        .related(part.place->loc, "it is placed here")
        .hint("write an `order` for this placement beside the call: it replaces the schedule's own");
    return {};
  }
  Values values;
  for (std::size_t index = 0; index < found.size(); ++index) {
    if (found[index].here) values.push_back(Value(static_cast<std::int64_t>(index)));
  }
  return share(std::move(values));
}

ScheduleBuilder::Covers ScheduleBuilder::covers(const directive::Selector& target, const directive::Selector& asked, Symbol made, std::span<const Symbol> dims, Symbol& part) {
  const directive::Coordinate* mine = coordinate(target, made);
  Covers covers = target.pass ? Covers::part : Covers::all;
  for (const directive::Coordinate& c : target.coordinates) {
    if (&c == mine) continue;
    const bool is_dimension = !c.rest && std::find(dims.begin(), dims.end(), c.name) != dims.end();
    if (!is_dimension && mine == nullptr) return Covers::no;  // which stages a region of the model stands in is known when the model is cut
    if (is_dimension && c.all) continue;
    const directive::Coordinate* given = is_dimension ? coordinate(asked, c.name) : nullptr;
    const auto named = [&](std::uint32_t i) { return std::find(c.indices.begin(), c.indices.end(), i) != c.indices.end(); };
    if (given != nullptr && !given->all) {
      if (std::none_of(given->indices.begin(), given->indices.end(), named)) return Covers::no;
      if (std::all_of(given->indices.begin(), given->indices.end(), named)) continue;
    }
    part = c.name;
    covers = Covers::part;
  }
  return covers;
}

std::vector<ScheduleBuilder::PlacedBy> ScheduleBuilder::places_of(const directive::Selector& asked, const directive::Partition& made, const DeviceSet& devices) const {
  std::vector<Symbol> dims;
  for (const Entry& entry : entries_) {
    const auto* split = std::get_if<directive::Split>(&entry.directive);
    for (std::size_t i = 0; split != nullptr && i < split->into.size(); ++i) dims.push_back(split->into[i].name);
  }
  std::vector<PlacedBy> placed;
  for (const Entry& entry : entries_) {
    const auto* place = std::get_if<directive::Place>(&entry.directive);
    if (place == nullptr) continue;
    for (const directive::Selector& target : place->targets) {
      PlacedBy by{place, &target, coordinate(target, made.into.name), Covers::no, Symbol(), (*evaluator_->device_sets)[place->devices].intersects(devices)};
      by.covers = covers(target, asked, made.into.name, dims, by.part);
      if (by.covers != Covers::no) placed.push_back(by);
    }
  }
  std::stable_sort(placed.begin(), placed.end(), [](const PlacedBy& a, const PlacedBy& b) { return directive::holds_over(*a.place, *a.target, *b.place, *b.target); });
  return placed;
}

}  // namespace piper::lower
