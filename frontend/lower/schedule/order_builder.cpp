// Ranks of an order: claims, steps and slots (grammar/README.md section 7, items 2 to 6).

#include <algorithm>

#include "frontend/lower/schedule/schedule_builder.h"

namespace piper::lower {

using llvm::dyn_cast;

namespace {

constexpr std::int64_t kLastSlot = std::int64_t{1} << 40;

}  // namespace

// ---- ranks
// -----------------------------------------------------------------------------------------------------------

void OrderBuilder::rank(const ast::RankStmt& stmt, Frame& frame) {
  DeviceSet claim{std::vector<std::int32_t>(evaluator_->mesh->axes.size(), DeviceSet::kWhole)};
  const std::size_t pending = value_.pending.size();
  elaborate(stmt, 0, claim, frame);
  // The pending gradients of the others are the same mistake with other numbers.
  if (std::exchange(evaluator_->cursors_reported, false)) leave_out_ranks_of(value_, pending);
}

void leave_out(OrderValue& value, const std::vector<bool>& ranks) {
  std::vector<std::uint32_t> number(ranks.size());  // of those that stay
  std::size_t kept = 0;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    number[i] = static_cast<std::uint32_t>(kept);
    if (ranks[i]) continue;
    value.slots[kept] = std::move(value.slots[i]);
    value.order.ranks[kept++] = value.order.ranks[i];
  }
  value.order.ranks.resize(kept);
  value.slots.resize(kept);
  std::erase_if(value.pending, [&](const PendingGradient& pending) { return ranks[pending.rank]; });
  for (PendingGradient& pending : value.pending) pending.rank = number[pending.rank];
}

void leave_out_ranks_of(OrderValue& value, std::size_t first_pending) {
  std::vector<bool> ranks(value.order.ranks.size());
  for (std::size_t i = first_pending; i < value.pending.size(); ++i)
    ranks[value.pending[i].rank] = true;
  leave_out(value, ranks);
}

void OrderBuilder::elaborate(const ast::RankStmt& stmt, std::size_t binding, DeviceSet& claim,
                             Frame& frame) {
  if (evaluator_->failed()) return;
  if (binding < stmt.bindings.size()) {
    const ast::Binding& bound = stmt.bindings[binding];
    // `p` for all of its coordinates, `p[0..2]` or `p[0, 3]` for some.
    const auto* some = dyn_cast<ast::IndexExpr>(bound.values);
    const Value base = evaluator_->eval(some ? *some->base : *bound.values, frame);
    const AxisValue* axis = base.get<AxisValue>();
    if (!axis) return evaluator_->set_failed();
    // Each with the expression that gives it.
    std::vector<std::pair<std::int64_t, const ast::Expr*>> coordinates;
    const auto add = [&](const Value& values, const ast::Expr& from) {
      for (const Value& value : evaluator_->elements(values, from.range, frame))
        coordinates.emplace_back(evaluator_->to_int(value), &from);
    };
    if (some == nullptr) add(Value(Range{0, axis->size}), *bound.values);
    for (std::size_t i = 0; some != nullptr && i < some->indices.size() && !evaluator_->failed();
         ++i)
      add(evaluator_->eval(*some->indices[i], frame), *some->indices[i]);
    if (evaluator_->failed()) return;
    if (claim.at[axis->axis] != DeviceSet::kWhole) {
      evaluator_->fail(Code::axis_named_twice, bound.range, frame,
                       "the axis `{}` is named twice here",
                       evaluator_->context().text(evaluator_->mesh->axes[axis->axis].name));
      return;
    }
    for (const auto& [i, from] : coordinates) {
      if (some && !evaluator_->has_coordinate(*some, *from, i, *axis, frame)) break;
      claim.at[axis->axis] = static_cast<std::int32_t>(i);
      frame.slots[bound.name.binding] = Value(i);
      elaborate(stmt, binding + 1, claim, frame);
    }
    claim.at[axis->axis] = DeviceSet::kWhole;
    return;
  }
  if (evaluator_->schedule->claimed_beside(claim)) return;
  evaluator_->schedule->begin_rank();
  RankBuilder builder(*evaluator_, value_.order);
  RankBuilder* const outer = std::exchange(evaluator_->rank, &builder);
  const bool skips = std::exchange(evaluator_->skips_statements, false);
  directive::RankSteps steps;
  steps.devices = evaluator_->device_sets->intern(claim);
  steps.loc = evaluator_->here(
      cover({stmt.range.file, stmt.range.begin, stmt.range.begin}, stmt.bindings.back().range),
      frame);
  evaluator_->claim = &claim;
  evaluator_->claim_loc = steps.loc;
  evaluator_->execute(*stmt.body, frame);
  if (!evaluator_->failed()) builder.finish(frame, steps);
  evaluator_->claim = nullptr;
  evaluator_->skips_statements = skips;
  evaluator_->rank = outer;
  if (evaluator_->failed()) {  // the other coordinates are looked at
    evaluator_->schedule->note_missing(stmt);
    evaluator_->schedule->note_claim(claim);
    evaluator_->cursors_reported = true;
    evaluator_->resume();
    return;
  }
  const auto position = static_cast<std::uint32_t>(value_.order.ranks.size());
  for (const directive::OrderOp& op : builder.pending()) value_.pending.push_back({op, position});
  value_.order.ranks.push_back(steps);
  value_.slots.push_back(builder.slots());
}

