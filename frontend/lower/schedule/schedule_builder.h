#pragma once
// The schedule side of elaboration: directives and settings of a train or schedule, orders and
// their ranks.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "frontend/lower/evaluate/evaluator.h"
#include "frontend/lower/schedule/held_table.h"
#include "ir/directive/numbers.h"
#include "ir/orders/order_graph.h"
#include "ir/orders/placed_parts.h"

namespace piper::lower {

/// Collects the directives of one train or library schedule, those of called schedules included.
class ScheduleBuilder {
 public:
  explicit ScheduleBuilder(Evaluator& evaluator, directive::Strategy& strategy)
      : evaluator_(&evaluator), strategy_(&strategy) {}

  /// Any directive statement, `order` and settings included.
  void directive(const ast::Stmt& stmt, Frame& frame);
  void require(directive::Require require);
  /// A schedule called as a statement.
  void call(const sema::Function& function, const ast::CallExpr& expr, Frame& frame);
  /// Resolves directives beside a schedule's own (grammar/README.md section 6), evaluates the
  /// orders, which may ask for the final placement, and fills the strategy.
  void finish();
  /// `held(stage, p[r])`: the indices of a partition's parts placed on any of these devices,
  /// ascending.
  Value held(const ast::CallExpr& call, const directive::Selector& work, const DeviceSet& devices,
             Frame& frame);
  /// `S.order(...)`: the ranks of the orders of a schedule, for the placement of this one. Its other
  /// lines are left aside.
  Value order_of(const sema::Function& function, const ast::CallExpr& call, Frame& frame);
  /// The dimensions of splits and the parts of partitions; nothing, and a diagnostic at the call of
  /// `name`, outside of an `order`.
  std::optional<orders::Facts> facts(const ast::CallExpr& call, std::string_view name,
                                     Frame& frame);
  /// The parts of the partition, in all instances, with the ranks that hold them. Nothing, and a
  /// diagnostic at the call of `name`, if there is no single partition or its parts are not placed
  /// as wholes.
  std::optional<orders::PlacedParts> placed_parts(const ast::CallExpr& call, std::string_view name,
                                                  Frame& frame);
  /// Whether an order beside the call that led to the order being evaluated claims all of these
  /// devices.
  bool claimed_beside(const DeviceSet& claim) const;
  /// The order being evaluated claims these devices.
  void note_claim(const DeviceSet& claim);
  /// A placement that `held` has read for the rank and that is outside the body of its order;
  /// invalid if there is none.
  LocId held_beside() const { return held_beside_; }
  void begin_rank() { held_beside_ = {}; }
  /// Records that a statement is left out. Effects of its names are recorded where the names are
  /// used.
  void note_missing(const ast::Stmt& stmt);
  /// Whether the setting was written, perhaps wrongly, and failed: the default does not replace it.
  bool setting_failed(std::string_view name) const;
  /// The `names` item of the setting `init`.
  const std::optional<NamesValue>& names_of_init() const { return names_of_init_; }

 private:
  void line(const ast::DirectiveStmt& stmt, Frame& frame);
  /// A line as its struct, from the fields that the struct describes.
  template <typename Line>
  void build(const ast::DirectiveStmt& stmt, Frame& frame);
  class ClauseValues;
  class SettingValue;
  /// Completes a line whose clauses are evaluated; false if it is left out.
  bool admits(directive::Partition& line);
  bool admits(directive::Split& line);
  bool admits(directive::Place& line);
  bool admits(auto&) { return true; }
  /// Postpones the order until the final placement is known.
  void order(const ast::OrderStmt& stmt, Frame& frame);
  void setting(const ast::SettingStmt& stmt, Frame& frame);
  /// Adds a directive unless one of its expressions failed.
  void add(directive::Directive directive) {
    if (!evaluator_->failed()) entries_.push_back({std::move(directive), scope_});
  }
  /// Whether scope `outer` contains the call that led to `inner`, directly or through further
  /// calls.
  bool encloses(std::uint32_t outer, std::uint32_t inner) const;
  /// The number of nested calls of schedules that lead to the scope.
  std::uint32_t depth(std::uint32_t scope) const;
  void resolve_partitions();
  void resolve_splits();
  /// Outer ones first, so that their claims are known.
  void evaluate_orders();
  std::optional<OrderValue> evaluate_order(const ast::OrderStmt& stmt, Frame& frame);
  /// The value of an `order` line, with the weight gradients that it leaves pending.
  std::optional<OrderValue> order_value(const ast::OrderStmt& stmt, Frame& frame);
  /// The table of the work that a `held` asks for; null, and a diagnostic, if no partition makes
  /// it.
  const HeldTable* held_table(const ast::CallExpr& call, const directive::Selector& work,
                              Frame& frame);
  void leave_out_claimed(OrderValue& value) const;
  /// The value; reports one outside of the number's range.
  std::int64_t number(const ast::Expr& expr, const directive::Number& number, Frame& frame);
  /// A floating number within its bounds; otherwise reports it.
  double factor(const ast::Expr& expr, const directive::Number& number, Frame& frame);
  std::int64_t allowed(const Value& value, const ast::Expr& from, const directive::Number& number,
                       const Frame& frame);
  std::uint32_t count(const ast::Expr& expr, const directive::Number& allowed, Frame& frame) {
    return static_cast<std::uint32_t>(number(expr, allowed, frame));
  }
  directive::NamedExtent extent(const ast::Pair& pair, const directive::Number& allowed,
                                Frame& frame);

