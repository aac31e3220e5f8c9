// Transforms of orders, `greedy` and `search` (grammar/README.md section 7, item 10): arguments and
// diagnostics. ir/orders has the transforms.

#include <algorithm>
#include <cmath>

#include "frontend/ast/source_text.h"
#include "frontend/lower/schedule/schedule_builder.h"
#include "ir/diagnostics/counted.h"
#include "ir/orders/compact.h"
#include "ir/orders/fill.h"
#include "ir/orders/greedy.h"
#include "ir/orders/only.h"
#include "ir/orders/postpone.h"
#include "ir/orders/rearrange.h"
#include "ir/orders/search/search.h"
#include "ir/orders/squeeze.h"

namespace piper::lower {

using llvm::cast;
using sema::Builtin;

namespace {

/// A number of microbatches, rounded up to four digits behind the point: `4`, `2.6667`.
std::string amount_text(double amount) {
  const double rounded = std::ceil(amount * 10000 - 0.01) / 10000;
  std::string text = std::to_string(rounded);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

/// One call; a function gives no value after a failure.
class OrderCall {
 public:
  OrderCall(Evaluator& evaluator, Builtin id, const ast::CallExpr& expr, Frame& frame)
      : evaluator_(evaluator),
        id_(id),
        expr_(expr),
        frame_(frame),
        name_(sema::signature(id).name) {}

  Value greedy() {
    orders::GreedyRule rule;
    if (const ast::OpExpr* op = operation(0); op != nullptr) prefer(rule, op->pass);
    rule.cap = cap(1);
    read_times(rule, 2);
    const auto work = placed_parts();
    if (!work || !steps(work->rank_of.size())) return {};
    const orders::GreedyOrder list = orders::greedy(*work, rule);
    if (list.min_cap) return small_cap(*rule.cap, *list.min_cap, list.largest);
    return order_of(*work, list.lists);
  }

  Value search() {
    orders::SearchRule rule;
    if (value(0) != nullptr) {
      const Value chosen = argument(0);
      if (const auto* objective = chosen.get<orders::Objective>()) rule.minimize = *objective;
    }
    rule.cap = cap(1);
    const auto tries = count(2), seed = count(3);
    read_times(rule, 4);
    const auto work = placed_parts();
    if (!work) return {};
    const std::uint64_t operations = work->rank_of.size() * (rule.split_backward ? 3 : 2);
    const std::uint64_t max_tries =
        orders::kMaxTimedOperations / std::max<std::uint64_t>(operations, 1);
    if (tries && *tries > max_tries) {
      fail(Code::order_number, range(2), "`tries` is `{}`; an order of {} allows {} at most",
           *tries, counted(operations, "operation"), max_tries)
          .hint("leave `tries` out for a number that fits the size");
      return {};
    }
    rule.tries = tries.value_or(orders::default_tries(operations));
    rule.seed = seed.value_or(0);
    if (!steps((rule.tries + orders::kTimesOfStarts) * operations / kTimedInAStep)) return {};
    const orders::SearchedOrder found = orders::search(*work, rule);
    if (found.min_cap) return small_cap(*rule.cap, *found.min_cap, found.largest);
    return order_of(*work, found.lists);
  }

  Value transform(Builtin id) {
    Value base = evaluator_.eval(*cast<ast::FieldExpr>(*expr_.callee).base, frame_);
    if (failed()) return {};
    if (evaluator_.schedule == nullptr) return misplaced();
    const auto facts = evaluator_.schedule->facts(expr_, name_, frame_);
    if (!facts) return {};
    OrderValue value = unshare<OrderValue>(std::move(base));
    if (!steps(value.order.ops.size())) return {};
    orders::OrderTree tree = orders::tree_of(std::move(value));
    orders::apply_trims(tree, orders::names_of(facts->dims));
    apply(id, tree, *facts);
    return failed() ? Value() : share(orders::value_of(std::move(tree)));
  }

 private:
  /// Operations that a search times in one step of evaluation.
  static constexpr std::uint64_t kTimedInAStep = 100;

  /// The arguments from `split_backward` on: that of number `first`.
  void read_times(orders::OrderRule& rule, std::size_t first) {
    rule.split_backward = flag(first);
    rule.f = seconds(first + 1).value_or(1);
    rule.bi = seconds(first + 2).value_or(1);
    rule.bw = seconds(first + 3).value_or(1);
    rule.comm = seconds(first + 4).value_or(0);
  }
  /// The work to order; nothing after a failure.
  std::optional<orders::PlacedParts> placed_parts() {
    if (!failed() && evaluator_.schedule == nullptr) misplaced();
    if (failed()) return std::nullopt;
    return evaluator_.schedule->placed_parts(expr_, name_, frame_);
  }

  Value order_of(const orders::PlacedParts& work, const orders::OperationLists& lists) {
    return share(
        orders::value_of(orders::tree_of(work, lists, evaluator_.here(expr_.range, frame_))));
  }
  Value small_cap(double cap, double min_cap, DeviceSetId largest) {
    fail(Code::cap_too_small, range(1), "no order keeps `cap: {}`: a microbatch needs {} on `{}`",
         amount_text(cap), amount_text(min_cap), set_text(largest))
        .hint("write `cap: {}` or more", amount_text(min_cap));
    return {};
  }

  bool failed() const { return evaluator_.failed(); }

  /// Counts the steps of this call; false after a failure.
  bool steps(std::uint64_t count) { return evaluator_.step(expr_.range, frame_, count + 1); }

  void apply(Builtin id, orders::OrderTree& tree, const orders::Facts& facts) {
    switch (id) {
      case Builtin::before: return rearrange(tree, orders::move_before);
      case Builtin::swap: return rearrange(tree, orders::swap);
      case Builtin::postpone: return postpone(tree);
      case Builtin::only: return only(tree);
      case Builtin::compact: return compact(tree, facts);
      case Builtin::fill:
        if (in_one_way(tree, facts)) orders::fill(tree, facts);
        return;
      case Builtin::squeeze:
        if (in_one_way(tree, facts)) orders::squeeze(tree, orders::OrderGraph(tree, facts));
        return;
      default: return evaluator_.set_failed();
    }
  }

  void postpone(orders::OrderTree& tree) {
    const auto pattern = this->pattern(0);
    const std::int64_t by = evaluator_.to_int(argument(1));
    const auto on = ranks(2);
    if (failed()) return;
    if (by < 1) {
      fail(Code::order_number, range(1), "`postpone` moves work by `{}` steps; at least 1", by)
          .hint("`by` counts the steps of the rank that come between");
      return;
    }
    if (orders::postpone(tree, *pattern, static_cast<std::uint64_t>(by), on) == 0) {
      fail(Code::operation_not_in_order, range(0), "`postpone` finds no `{}` in the order", text(0))
          .hint(
              "an operation is named by its pass and any of its coordinates: `BW`, `BW stage[0] mb[1]`");
    }
  }

  void rearrange(orders::OrderTree& tree,
                 orders::Rearranged (*change)(orders::OrderTree&, const orders::Pattern&,
                                              const orders::Pattern&, const orders::OnRank&)) {
    const auto a = pattern(0), b = pattern(1);
    const auto on = ranks(2);
    if (failed()) return;
    const orders::Rearranged result = change(tree, *a, *b, on);
    if (result.unclear) {
      const std::size_t param = result.unclear->pattern == &*a ? 0 : 1;
      const std::string steps = result.unclear->steps == 1 ? "a part of one step"
                                                           : counted(result.unclear->steps, "step");
      fail(Code::operation_not_unique, range(param), "`{}` names {} of `{}`, and `{}` takes one",
           text(param), steps, set_text(result.unclear->devices), name_)
          .related(result.unclear->step, "this is one of them")
          .hint("add coordinates: `{} stage[0] mb[1]`",
                pass_name(cast<ast::OpExpr>(*value(param)).pass));
    } else if (result.ranks == 0) {
      fail(Code::operation_not_in_order, expr_.range, "no rank of the order has both `{}` and `{}`",
           text(0), text(1));
    }
  }

  void only(orders::OrderTree& tree) {
    const DeviceSetId set = evaluator_.eval_devices(*value(0), frame_);
    if (failed()) return;
    if (orders::only(tree, inside(set))) return;
    fail(Code::operation_not_in_order, range(0), "the order has no rank in `{}`", set_text(set));
  }

  void compact(orders::OrderTree& tree, const orders::Facts& facts) {
    const std::optional<double> cap = this->cap(0);
    if (failed() || !in_one_way(tree, facts)) return;
    for (const orders::RankTree& rank : tree.ranks) {
      const directive::OrderOp* named = nullptr;
      for (const orders::StepTree& step : rank.steps) {
        orders::for_each_op(step, [&](const directive::OrderOp& op) {
          if (op.part != directive::CommClass::none && named == nullptr) named = &op;
        });
      }
      if (named == nullptr) continue;
      fail(Code::work_does_not_move, expr_.range,
           "`compact` moves work, and the order names communication beside it")
          .related(named->loc, "it is named here")
          .hint("leave communication unnamed: it is issued when its input exists");
      return;
    }
    const orders::Compacted result = orders::compact(tree, facts, cap);
    if (result.unknown != nullptr) {
      fail(Code::work_does_not_move, expr_.range,
           "`cap` counts parts of a `partition`, and the order has other work")
          .related(result.unknown->loc, "this is no part of a partition")
          .hint("leave `cap` out, or order the parts of a partition as wholes");
    } else if (result.min_cap) {
      fail(Code::cap_too_small, range(0), "`compact` cannot keep `cap: {}`: `{}` holds more",
           amount_text(*cap), set_text(result.largest))
          .hint("write `cap: {}`, which works here", amount_text(*result.min_cap));
    }
  }

  /// Whether all operations name the same dimensions; reports one that differs.
  bool in_one_way(const orders::OrderTree& tree, const orders::Facts& facts) {
    const directive::OrderOp* other = orders::OrderGraph(tree, facts).other_dimensions();
    if (other == nullptr) return true;
    fail(Code::work_does_not_move, expr_.range,
         "`{}` needs operations that all have indices on the same dimensions", name_)
        .related(other->loc, "this one differs from the first of the order")
        .hint("name one part of the batch in each operation, such as `mb[0]`");
    return false;
  }

  static void prefer(orders::GreedyRule& rule, Pass pass) {
    if (pass == Pass::BI) pass = Pass::B;
    const auto found = std::find(rule.preference.begin(), rule.preference.end(), pass);
    std::rotate(rule.preference.begin(), found, found + 1);
  }

  Value misplaced() {
    fail(Code::placement_not_known, expr_.range, "`{}` is legal in an `order` only", name_)
        .hint("write it behind `order`, or in a function that an `order` calls");
    return {};
  }

  // ---- arguments
  /// The argument of a parameter; null if it is left out.
  const ast::Expr* value(std::size_t param) const {
    const std::int32_t position = expr_.matched[param];
    return position < 0 ? nullptr : expr_.args[static_cast<std::size_t>(position)].value;
  }
  SourceRange range(std::size_t param) const {
    return value(param) != nullptr ? value(param)->range : expr_.range;
  }
  std::string text(std::size_t param) const { return ast::source_text(*value(param)); }
  Value argument(std::size_t param) {
    return failed() ? Value() : evaluator_.argument(expr_, param, frame_).value_or(Value());
  }
  const ast::OpExpr* operation(std::size_t param) const {
    return value(param) != nullptr ? &cast<ast::OpExpr>(*value(param)) : nullptr;
  }

  /// The operations that an argument names; nothing after a failure.
  std::optional<orders::Pattern> pattern(std::size_t param) {
    if (failed()) return std::nullopt;
    const ast::OpExpr& op = *operation(param);
    orders::Pattern pattern;
    pattern.pass = op.pass;
    if (op.operand == nullptr) return pattern;
    directive::Selector selector = evaluator_.eval_selector(*op.operand, frame_);
    if (failed()) return std::nullopt;
    if (selector.part != directive::CommClass::none) {
      fail(Code::work_does_not_move, op.range, "`{}` moves work, and `{}` is communication", name_,
           text(param))
          .hint("named communication stays behind the step that it follows");
      return std::nullopt;
    }
    pattern.coordinates = std::move(selector.coordinates);
    for (directive::Coordinate& coordinate : pattern.coordinates)
      std::sort(coordinate.indices.begin(), coordinate.indices.end());
    return pattern;
  }

  /// The ranks inside a device set; all by default.
  orders::OnRank ranks(std::size_t param) {
    if (failed() || value(param) == nullptr) return [](DeviceSetId) { return true; };
    return inside(evaluator_.eval_devices(*value(param), frame_));
  }
  orders::OnRank inside(DeviceSetId set) {
    if (failed()) return [](DeviceSetId) { return true; };
    return [this, set](DeviceSetId devices) {
      return (*evaluator_.device_sets)[set].contains((*evaluator_.device_sets)[devices]);
    };
  }

  std::optional<double> number(std::size_t param) {
    if (failed() || value(param) == nullptr) return std::nullopt;
    const double number = evaluator_.to_float(argument(param));
    return failed() ? std::nullopt : std::optional(number);
  }
  std::optional<double> cap(std::size_t param) {
    const std::optional<double> cap = number(param);
    if (!cap || (std::isfinite(*cap) && *cap > 0)) return cap;
    fail(Code::order_number, range(param),
         "the cap is `{}`; it is a positive number of microbatches", *cap)
        .hint("leave `cap` out for no bound");
    return std::nullopt;
  }
  std::optional<double> seconds(std::size_t param) {
    const std::optional<double> time = number(param);
    if (!time || (std::isfinite(*time) && *time >= 0)) return time;
    fail(Code::order_number, range(param), "the time of an operation is `{}`; it is 0 or more",
         *time);
    return std::nullopt;
  }
  std::optional<std::uint64_t> count(std::size_t param) {
    if (failed() || value(param) == nullptr) return std::nullopt;
    const std::int64_t number = evaluator_.to_int(argument(param));
    if (failed()) return std::nullopt;
    if (number >= 0) return static_cast<std::uint64_t>(number);
    fail(Code::order_number, range(param), "`{}` of `{}` is `{}`; it is 0 or more",
         sema::signature(id_).params[param].name, name_, number);
    return std::nullopt;
  }
  bool flag(std::size_t param) {
    if (failed() || value(param) == nullptr) return false;
    return evaluator_.eval_bool(*value(param), frame_);
  }

  std::string set_text(DeviceSetId set) const {
    return print((*evaluator_.device_sets)[set], *evaluator_.mesh, evaluator_.context().symbols);
  }

  template <typename... Args>
  DiagnosticBuilder fail(Code code, SourceRange at,
                         MessagePattern<std::type_identity_t<Args>...> pattern,
                         const Args&... args) {
    return evaluator_.fail(code, at, frame_, pattern, args...);
  }

  Evaluator& evaluator_;
  const Builtin id_;
  const ast::CallExpr& expr_;
  Frame& frame_;
  std::string_view name_;
};

}  // namespace

Value Evaluator::eval_order_call(Builtin id, const ast::CallExpr& expr, Frame& frame) {
  OrderCall call(*this, id, expr, frame);
  return id == Builtin::greedy   ? call.greedy()
         : id == Builtin::search ? call.search()
                                 : call.transform(id);
}

}  // namespace piper::lower