// ---- steps
// -----------------------------------------------------------------------------------------------------------

std::uint32_t RankBuilder::emit(Pass pass, std::span<const Element> elements,
                                directive::CommClass part, LocId loc) {
  order_->steps.push_back({directive::OrderStep::Kind::op,
                           static_cast<std::uint32_t>(order_->ops.size()),
                           static_cast<std::uint32_t>(elements.size()), loc});
  for (const Element& element : elements)
    order_->ops.push_back({pass, part, element.first, element.count, loc});
  return static_cast<std::uint32_t>(order_->steps.size() - 1);
}

std::uint32_t RankBuilder::add_list(directive::OrderStep::Kind kind,
                                    std::vector<std::uint32_t> children, LocId loc) {
  if (children.size() == 1) return children[0];
  order_->steps.push_back({kind, static_cast<std::uint32_t>(order_->children.size()),
                           static_cast<std::uint32_t>(children.size()), loc});
  order_->children.insert(order_->children.end(), children.begin(), children.end());
  return static_cast<std::uint32_t>(order_->steps.size() - 1);
}

std::uint32_t RankBuilder::add_op(const ast::OpExpr& op, Frame& frame) {
  if (!evaluator_->step(op.range, frame, kStepsOfOperation)) return 0;
  const LocId loc = op_location(op, frame);
  if (!op.operand) return queued_op(op, -1, loc, frame);
  const auto* name = dyn_cast<ast::NameExpr>(op.operand);
  const CursorValue* value = name && name->referent == ast::Referent::local
                                 ? frame.slots[name->target].get<CursorValue>()
                                 : nullptr;
  if (!value) return explicit_op(op, frame);
  const auto index = static_cast<std::int32_t>(value->index);
  if (op.pass == Pass::BW) return queued_op(op, index, loc, frame);
  Cursor& cursor = cursors_[value->index];
  const std::vector<Element>& list =
      op.pass == Pass::F ? cursor.forward : cursor.backward_elements();
  std::size_t& next = op.pass == Pass::F ? cursor.next_forward : cursor.next_backward;
  if (next == list.size()) {
    fail_exhausted(op, cursor, list.size(), frame);
    return 0;
  }
  const Element element = list[next];
  // of the instance that the next backward takes
  if (op.pass == Pass::R) return emit(op.pass, element, loc);
  ++next;
  if (op.pass == Pass::BI) {
    if (in_slot_) {
      deferred_.push_back({static_cast<std::uint32_t>(order_->ops.size()), index, &op});
    } else {
      enqueue(element, index, loc);
    }
  }
  return emit(op.pass, element, loc);
}

std::uint32_t RankBuilder::queued_op(const ast::OpExpr& op, std::int32_t cursor, LocId loc,
                                     Frame& frame) {
  if (in_slot_) {
    deferred_.push_back({static_cast<std::uint32_t>(order_->ops.size()), cursor, &op});
    return emit(Pass::BW, Element(), loc);
  }
  const auto element = take_queued(op, cursor, frame);
  return element ? emit(Pass::BW, *element, loc) : 0;
}

void RankBuilder::fail_exhausted(const ast::OpExpr& op, const Cursor& cursor, std::size_t used,
                                 Frame& frame) {
  evaluator_
      ->fail(Code::cursor_exhausted, op.range, frame, "`{} {}` has nothing left: all {} are used",
             pass_name(op.pass), cursor.name, used)
      .related(cursor.loc, "the cursor is made here")
      .hint("guard it with `if left({} {}) > 0`", op.pass == Pass::F ? "F" : "B", cursor.name);
}

