// Cursors of a rank: the operations they walk through, and the queue of weight gradients that `BI`
// leaves for `BW`.

#include <algorithm>
#include <tuple>

#include "frontend/lower/schedule/schedule_builder.h"
#include "llvm/ADT/SmallVector.h"

namespace piper::lower {

// ---- elements: the coordinates of one operation
// -----------------------------------------------------------------------

bool RankBuilder::less(const Element& a, const Element& b) const {
  // A selector is a conjunction: the order of its coordinates does not matter.
  const auto key = [](const directive::OrderCoordinate& c) {
    return std::tuple(c.name.value(), c.rest, c.all, c.index);
  };
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

bool RankBuilder::same(const Element& a, const Element& b) const {
  return a.count == b.count && !less(a, b) && !less(b, a);
}

std::string RankBuilder::text(const Element& element) const {
  std::string text;
  for (std::uint32_t i = 0; i < element.count; ++i) {
    const directive::OrderCoordinate& c = order_->coordinates[element.first + i];
    text += directive::coordinate_text(evaluator_->context().text(c.name), c.rest, i == 0);
    if (!c.all) text += "[" + std::to_string(c.index) + "]";
  }
  return text.empty() ? "model" : text;
}

/// `stage[0] mb[6], stage[0] mb[7] and 3 more`.
std::string RankBuilder::list_text(std::span<const Element> elements) const {
  std::string list;
  const std::size_t shown = elements.size() > 4 ? 3 : elements.size();
  for (std::size_t i = 0; i < shown; ++i) list += (i ? ", " : "") + ("`" + text(elements[i]) + "`");
  return elements.size() > shown
             ? list + " and " + std::to_string(elements.size() - shown) + " more"
             : list;
}

void RankBuilder::expand_selector(const directive::Selector& selector, SourceRange range,
                                  std::vector<Element>& out, Frame& frame) {
  std::uint64_t count = 1;
  for (const directive::Coordinate& c : selector.coordinates) {
    if (__builtin_mul_overflow(count, c.all ? 1 : c.indices.size(), &count)) count = kUncounted;
  }
  if (!evaluator_->step(range, frame, count)) return;
  std::vector<std::uint32_t> at(selector.coordinates.size(), 0);
  for (std::uint64_t n = 0; n < count; ++n) {
    Element element{static_cast<std::uint32_t>(order_->coordinates.size()),
                    static_cast<std::uint32_t>(at.size())};
    for (std::size_t i = 0; i < at.size(); ++i) {
      const directive::Coordinate& c = selector.coordinates[i];
      order_->coordinates.push_back({c.name, c.all ? 0 : c.indices[at[i]], c.all, c.loc, c.rest});
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
    if (order_->origins.empty() || order_->origins.back().loc != loc ||
        order_->origins.back().end != first)
      order_->origins.push_back({first, first, loc});
    order_->origins.back().end = static_cast<std::uint32_t>(order_->coordinates.size());
  }
  return elements;
}

// ---- cursors
// ---------------------------------------------------------------------------------------------------------

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
    const bool permutation =
        std::equal(f.begin(), f.end(), g.begin(), g.end(),
                   [&](const Element& a, const Element& b) { return same(a, b); });
    if (!permutation && !evaluator_->failed()) {
      std::vector<Element> only_f, only_g;
      std::set_difference(f.begin(), f.end(), g.begin(), g.end(), std::back_inserter(only_f),
                          before);
      std::set_difference(g.begin(), g.end(), f.begin(), f.end(), std::back_inserter(only_g),
                          before);
      auto&& builder = evaluator_->fail(
          Code::backward_no_permutation, stmt.backward->range, frame,
          "the backward list of `{}` is no permutation of its forward list", stmt.name.name);
      if (!only_f.empty()) builder.hint("the backward list lacks {}", list_text(only_f));
      if (only_f.empty() && !only_g.empty())
        builder.hint("the forward list lacks {}", list_text(only_g));
      return;
    }
  }
  frame.slots[stmt.name.binding] = Value(CursorValue{static_cast<std::uint32_t>(cursors_.size())});
  cursors_.push_back(std::move(cursor));
}

std::int64_t RankBuilder::left(const ast::OpExpr& op, Frame& frame) {
  const auto count = [](std::size_t all, std::size_t used) {
    return static_cast<std::int64_t>(all - used);
  };
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

// ---- the queue of pending weight gradients
// ---------------------------------------------------------------------------

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
  for (; num_keyed_ < queue_.size(); ++num_keyed_)
    queued_by_key_[key(queue_[num_keyed_].element)].push_back(num_keyed_);
  const auto found = queued_by_key_.find(key(element));
  if (found == queued_by_key_.end()) return false;
  std::vector<std::uint32_t>& positions = found->second;
  std::erase_if(positions, [&](std::uint32_t at) { return queue_[at].taken; });
  const auto queued = std::find_if(positions.begin(), positions.end(), [&](std::uint32_t at) {
    return same(queue_[at].element, element);
  });
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
        if (x.name == y.name && x.rest == y.rest && !x.all && !y.all && x.index != y.index)
          return true;
      }
    }
    return false;
  };
  for (const Queued& queued : queue_) {
    if (!queued.taken && queued.element.count != element.count && !differs(queued.element, element))
      return &queued;
  }
  return nullptr;
}

std::uint64_t RankBuilder::key(const Element& element) const {
  std::uint64_t key = element.count;
  for (std::uint32_t i = 0; i < element.count; ++i) {
    const directive::OrderCoordinate& c = order_->coordinates[element.first + i];
    std::uint64_t one = (std::uint64_t{c.name.value()} << 34 | std::uint64_t{c.rest} << 33 |
                         std::uint64_t{c.all} << 32 | c.index) *
                        0x9E3779B97F4A7C15u;
    key += one ^ one >> 29;  // the same in every order
  }
  return key;
}

std::optional<RankBuilder::Element> RankBuilder::take_queued(const ast::OpExpr& op,
                                                             std::int32_t cursor, Frame& frame) {
  if (cursor < 0) {
    if (queue_head_ < queue_.size()) return take(queue_[queue_head_]);
  } else {
    Cursor& from = cursors_[static_cast<std::size_t>(cursor)];
    while (from.next_queued < from.queued.size() && queue_[from.queued[from.next_queued]].taken)
      ++from.next_queued;
    if (from.next_queued < from.queued.size()) return take(queue_[from.queued[from.next_queued++]]);
  }
  fail_nothing_pending(op, cursor, frame);
  return std::nullopt;
}

void RankBuilder::fail_nothing_pending(const ast::OpExpr& op, std::int32_t cursor, Frame& frame) {
  if (cursor < 0) {
    evaluator_
        ->fail(Code::no_pending_gradient, op.range, frame, "no weight gradient is pending here")
        .hint("`BW` takes a weight gradient of an earlier `BI`; guard it with `if left(BW) > 0`");
    return;
  }
  const Cursor& from = cursors_[static_cast<std::size_t>(cursor)];
  evaluator_
      ->fail(Code::no_pending_gradient, op.range, frame,
             "no weight gradient of `{}` is pending here", from.name)
      .related(from.loc, "the cursor is made here")
      .hint("`BW` takes a weight gradient of an earlier `BI`; guard it with `if left(BW {}) > 0`",
            from.name);
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

}  // namespace piper::lower
