// Orders, evaluated after the placement is known: they may ask for the work of a rank, and an order
// beside a schedule's call replaces the schedule's own.

#include <algorithm>

#include "frontend/lower/schedule/schedule_builder.h"
#include "ir/diagnostics/suggestion.h"
#include "ir/directive/print.h"
#include "llvm/Support/raw_ostream.h"

namespace piper::lower {
namespace {

/// How many devices both have.
std::uint64_t common_devices(const DeviceSet& a, const DeviceSet& b, const Mesh& mesh) {
  std::uint64_t count = 1;
  for (std::size_t i = 0; i < mesh.axes.size(); ++i) {
    const bool whole = a.at[i] == DeviceSet::kWhole && b.at[i] == DeviceSet::kWhole;
    if (a.at[i] != DeviceSet::kWhole && b.at[i] != DeviceSet::kWhole && a.at[i] != b.at[i])
      return 0;
    if (whole) count *= mesh.axes[i].size;
  }
  return count;
}

}  // namespace

bool ScheduleBuilder::claimed_beside(const DeviceSet& claim) const {
  if (evaluating_ == nullptr) return false;
  const std::uint32_t scope = entries_[evaluating_->entry].scope;
  std::uint64_t claimed = 0;  // the claims of orders that hold have no device twice
  for (const auto& [outer, claims] : claims_) {
    if (outer == scope || !encloses(outer, scope)) continue;
    claims.for_each_intersecting(claim, [&](std::uint32_t, const DeviceSet& devices) {
      claimed += common_devices(devices, claim, *evaluator_->mesh);
    });
  }
  return claimed > 0 && claimed >= claim.devices(*evaluator_->mesh);
}

void ScheduleBuilder::note_claim(const DeviceSet& claim) {
  if (evaluating_ != nullptr) claims_[entries_[evaluating_->entry].scope].add(claim, 0);
}

void ScheduleBuilder::leave_out_claimed(OrderValue& value) const {
  std::vector<bool> left_out;
  for (const directive::RankSteps& rank : value.order.ranks)
    left_out.push_back(claimed_beside((*evaluator_->device_sets)[rank.devices]));
  leave_out(value, left_out);
}

std::optional<OrderValue> ScheduleBuilder::order_value(const ast::OrderStmt& stmt, Frame& frame) {
  // An order walks through the parts of partitions and splits: without their extents its errors
  // would be consequences.
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
  const std::uint32_t end =
      stmt.value ? stmt.range.end
                 : stmt.range.begin + static_cast<std::uint32_t>(std::string_view("order").size());
  value.order.loc = evaluator_->here({stmt.range.file, stmt.range.begin, end}, frame);
  return value;
}

std::optional<OrderValue> ScheduleBuilder::evaluate_order(const ast::OrderStmt& stmt,
                                                          Frame& frame) {
  std::optional<OrderValue> found = order_value(stmt, frame);
  if (found && !found->pending.empty()) {
    OrderValue& value = *found;
    const PendingGradient& first = value.pending.front();
    std::string text;
    for (std::uint32_t c = 0; c < first.op.num_coordinates; ++c) {
      const directive::OrderCoordinate& at = value.order.coordinates[first.op.first_coordinate + c];
      text += directive::coordinate_text(evaluator_->context().text(at.name), at.rest, c == 0);
      if (!at.all) text += "[" + std::to_string(at.index) + "]";
    }
    evaluator_
        ->fail_at(Code::weight_gradients_left, first.op.loc,
                  "{} weight gradient{} still pending when the order ends, the oldest is `BW {}`",
                  value.pending.size(), value.pending.size() == 1 ? " is" : "s are", text)
        .related(value.order.loc, "the order is applied here")
        .hint("end the rank with `repeat left(BW) { BW }`");
    note_missing(stmt);
    leave_out_ranks_of(value, 0);
    evaluator_->resume();
  }
  return found;
}

Value ScheduleBuilder::order_of(const sema::Function& function, const ast::CallExpr& call,
                                Frame& frame) {
  const std::optional<orders::Facts> known = facts(call, "order", frame);
  if (!known) return {};
  Frame callee = evaluator_->bind(function, call, frame);
  if (evaluator_->failed()) return {};
  // The lines of the schedule go to a strategy of their own, and its orders see the placement here.
  directive::Strategy unused;
  ScheduleBuilder inner(*evaluator_, unused);
  OrderBuilder* const order = std::exchange(evaluator_->order, nullptr);
  RankBuilder* const rank = std::exchange(evaluator_->rank, nullptr);
  const DeviceSet* const claim = std::exchange(evaluator_->claim, nullptr);
  evaluator_->schedule = &inner;
  evaluator_->run(function, callee);
  evaluator_->schedule = this;
  std::stable_sort(inner.orders_.begin(), inner.orders_.end(), [&](const auto& a, const auto& b) {
    return inner.depth(inner.entries_[a.entry].scope) < inner.depth(inner.entries_[b.entry].scope);
  });
  orders::OrderTree all;
  DeviceSetIndex claims;
  for (PostponedOrder& line : inner.orders_) {
    if (evaluator_->failed()) break;
    std::optional<OrderValue> value;
    const bool ran =
        evaluator_->run_postponed(true, [&] { value = order_value(*line.stmt, line.frame); });
    if (!ran || !value) {
      evaluator_->set_failed();
      break;
    }
    orders::OrderTree tree = orders::tree_of(std::move(*value));
    orders::apply_trims(tree, orders::names_of(known->dims));
    // An order of a schedule holds over those of the schedules that it calls.
    std::erase_if(tree.ranks, [&](const orders::RankTree& candidate) {
      const DeviceSet& devices = (*evaluator_->device_sets)[candidate.devices];
      bool claimed = false;
      claims.for_each_intersecting(devices, [&](std::uint32_t, const DeviceSet& outer) {
        claimed = claimed || outer.contains(devices);
      });
      return claimed;
    });
    for (const orders::RankTree& added : tree.ranks)
      claims.add((*evaluator_->device_sets)[added.devices], 0);
    orders::append(all, std::move(tree));
  }
  evaluator_->order = order;
  evaluator_->rank = rank;
  evaluator_->claim = claim;
  if (evaluator_->failed()) return {};
  if (inner.orders_.empty()) {
    // Its `order` may have failed.
    if (evaluator_->broken()) {
      evaluator_->set_failed();
      return {};
    }
    evaluator_
        ->fail(Code::schedule_without_order, call.range, frame, "`{}` has no `order`",
               function.name())
        .hint("leave the order out: ranks without one get the default order");
    return {};
  }
  all.loc = evaluator_->here(call.range, frame);
  return share(orders::value_of(std::move(all)));
}

std::optional<orders::Facts> ScheduleBuilder::facts(const ast::CallExpr& call,
                                                    std::string_view name, Frame& frame) {
  if (evaluating_ == nullptr) {
    evaluator_
        ->fail(
            Code::placement_not_known, call.range, frame,
            "`{}` is legal in an `order` only, because the placement and the splits are known only there",
            name)
        .hint("write it behind `order`, or in a function that an `order` calls");
    return std::nullopt;
  }
  if (lacks_extents_ || lacks_places_) {
    evaluator_->set_failed();
    return std::nullopt;
  }
  orders::Facts facts;
  for (const Entry& entry : entries_) {
    if (entry.replaced) continue;
    if (const auto* partition = std::get_if<directive::Partition>(&entry.directive))
      facts.parts.push_back(partition->into);
    if (const auto* split = std::get_if<directive::Split>(&entry.directive))
      facts.dims.insert(facts.dims.end(), split->into.begin(), split->into.end());
  }
  if (!evaluator_->step(call.range, frame, entries_.size() / 8 + 1)) return std::nullopt;
  return facts;
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
    if (!evaluator_->run_postponed(order.in_function,
                                   [&] { value = evaluate_order(*order.stmt, order.frame); })) {
      note_missing(*order.stmt);
      // Any of them.
      note_claim({std::vector<std::int32_t>(evaluator_->mesh->axes.size(), DeviceSet::kWhole)});
    }
    if (value) {
      const bool stands_alone =
          std::none_of(claims_.begin(), claims_.end(), [&](const auto& outer) {
            return outer.first != entry.scope && encloses(outer.first, entry.scope);
          });
      for (const directive::RankSteps& rank : value->order.ranks)
        note_claim((*evaluator_->device_sets)[rank.devices]);
      entry.replaced = value->order.ranks.empty() && !stands_alone;
      entry.directive = std::move(value->order);
    }
    evaluating_ = nullptr;
  }
  orders_.clear();
  held_.clear();
}