  /// A lower bound of the number of pieces of work, from the known extents.
  struct Instances {
    std::uint64_t stages = 1;                              // of the finest partition
    std::vector<std::pair<Symbol, std::uint64_t>> splits;  // by dimension: the finest
    std::uint64_t parts() const;
    void split(Symbol dim, std::uint64_t into);
  };
  /// Reports at the extent that makes them too many.
  void take(Instances instances, const directive::NamedExtent& last);

  struct Entry {
    directive::Directive directive;
    std::uint32_t scope;  // the call of a schedule that contains it
    bool replaced = false;
  };
  /// An `order` statement with the values that its names had there.
  struct PostponedOrder {
    const ast::OrderStmt* stmt;
    Frame frame;
    std::size_t entry;  // its place among the directives
    bool in_function;
  };
  Evaluator* evaluator_;
  directive::Strategy* strategy_;
  std::vector<Entry> entries_;
  std::vector<PostponedOrder> orders_;
  // of the orders evaluated so far, by their scope
  std::map<std::uint32_t, DeviceSetIndex> claims_;
  std::map<std::string, HeldTable> held_;  // by requested work, while orders are evaluated
  const PostponedOrder* evaluating_ = nullptr;
  LocId held_beside_;
  Instances instances_;
  // By scope: the scope of the call; scope 0 is the train, or the schedule shown by itself.
  std::vector<std::uint32_t> parents_ = {0};
  std::uint32_t scope_ = 0;
  bool lacks_extents_ = false;  // a `partition` or `split` has an illegal extent; reported
  bool lacks_places_ = false;   // a statement that places work is left out
  std::optional<NamesValue> names_of_init_;
  std::vector<std::string_view> given_settings_, failed_settings_;
  bool miswritten_setting_ = false;  // under a name that no setting has, or as `data = ...`
};

/// Removes the marked ranks, with the weight gradients that they leave pending.
void leave_out(OrderValue& value, const std::vector<bool>& ranks);

/// Removes the ranks that leave weight gradients pending, from pending gradient `first_pending` on.
void leave_out_ranks_of(OrderValue& value, std::size_t first_pending);

/// Collects the ranks of one order.
class OrderBuilder {
 public:
  explicit OrderBuilder(Evaluator& evaluator) : evaluator_(&evaluator) {}
  void rank(const ast::RankStmt& stmt, Frame& frame);
  /// The ranks that did not fail.
  OrderValue take() { return std::move(value_); }

 private:
  void elaborate(const ast::RankStmt& stmt, std::size_t binding, DeviceSet& claim, Frame& frame);
  Evaluator* evaluator_;
  OrderValue value_;
};

/// The steps of one rank: cursors, the queue of pending weight gradients, slots.
class RankBuilder {
 public:
  RankBuilder(Evaluator& evaluator, directive::Order& order)
      : evaluator_(&evaluator), order_(&order), first_op_(order.ops.size()) {
    lists_.emplace_back();
  }

  void cursor(const ast::CursorStmt& stmt, Frame& frame);
  void step(const ast::Step& step, Frame& frame);
  void at(const ast::AtStmt& stmt, Frame& frame);
  /// `left(F a)`, `left(BW)`.
  std::int64_t left(const ast::OpExpr& op, Frame& frame);
  /// Ends the rank: everything used up, slots in order. The top-level steps are in Order::children
  /// then.
  void finish(Frame& frame, directive::RankSteps& rank);
  /// The pending weight gradients of BI, oldest first.
  std::vector<directive::OrderOp> pending() const;
  /// The slots of the steps, ascending, once the rank has ended; none without `at`.
  std::vector<std::int64_t> slots() const;

