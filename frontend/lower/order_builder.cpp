// Ranks of an order: claims, cursors and steps (LANGUAGE.md section 4, items 2 to 6).

#include <algorithm>

#include "frontend/lower/schedule_builder.h"
#include "llvm/ADT/SmallVector.h"

namespace piper::lower {

using llvm::cast;
using llvm::dyn_cast;

// ---- ranks -----------------------------------------------------------------------------------------------------------

void OrderBuilder::rank(const ast::RankStmt& stmt, Frame& frame) {
  DeviceSet claim{std::vector<std::int32_t>(evaluator_->mesh->axes.size(), DeviceSet::kWhole)};
  elaborate(stmt, 0, claim, frame);
  evaluator_->cursors_told = false;
}

void OrderBuilder::elaborate(const ast::RankStmt& stmt, std::size_t binding, DeviceSet& claim, Frame& frame) {
  if (evaluator_->failed()) return;
  if (binding < stmt.bindings.size()) {
    const ast::Binding& bound = stmt.bindings[binding];
    // `p` for all of its coordinates, `p[0..2]` for some.
    const auto* some = dyn_cast<ast::IndexExpr>(bound.values);
    const Value base = evaluator_->eval(some ? *some->base : *bound.values, frame);
    const AxisValue* axis = base.get<AxisValue>();
    if (!axis) return evaluator_->set_failed();
    const Value coordinates = some ? evaluator_->eval(*some->indices[0], frame) : Value(Range{0, axis->size, 1});
    if (evaluator_->failed()) return;
    if (claim.at[axis->axis] != DeviceSet::kWhole) {
      evaluator_->fail(Code::axis_named_twice, bound.range, frame, "the axis `{}` stands twice here",
                       evaluator_->context().text(evaluator_->mesh->axes[axis->axis].name));
      return;
    }
    for (const Value& coordinate : evaluator_->elements(coordinates, bound.range, frame)) {
      const std::int64_t i = evaluator_->to_int(coordinate);
      if (some && !evaluator_->has_coordinate(*some, i, *axis, frame)) break;
      claim.at[axis->axis] = static_cast<std::int32_t>(i);
      frame.slots[bound.name.binding] = Value(i);
      elaborate(stmt, binding + 1, claim, frame);
    }
    claim.at[axis->axis] = DeviceSet::kWhole;
    return;
  }
  RankBuilder builder(*evaluator_, value_.order);
  RankBuilder* const outer = std::exchange(evaluator_->rank, &builder);
  const bool skips = std::exchange(evaluator_->skips_statements, false);
  directive::RankSteps steps;
  steps.devices = evaluator_->device_sets->intern(claim);
  steps.loc = evaluator_->here(cover({stmt.range.file, stmt.range.begin, stmt.range.begin}, stmt.bindings.back().range), frame);
  evaluator_->claim = &claim;
  evaluator_->claim_loc = steps.loc;
  evaluator_->execute(*stmt.body, frame);
  if (!evaluator_->failed()) builder.finish(frame, steps);
  evaluator_->claim = nullptr;
  evaluator_->skips_statements = skips;
  evaluator_->rank = outer;
  if (evaluator_->failed()) {  // the other coordinates are looked at
    complete_ = false;
    evaluator_->cursors_told = true;
    evaluator_->resume();
    return;
  }
  const auto position = static_cast<std::uint32_t>(value_.order.ranks.size());
  for (const directive::OrderOp& op : builder.pending()) value_.pending.push_back({op, position});
  value_.order.ranks.push_back(steps);
}

// ---- elements: the coordinates of one operation -----------------------------------------------------------------------

bool RankBuilder::less(const Element& a, const Element& b) const {
  // A selector is a conjunction: in which order its coordinates stand does not matter.
  const auto key = [](const directive::OrderCoordinate& c) { return std::tuple(c.name.value(), c.all, c.index); };
  const auto before = [&](const auto& x, const auto& y) { return key(x) < key(y); };
  const auto sorted = [&](const Element& element) {
    const auto* first = order_->coordinates.data() + element.first;
    llvm::SmallVector<directive::OrderCoordinate, 4> coordinates(first, first + element.count);
    std::sort(coordinates.begin(), coordinates.end(), before);
    return coordinates;
  };
  const auto x = sorted(a), y = sorted(b);
  return std::lexicographical_compare(x.begin(), x.end(), y.begin(), y.end(), before);
}

bool RankBuilder::same(const Element& a, const Element& b) const { return a.count == b.count && !less(a, b) && !less(b, a); }

std::string RankBuilder::text(const Element& element) const {
  std::string text;
  for (std::uint32_t i = 0; i < element.count; ++i) {
    const directive::OrderCoordinate& c = order_->coordinates[element.first + i];
    if (i > 0) text += ' ';
    text += evaluator_->context().text(c.name);
    if (!c.all) text += "[" + std::to_string(c.index) + "]";
  }
  return text.empty() ? "model" : text;
}

/// `stage[0] mb[6], stage[0] mb[7] and 3 more`.
std::string RankBuilder::list_text(std::span<const Element> elements) const {
  std::string list;
  const std::size_t shown = elements.size() > 4 ? 3 : elements.size();
  for (std::size_t i = 0; i < shown; ++i) list += (i ? ", " : "") + ("`" + text(elements[i]) + "`");
  return elements.size() > shown ? list + " and " + std::to_string(elements.size() - shown) + " more" : list;
}

void RankBuilder::expand_selector(const directive::Selector& selector, SourceRange range, std::vector<Element>& out, Frame& frame) {
  std::uint64_t count = 1;
  for (const directive::Coordinate& c : selector.coordinates) {
    if (__builtin_mul_overflow(count, c.all ? 1 : c.indices.size(), &count)) count = ~std::uint64_t{0};
  }
  if (!evaluator_->step(range, frame, count)) return;
  std::vector<std::uint32_t> at(selector.coordinates.size(), 0);
  for (std::uint64_t n = 0; n < count; ++n) {
    Element element{static_cast<std::uint32_t>(order_->coordinates.size()), static_cast<std::uint32_t>(at.size())};
    for (std::size_t i = 0; i < at.size(); ++i) {
      const directive::Coordinate& c = selector.coordinates[i];
      order_->coordinates.push_back({c.name, c.all ? 0 : c.indices[at[i]], c.all, c.loc});
    }
    out.push_back(element);
    for (std::size_t i = at.size(); i-- > 0;) {
      if (selector.coordinates[i].all || ++at[i] == selector.coordinates[i].indices.size()) {
        at[i] = 0;
      } else {
        break;
      }
    }
  }
}

std::vector<RankBuilder::Element> RankBuilder::expand(const ast::Expr& expr, Frame& frame) {
  std::vector<Element> elements;
  const Value value = evaluator_->eval(expr, frame);
  for (const Value& part : evaluator_->elements(value, expr.range, frame)) {
    if (evaluator_->failed()) break;
    const auto& selector = *part.shared<directive::Selector>();
    const auto first = static_cast<std::uint32_t>(order_->coordinates.size());
    expand_selector(selector, expr.range, elements, frame);
    const LocId loc = directive::narrowest(selector.loc, evaluator_->here(expr.range, frame));
    if (order_->origins.empty() || order_->origins.back().loc != loc || order_->origins.back().end != first) order_->origins.push_back({first, first, loc});
    order_->origins.back().end = static_cast<std::uint32_t>(order_->coordinates.size());
  }
  return elements;
}

// ---- cursors ---------------------------------------------------------------------------------------------------------

void RankBuilder::cursor(const ast::CursorStmt& stmt, Frame& frame) {
  Cursor cursor;
  cursor.name = stmt.name.name;
  cursor.loc = evaluator_->here(stmt.range, frame);
  cursor.forward = expand(*stmt.forward, frame);
  if (stmt.backward && !evaluator_->failed()) {
    cursor.backward = expand(*stmt.backward, frame);
    std::vector<Element> f = cursor.forward, g = cursor.backward;
    const auto before = [&](const Element& a, const Element& b) { return less(a, b); };
    std::sort(f.begin(), f.end(), before);
    std::sort(g.begin(), g.end(), before);
    const bool permutation = std::equal(f.begin(), f.end(), g.begin(), g.end(), [&](const Element& a, const Element& b) { return same(a, b); });
    if (!permutation && !evaluator_->failed()) {
      std::vector<Element> only_f, only_g;
      std::set_difference(f.begin(), f.end(), g.begin(), g.end(), std::back_inserter(only_f), before);
      std::set_difference(g.begin(), g.end(), f.begin(), f.end(), std::back_inserter(only_g), before);
      auto&& builder = evaluator_->fail(Code::backward_no_permutation, stmt.backward->range, frame,
                                        "the backward list of `{}` is no permutation of its forward list", stmt.name.name);
      if (!only_f.empty()) builder.hint("the backward list lacks {}", list_text(only_f));
      if (only_f.empty() && !only_g.empty()) builder.hint("the forward list lacks {}", list_text(only_g));
      return;
    }
  }
  frame.slots[stmt.name.binding] = Value(CursorValue{static_cast<std::uint32_t>(cursors_.size())});
  cursors_.push_back(std::move(cursor));
}

std::int64_t RankBuilder::left(const ast::OpExpr& op, Frame& frame) {
  const auto count = [](std::size_t all, std::size_t used) { return static_cast<std::int64_t>(all - used); };
  if (!op.operand) return pending_;
  const Value operand = evaluator_->eval(*op.operand, frame);
  const CursorValue* value = operand.get<CursorValue>();
  if (!value) {  // refused by the analysis
    evaluator_->set_failed();
    return 0;
  }
  const Cursor& cursor = cursors_[value->index];
  if (op.pass == Pass::F) return count(cursor.forward.size(), cursor.next_forward);
  if (op.pass != Pass::BW) return count(cursor.backward_elements().size(), cursor.next_backward);
  return cursor.pending;
}

// ---- the queue of pending weight gradients ---------------------------------------------------------------------------

void RankBuilder::enqueue(Element element, std::int32_t cursor, LocId loc) {
  if (cursor >= 0) {
    Cursor& from = cursors_[static_cast<std::size_t>(cursor)];
    from.queued.push_back(static_cast<std::uint32_t>(queue_.size()));
    ++from.pending;
  }
  queue_.push_back({element, false, loc, cursor});
  ++pending_;
}

RankBuilder::Element RankBuilder::take(Queued& queued) {
  queued.taken = true;
  --pending_;
  if (queued.cursor >= 0) --cursors_[static_cast<std::size_t>(queued.cursor)].pending;
  while (queue_head_ < queue_.size() && queue_[queue_head_].taken) ++queue_head_;
  return queued.element;
}

bool RankBuilder::take_same(const Element& element) {
  for (; num_keyed_ < queue_.size(); ++num_keyed_) queued_by_key_[key(queue_[num_keyed_].element)].push_back(num_keyed_);
  const auto found = queued_by_key_.find(key(element));
  if (found == queued_by_key_.end()) return false;
  std::vector<std::uint32_t>& positions = found->second;
  std::erase_if(positions, [&](std::uint32_t at) { return queue_[at].taken; });
  const auto queued = std::find_if(positions.begin(), positions.end(), [&](std::uint32_t at) { return same(queue_[at].element, element); });
  if (queued == positions.end()) return false;
  take(queue_[*queued]);
  return true;
}

const RankBuilder::Queued* RankBuilder::pending_that_meets(const Element& element) const {
  const auto* c = order_->coordinates.data();
  const auto differs = [&](const Element& a, const Element& b) {
    for (std::uint32_t i = 0; i < a.count; ++i) {
      for (std::uint32_t j = 0; j < b.count; ++j) {
        const auto &x = c[a.first + i], &y = c[b.first + j];
        if (x.name == y.name && !x.all && !y.all && x.index != y.index) return true;
      }
    }
    return false;
  };
  for (const Queued& queued : queue_) {
    if (!queued.taken && queued.element.count != element.count && !differs(queued.element, element)) return &queued;
  }
  return nullptr;
}

std::uint64_t RankBuilder::key(const Element& element) const {
  std::uint64_t key = element.count;
  for (std::uint32_t i = 0; i < element.count; ++i) {
    const directive::OrderCoordinate& c = order_->coordinates[element.first + i];
    std::uint64_t one = (std::uint64_t{c.name.value()} << 33 | std::uint64_t{c.all} << 32 | c.index) * 0x9E3779B97F4A7C15u;
    key += one ^ one >> 29;  // the same in every order
  }
  return key;
}

std::optional<RankBuilder::Element> RankBuilder::take_queued(const ast::OpExpr& op, std::int32_t cursor, Frame& frame) {
  if (cursor >= 0) {
    Cursor& from = cursors_[static_cast<std::size_t>(cursor)];
    while (from.next_queued < from.queued.size() && queue_[from.queued[from.next_queued]].taken) ++from.next_queued;
    if (from.next_queued < from.queued.size()) return take(queue_[from.queued[from.next_queued++]]);
    evaluator_->fail(Code::no_pending_gradient, op.range, frame, "no weight gradient of `{}` is pending here", from.name)
        .related(from.loc, "the cursor is made here")
        .hint("`BW` takes what an earlier `BI` left; guard it with `if left(BW {}) > 0`", from.name);
    return std::nullopt;
  }
  if (queue_head_ < queue_.size()) return take(queue_[queue_head_]);
  evaluator_->fail(Code::no_pending_gradient, op.range, frame, "no weight gradient is pending here")
      .hint("`BW` takes what an earlier `BI` left; guard it with `if left(BW) > 0`");
  return std::nullopt;
}

std::vector<directive::OrderOp> RankBuilder::pending() const {
  std::vector<directive::OrderOp> ops;
  for (const Queued& queued : queue_) {
    if (queued.taken) continue;
    directive::OrderOp op;
    op.pass = Pass::BW;
    op.first_coordinate = queued.element.first;
    op.num_coordinates = queued.element.count;
    op.loc = queued.loc;
    ops.push_back(op);
  }
  return ops;
}

// ---- steps -----------------------------------------------------------------------------------------------------------

LocId RankBuilder::op_location(const ast::OpExpr& op, const Frame& frame) {
  CachedLoc& cached = loc_cache_[(reinterpret_cast<std::uintptr_t>(&op) >> 4) % std::size(loc_cache_)];
  if (cached.op != &op || cached.caller != frame.caller) cached = {&op, frame.caller, evaluator_->here(op.range, frame)};
  return cached.loc;
}

std::uint32_t RankBuilder::emit(Pass pass, Element element, directive::Part part, LocId loc) {
  directive::OrderOp op;
  op.pass = pass;
  op.part = part;
  op.first_coordinate = element.first;
  op.num_coordinates = element.count;
  op.loc = loc;
  directive::OrderStep step;
  step.kind = directive::OrderStep::Kind::op;
  step.op = static_cast<std::uint32_t>(order_->ops.size());
  step.loc = loc;
  order_->ops.push_back(op);
  order_->steps.push_back(step);
  return static_cast<std::uint32_t>(order_->steps.size() - 1);
}

std::uint32_t RankBuilder::add_list(directive::OrderStep::Kind kind, std::vector<std::uint32_t> children, LocId loc) {
  if (children.size() == 1) return children[0];
  directive::OrderStep step;
  step.kind = kind;
  step.first_child = static_cast<std::uint32_t>(order_->children.size());
  step.num_children = static_cast<std::uint32_t>(children.size());
  step.loc = loc;
  order_->children.insert(order_->children.end(), children.begin(), children.end());
  order_->steps.push_back(step);
  return static_cast<std::uint32_t>(order_->steps.size() - 1);
}

std::uint32_t RankBuilder::add_op(const ast::OpExpr& op, Frame& frame) {
  if (!evaluator_->step(op.range, frame, kStepsOfOperation)) return 0;
  const LocId loc = op_location(op, frame);
  if (!op.operand) {
    if (in_slot_) {
      deferred_.push_back({static_cast<std::uint32_t>(order_->ops.size()), -1, &op});
      return emit(Pass::BW, {}, directive::Part::none, loc);
    }
    const auto element = take_queued(op, -1, frame);
    return element ? emit(Pass::BW, *element, directive::Part::none, loc) : 0;
  }
  const auto* name = dyn_cast<ast::NameExpr>(op.operand);
  const CursorValue* value = name && name->referent == ast::Referent::local ? frame.slots[name->target].get<CursorValue>() : nullptr;
  if (!value) return explicit_op(op, frame);
  const auto index = static_cast<std::int32_t>(value->index);
  Cursor& cursor = cursors_[value->index];
  if (op.pass == Pass::BW) {
    if (in_slot_) {
      deferred_.push_back({static_cast<std::uint32_t>(order_->ops.size()), index, &op});
      return emit(Pass::BW, {}, directive::Part::none, loc);
    }
    const auto element = take_queued(op, index, frame);
    return element ? emit(Pass::BW, *element, directive::Part::none, loc) : 0;
  }
  const std::vector<Element>& list = op.pass == Pass::F ? cursor.forward : cursor.backward_elements();
  std::size_t& next = op.pass == Pass::F ? cursor.next_forward : cursor.next_backward;
  if (next == list.size()) {
    evaluator_->fail(Code::cursor_exhausted, op.range, frame, "`{} {}` has nothing left: all {} are used", pass_name(op.pass), cursor.name, list.size())
        .related(cursor.loc, "the cursor is made here")
        .hint("guard it with `if left({} {}) > 0`", op.pass == Pass::F ? "F" : "B", cursor.name);
    return 0;
  }
  const Element element = list[next++];
  if (op.pass == Pass::BI) {
    if (in_slot_) {
      deferred_.push_back({static_cast<std::uint32_t>(order_->ops.size()), index, &op});
    } else {
      enqueue(element, index, loc);
    }
  }
  return emit(op.pass, element, directive::Part::none, loc);
}

std::uint32_t RankBuilder::explicit_op(const ast::OpExpr& op, Frame& frame) {
  const LocId loc = op_location(op, frame);
  const directive::Selector selector = evaluator_->eval_selector(*op.operand, frame);
  std::vector<Element> elements;
  if (!evaluator_->failed()) expand_selector(selector, op.range, elements, frame);
  if (evaluator_->failed()) return 0;
  if (elements.empty()) {
    evaluator_->fail(Code::operation_of_nothing, op.operand->range, frame, "`{}` names no instance: an index list is empty", ast::source_text(*op.operand));
    return 0;
  }
  std::vector<std::uint32_t> children;
  for (const Element& element : elements) {
    const bool work = selector.part == directive::Part::none;
    if (work && in_slot_ && (op.pass == Pass::BI || op.pass == Pass::BW)) {
      deferred_.push_back({static_cast<std::uint32_t>(order_->ops.size()), -1, &op});
    } else if (work && op.pass == Pass::BI) {
      enqueue(element, -1, loc);
    } else if (work && op.pass == Pass::BW) {
      if (!take_same(element)) {
        auto&& report = evaluator_->fail(Code::no_pending_gradient, op.range, frame,
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
    children.push_back(emit(op.pass, element, selector.part, loc));
  }
  return add_list(directive::OrderStep::Kind::sequence, std::move(children), loc);
}

std::uint32_t RankBuilder::add_member(const ast::StepMember& member, Frame& frame) {
  if (member.op) return add_op(*member.op, frame);
  lists_.emplace_back();
  evaluator_->execute(*member.block, frame);
  std::vector<std::uint32_t> children = std::move(lists_.back());
  lists_.pop_back();
  return add_list(directive::OrderStep::Kind::sequence, std::move(children), evaluator_->here(member.range, frame));
}

std::uint32_t RankBuilder::add_step(const ast::Step& step, Frame& frame) {
  if (step.members.size() == 1) return add_member(step.members[0], frame);
  std::vector<std::uint32_t> children;
  for (const ast::StepMember& member : step.members) {
    children.push_back(add_member(member, frame));
    if (evaluator_->failed()) return 0;
  }
  return add_list(directive::OrderStep::Kind::group, std::move(children), evaluator_->here(step.range, frame));
}

void RankBuilder::step(const ast::Step& step, Frame& frame) {
  if (lists_.size() == 1 && !has_plain_steps_) {
    has_plain_steps_ = true;
    plain_step_ = step.range;
  }
  const std::uint32_t id = add_step(step, frame);
  if (!evaluator_->failed()) lists_.back().push_back(id);
}

// ---- slots -----------------------------------------------------------------------------------------------------------

void RankBuilder::at(const ast::AtStmt& stmt, Frame& frame) {
  const std::int64_t slot = evaluator_->eval_int(*stmt.slot, frame);
  if (evaluator_->failed()) return;
  if (in_slot_) {
    evaluator_->fail(Code::slots_and_steps, stmt.range, frame, "this slot stands inside the step of another slot")
        .hint("close the block before: slots stand side by side in a rank");
    return;
  }
  in_slot_ = true;
  const std::uint32_t id = add_step(stmt.step, frame);
  in_slot_ = false;
  if (!evaluator_->failed()) slots_.push_back({slot, id, evaluator_->here(stmt.range, frame), stmt.range});
}

void RankBuilder::finish_slots(Frame& frame) {
  if (slots_.empty()) return;
  if (has_plain_steps_) {
    evaluator_->fail(Code::slots_and_steps, plain_step_, frame, "this rank has steps with a slot and steps without one")
        .related(slots_.front().loc, "a step with a slot")
        .hint("give every step of the rank a slot with `at`, or none");
    return;
  }
  std::stable_sort(slots_.begin(), slots_.end(), [](const Slot& a, const Slot& b) { return a.slot < b.slot; });
  for (std::size_t i = 1; i < slots_.size(); ++i) {
    if (slots_[i].slot != slots_[i - 1].slot) continue;
    evaluator_
        ->fail_at(Code::slot_taken_twice, slots_[i].loc, "slot `{}` of this rank holds two steps", slots_[i].slot)
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
  if (at.kind != directive::OrderStep::Kind::op) {
    for (std::uint32_t i = 0; i < at.num_children; ++i) resolve_queue_in_slot_order(order_->children[at.first_child + i], frame);
    return;
  }
  const auto found = std::lower_bound(deferred_.begin(), deferred_.end(), at.op, [](const Deferred& d, std::uint32_t op) { return d.op < op; });
  if (found == deferred_.end() || found->op != at.op) return;
  directive::OrderOp& op = order_->ops[at.op];
  const Element element{op.first_coordinate, op.num_coordinates};
  if (op.pass == Pass::BI) return enqueue(element, found->cursor, op.loc);
  if (element.count > 0) {
    if (take_same(element)) return;
    evaluator_
        ->fail_at(Code::no_pending_gradient, op.loc, "`BW {}` has no `BI` in an earlier slot of this rank that is still pending", text(element))
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
    const auto check = [&](const std::vector<Element>& list, std::size_t next, std::string_view what, std::string_view letter) {
      if (next == list.size()) return true;
      evaluator_
          ->fail_at(Code::cursor_not_used_up, cursor.loc, "the rank ends and `{}` still has {} {}{}: {}", cursor.name, list.size() - next, what,
                  list.size() - next == 1 ? "" : "s", list_text(std::span(list).subspan(next)))
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