Value ScheduleBuilder::held(const ast::CallExpr& call, const directive::Selector& work,
                            const DeviceSet& devices, Frame& frame) {
  if (evaluating_ == nullptr) {
    evaluator_
        ->fail(Code::placement_not_known, call.range, frame,
               "`held` is legal in an `order` only, because the placement is known only there")
        .hint(
            "call `held` in the steps of an `order`, and give `order` the call that makes them: `order ranks(p, m)`");
    return {};
  }
  if (lacks_places_) {
    evaluator_->set_failed();
    return {};
  }
  const HeldTable* const table = held_table(call, work, frame);
  if (table == nullptr) return {};
  const HeldTable::Held held = table->held(devices, depth(entries_[evaluating_->entry].scope));
  if (!evaluator_->step(call.range, frame, held.looked_at / 8 + 1)) return {};
  if (held.outer != nullptr && !held_beside_.valid()) held_beside_ = held.outer->loc;
  if (held.depends != nullptr) {
    const HeldTable::Placed& part = *held.depends;
    const bool loose = std::any_of(part.target->coordinates.begin(), part.target->coordinates.end(),
                                   [](const directive::Coordinate& c) { return c.rest; });
    const std::string on = loose ? "what of it is loose work"
                           : part.part.valid()
                               ? "`" + std::string(evaluator_->context().text(part.part)) + "`"
                               : "the pass";
    evaluator_
        ->fail(Code::held_depends, call.range, frame,
               "where `{}` runs depends on {}, and this `held` asks for all of it",
               evaluator_->context().text(table->partition_name()), on)
        .related(part.place->loc, "it is placed here")
        .hint(
            "write an `order` for this placement beside the call: it replaces the schedule's own");
    return {};
  }
  Values values;
  for (const std::uint32_t index : held.indices)
    values.push_back(Value(static_cast<std::int64_t>(index)));
  return share(std::move(values));
}