 private:
  struct Element {
    std::uint32_t first = 0, count = 0;  // into Order::coordinates
  };
  struct Cursor {
    std::string_view name;
    LocId loc;
    std::vector<Element> forward;
    std::vector<Element> backward;  // empty: as forward
    std::size_t next_forward = 0, next_backward = 0;
    std::vector<std::uint32_t> queued;  // positions in queue_, in order
    std::size_t next_queued = 0;
    std::int64_t pending = 0;  // of these, not taken
    const std::vector<Element>& backward_elements() const {
      return backward.empty() ? forward : backward;
    }
  };
  struct Queued {
    Element element;
    bool taken = false;
    LocId loc;
    std::int32_t cursor = -1;  // that made it; -1: none
  };
  /// A step whose queue operations wait until all slots are known.
  struct Slot {
    std::int64_t slot = 0;
    std::uint32_t step = 0;
    LocId loc;
    SourceRange range;
  };
  struct Deferred {
    std::uint32_t op = 0;      // into Order::ops
    std::int32_t cursor = -1;  // BW of this cursor; -1 and no coordinates: the oldest of all
    const ast::OpExpr* expr = nullptr;
  };

  std::uint32_t add_step(const ast::Step& step, Frame& frame);
  std::uint32_t add_member(const ast::StepMember& member, Frame& frame);
  std::uint32_t add_op(const ast::OpExpr& op, Frame& frame);
  std::uint32_t add_list(directive::OrderStep::Kind kind, std::vector<std::uint32_t> children,
                         LocId loc);
  std::uint32_t emit(Pass pass, std::span<const Element> elements, directive::CommClass part,
                     LocId loc);
  std::uint32_t emit(Pass pass, const Element& element, LocId loc) {
    return emit(pass, {&element, 1}, directive::CommClass::none, loc);
  }
  std::uint32_t explicit_op(const ast::OpExpr& op, Frame& frame);
  /// `BW`, of a cursor or (-1) the oldest of all.
  std::uint32_t queued_op(const ast::OpExpr& op, std::int32_t cursor, LocId loc, Frame& frame);
  /// `F`, `B` or `BI` of a cursor that has nothing left.
  void fail_exhausted(const ast::OpExpr& op, const Cursor& cursor, std::size_t used, Frame& frame);
  Element take(Queued& queued);
  /// Takes the pending weight gradient of these coordinates; false when there is none.
  bool take_same(const Element& element);
  /// The `BI` of these coordinates on a rank before this one; null if there is none, or this rank
  /// has one.
  const directive::OrderOp* on_earlier_rank(const Element& element) const;
  /// A pending weight gradient with more or fewer coordinates than these and none that differs;
  /// null if there is none.
  const Queued* pending_that_meets(const Element& element) const;
  std::optional<Element> take_queued(const ast::OpExpr& op, std::int32_t cursor, Frame& frame);
  void fail_nothing_pending(const ast::OpExpr& op, std::int32_t cursor, Frame& frame);
  void enqueue(Element element, std::int32_t cursor, LocId loc);
  /// The elements that a cursor's list names.
  std::vector<Element> expand(const ast::Expr& expr, Frame& frame);
  void expand_selector(const directive::Selector& selector, SourceRange range,
                       std::vector<Element>& out, Frame& frame);
  bool same(const Element& a, const Element& b) const;
  std::uint64_t key(const Element& element) const;
  bool less(const Element& a, const Element& b) const;
  std::string text(const Element& element) const;
  std::string list_text(std::span<const Element> elements) const;
  LocId op_location(const ast::OpExpr& op, const Frame& frame) {
    CachedLoc& cached =
        loc_cache_[(reinterpret_cast<std::uintptr_t>(&op) >> 4) % std::size(loc_cache_)];
    if (cached.op != &op || cached.caller != frame.caller)
      cached = {&op, frame.caller, evaluator_->here(op.range, frame)};
    return cached.loc;
  }
  void finish_slots(Frame& frame);
  void resolve_queue_in_slot_order(std::uint32_t step, Frame& frame);
  void resolve_queue(std::uint32_t op, Frame& frame);

  Evaluator* evaluator_;
  directive::Order* order_;
  std::vector<Cursor> cursors_;
  std::vector<Queued> queue_;
  std::size_t queue_head_ = 0;
  // Positions in queue_ of equal elements, ascending.
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> queued_by_key_;
  // of queue_: cursors take from their own lists, so keys are made when an element is asked for
  std::uint32_t num_keyed_ = 0;
  std::int64_t pending_ = 0;                       // not taken
  std::vector<std::vector<std::uint32_t>> lists_;  // open step lists, the innermost last
  std::vector<Slot> slots_;
  std::vector<Deferred> deferred_;
  bool in_slot_ = false;
  bool has_plain_steps_ = false;
  SourceRange plain_step_;
  struct CachedLoc {
    const ast::OpExpr* op = nullptr;
    LocId caller, loc;
  };
  CachedLoc loc_cache_[64];
  std::size_t first_op_;  // of this rank: into Order::ops
};

}  // namespace piper::lower