std::uint32_t RankBuilder::explicit_op(const ast::OpExpr& op, Frame& frame) {
  const LocId loc = op_location(op, frame);
  const directive::Selector selector = evaluator_->eval_selector(*op.operand, frame);
  std::vector<Element> elements;
  if (!evaluator_->failed()) expand_selector(selector, op.range, elements, frame);
  if (evaluator_->failed()) return 0;
  if (elements.empty()) {
    evaluator_->fail(Code::operation_of_nothing, op.operand->range, frame,
                     "`{}` names no instance: an index list is empty",
                     ast::source_text(*op.operand));
    return 0;
  }
  const bool work = selector.part == directive::CommClass::none;
  for (std::uint32_t i = 0; i < elements.size(); ++i) {
    const Element& element = elements[i];
    if (work && in_slot_ && (op.pass == Pass::BI || op.pass == Pass::BW)) {
      deferred_.push_back({static_cast<std::uint32_t>(order_->ops.size()) + i, -1, &op});
    } else if (work && op.pass == Pass::BI) {
      enqueue(element, -1, loc);
    } else if (work && op.pass == Pass::BW) {
      if (!take_same(element)) {
        if (const directive::OrderOp* other = on_earlier_rank(element)) {
          evaluator_
              ->fail(
                  Code::no_pending_gradient, op.range, frame,
                  "`BW {}` is not on the rank of its `BI`, and only there are the values that it reads",
                  text(element))
              .related(other->loc, "`BI {}` is here", text(element))
              .hint("write `BW {}` behind that `BI`, in the order of the same rank", text(element));
          return 0;
        }
        auto&& report = evaluator_->fail(
            Code::no_pending_gradient, op.range, frame,
            "`BW {}` has no `BI` before it on this rank that is still pending", text(element));
        if (const Queued* other = pending_that_meets(element)) {
          report.related(other->loc, "`BI {}` is pending", text(other->element))
              .hint("write `BW {}`, or name the same pieces in both", text(other->element));
        } else {
          report.hint("write `BI {}` earlier, or `B` for the whole backward", text(element));
        }
        return 0;
      }
    }
  }
  return emit(op.pass, elements, selector.part, loc);
}

const directive::OrderOp* RankBuilder::on_earlier_rank(const Element& element) const {
  const directive::OrderOp* found = nullptr;
  for (std::size_t i = 0; i < order_->ops.size(); ++i) {
    const directive::OrderOp& op = order_->ops[i];
    if (op.pass != Pass::BI || op.part != directive::CommClass::none ||
        !same({op.first_coordinate, op.num_coordinates}, element))
      continue;
    if (i >= first_op_) return nullptr;
    found = &op;
  }
  return found;
}

std::uint32_t RankBuilder::add_member(const ast::StepMember& member, Frame& frame) {
  if (member.op) return add_op(*member.op, frame);
  lists_.emplace_back();
  evaluator_->execute(*member.block, frame);
  std::vector<std::uint32_t> children = std::move(lists_.back());
  lists_.pop_back();
  return add_list(directive::OrderStep::Kind::sequence, std::move(children),
                  evaluator_->here(member.range, frame));
}

std::uint32_t RankBuilder::add_step(const ast::Step& step, Frame& frame) {
  if (step.members.size() == 1) return add_member(step.members[0], frame);
  std::vector<std::uint32_t> children;
  for (const ast::StepMember& member : step.members) {
    children.push_back(add_member(member, frame));
    if (evaluator_->failed()) return 0;
  }
  return add_list(directive::OrderStep::Kind::group, std::move(children),
                  evaluator_->here(step.range, frame));
}

void RankBuilder::step(const ast::Step& step, Frame& frame) {
  if (lists_.size() == 1 && !has_plain_steps_) {
    has_plain_steps_ = true;
    plain_step_ = step.range;
  }
  const std::uint32_t id = add_step(step, frame);
  if (!evaluator_->failed()) lists_.back().push_back(id);
}

// ---- slots
// -----------------------------------------------------------------------------------------------------------

std::vector<std::int64_t> RankBuilder::slots() const {
  std::vector<std::int64_t> list;
  for (const Slot& slot : slots_) list.push_back(slot.slot);
  return list;
}