const HeldTable* ScheduleBuilder::held_table(const ast::CallExpr& call,
                                             const directive::Selector& work, Frame& frame) {
  std::string key;
  llvm::raw_string_ostream text(key);
  directive::print(work, text, evaluator_->context().symbols);
  if (const auto known = held_.find(key); known != held_.end()) return &known->second;
  const std::span<const directive::Coordinate> asked = work.coordinates;
  const auto family = std::find_if(asked.begin(), asked.end(),
                                   [](const directive::Coordinate& c) { return c.all; });
  const directive::Partition* made = nullptr;
  std::vector<std::string_view> names;
  std::vector<Symbol> dims;
  std::vector<const directive::Place*> places;
  for (const Entry& entry : entries_) {
    if (const auto* place = std::get_if<directive::Place>(&entry.directive))
      places.push_back(place);
    const auto* split = std::get_if<directive::Split>(&entry.directive);
    for (std::size_t i = 0; split != nullptr && i < split->into.size(); ++i)
      dims.push_back(split->into[i].name);
    const auto* partition =
        entry.replaced ? nullptr : std::get_if<directive::Partition>(&entry.directive);
    if (partition == nullptr) continue;
    names.push_back(evaluator_->context().text(partition->into.name));
    if (made == nullptr && family != asked.end() && partition->into.name == family->name)
      made = partition;
  }
  if (made == nullptr || work.pass || work.part != directive::CommClass::none) {
    const std::string_view best =
        family == asked.end() ? std::string_view()
                              : nearest_name(evaluator_->context().text(family->name), names);
    evaluator_
        ->fail(
            Code::selector_not_allowed, call.range, frame,
            "`held` lists the indices of the parts of a `partition`, and no `partition` makes `{}`",
            ast::source_text(*call.args[0].value))
        .hint("write {}", best.empty() ? "its name without an index, as in `held(stage, p[r])`"
                                       : "`" + std::string(best) + "`");
    return nullptr;
  }
  if (!evaluator_->step(call.range, frame, entries_.size() / 8 + 1)) return nullptr;
  return &held_.try_emplace(key, work, *made, places, dims, *evaluator_->device_sets).first->second;
}

}  // namespace piper::lower