void RankBuilder::at(const ast::AtStmt& stmt, Frame& frame) {
  const std::int64_t slot = evaluator_->eval_int(*stmt.slot, frame);
  if (evaluator_->failed()) return;
  if (slot < -kLastSlot || slot > kLastSlot) {
    evaluator_->fail(Code::order_number, stmt.slot->range, frame,
                     "the slot is `{}`; slots go from {} to {}", slot, -kLastSlot, kLastSlot);
    return;
  }
  if (in_slot_) {
    evaluator_
        ->fail(Code::slots_and_steps, stmt.range, frame,
               "this slot is inside the step of another slot")
        .hint("close the block before it: slots are side by side in a rank");
    return;
  }
  in_slot_ = true;
  const std::uint32_t id = add_step(stmt.step, frame);
  in_slot_ = false;
  if (!evaluator_->failed())
    slots_.push_back({slot, id, evaluator_->here(stmt.range, frame), stmt.range});
}

void RankBuilder::finish_slots(Frame& frame) {
  if (slots_.empty()) return;
  if (has_plain_steps_) {
    evaluator_
        ->fail(Code::slots_and_steps, plain_step_, frame,
               "this rank has steps with a slot and steps without one")
        .related(slots_.front().loc, "a step with a slot")
        .hint("give every step of the rank a slot with `at`, or none");
    return;
  }
  std::stable_sort(slots_.begin(), slots_.end(),
                   [](const Slot& a, const Slot& b) { return a.slot < b.slot; });
  for (std::size_t i = 1; i < slots_.size(); ++i) {
    if (slots_[i].slot != slots_[i - 1].slot) continue;
    evaluator_
        ->fail_at(Code::slot_taken_twice, slots_[i].loc, "slot `{}` of this rank holds two steps",
                  slots_[i].slot)
        .related(slots_[i - 1].loc, "the other one")
        .hint("give each a slot of its own, or write one step: `{ a; b }` or `a & b`");
    return;
  }
  for (const Slot& slot : slots_) {
    lists_[0].push_back(slot.step);
    resolve_queue_in_slot_order(slot.step, frame);
    if (evaluator_->failed()) return;
  }
}

void RankBuilder::resolve_queue_in_slot_order(std::uint32_t step, Frame& frame) {
  const directive::OrderStep at = order_->steps[step];
  for (std::uint32_t i = at.first; i < at.first + at.count; ++i) {
    if (at.kind == directive::OrderStep::Kind::op) {
      resolve_queue(i, frame);
    } else {
      resolve_queue_in_slot_order(order_->children[i], frame);
    }
  }
}

void RankBuilder::resolve_queue(std::uint32_t at, Frame& frame) {
  const auto found =
      std::lower_bound(deferred_.begin(), deferred_.end(), at,
                       [](const Deferred& d, std::uint32_t op) { return d.op < op; });
  if (found == deferred_.end() || found->op != at) return;
  directive::OrderOp& op = order_->ops[at];
  const Element element{op.first_coordinate, op.num_coordinates};
  if (op.pass == Pass::BI) return enqueue(element, found->cursor, op.loc);
  if (element.count > 0) {
    if (take_same(element)) return;
    evaluator_
        ->fail_at(Code::no_pending_gradient, op.loc,
                  "`BW {}` has no `BI` in an earlier slot of this rank that is still pending",
                  text(element))
        .hint("give `BI {}` an earlier slot, or write `B` for the whole backward", text(element));
    return;
  }
  if (const auto taken = take_queued(*found->expr, found->cursor, frame)) {
    op.first_coordinate = taken->first;
    op.num_coordinates = taken->count;
  }
}

void RankBuilder::finish(Frame& frame, directive::RankSteps& rank) {
  finish_slots(frame);
  if (evaluator_->failed()) return;
  for (const Cursor& cursor : cursors_) {
    const auto check = [&](const std::vector<Element>& list, std::size_t next,
                           std::string_view what, std::string_view letter) {
      if (next == list.size()) return true;
      evaluator_
          ->fail_at(Code::cursor_not_used_up, cursor.loc,
                    "the rank ends and `{}` still has {} {}{}: {}", cursor.name, list.size() - next,
                    what, list.size() - next == 1 ? "" : "s",
                    list_text(std::span(list).subspan(next)))
          .hint("add `repeat left({} {}) { {} {} }`", letter, cursor.name, letter, cursor.name);
      return false;
    };
    if (!check(cursor.forward, cursor.next_forward, "forward", "F")) return;
    if (!check(cursor.backward_elements(), cursor.next_backward, "backward", "B")) return;
  }
  rank.first_step = static_cast<std::uint32_t>(order_->children.size());
  rank.num_steps = static_cast<std::uint32_t>(lists_[0].size());
  order_->children.insert(order_->children.end(), lists_[0].begin(), lists_[0].end());
}

}  // namespace piper::lower
