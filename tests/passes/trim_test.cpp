// `trim` is a function from orders to orders: its result, and that it composes.

#include <gtest/gtest.h>

#include "ir/context.h"
#include "passes/order/evaluate_orders.h"
#include "passes/order/trim.h"

namespace piper::passes {
namespace {

using namespace directive;

/// Operations have one coordinate, their index along `mb`.
class OrderText {
 public:
  explicit OrderText(Symbol dim) : dim_(dim) {}

  std::uint32_t op(std::initializer_list<std::uint32_t> indices) {
    const auto first = static_cast<std::uint32_t>(order.ops.size());
    for (const std::uint32_t index : indices) {
      order.ops.push_back(
          {Pass::F, CommClass::none, static_cast<std::uint32_t>(order.coordinates.size()), 1, {}});
      order.coordinates.push_back({.name = dim_, .index = index});
    }
    return add({OrderStep::Kind::op, first, static_cast<std::uint32_t>(indices.size()), {}});
  }
  std::uint32_t several(OrderStep::Kind kind, std::initializer_list<std::uint32_t> steps) {
    const auto first = static_cast<std::uint32_t>(order.children.size());
    order.children.insert(order.children.end(), steps);
    return add({kind, first, static_cast<std::uint32_t>(steps.size()), {}});
  }
  void rank(std::initializer_list<std::uint32_t> steps) {
    order.ranks.push_back({DeviceSetId(0),
                           static_cast<std::uint32_t>(order.children.size()),
                           static_cast<std::uint32_t>(steps.size()),
                           {}});
    order.children.insert(order.children.end(), steps);
  }
  Order order;

 private:
  std::uint32_t add(const OrderStep& step) {
    order.steps.push_back(step);
    return static_cast<std::uint32_t>(order.steps.size() - 1);
  }
  Symbol dim_;
};

std::string text_of(const Order& order, const OrderStep& step) {
  std::string text;
  if (step.kind == OrderStep::Kind::op) {
    for (std::uint32_t i = 0; i < step.count; ++i)
      text += (i > 0 ? "+" : "") +
              std::to_string(order.coordinates[order.ops[step.first + i].first_coordinate].index);
    return text;
  }
  for (std::uint32_t i = 0; i < step.count; ++i)
    text += (i > 0 ? (step.kind == OrderStep::Kind::group ? "&" : ";") : "") +
            text_of(order, order.steps[order.children[step.first + i]]);
  return "{" + text + "}";
}

std::string text_of(const Order& order) {
  std::string text;
  for (const RankSteps& rank : order.ranks) {
    for (std::uint32_t i = 0; i < rank.num_steps; ++i)
      text += (i > 0 ? " " : "") + text_of(order, order.steps[order.children[rank.first_step + i]]);
    text += "\n";
  }
  return text;
}

OrderText sample(Symbol dim) {
  OrderText text(dim);
  const auto group = text.several(OrderStep::Kind::group, {text.op({7}), text.op({1})});
  const auto nested =
      text.several(OrderStep::Kind::sequence,
                   {text.op({8}), text.several(OrderStep::Kind::sequence, {text.op({9})})});
  text.rank({text.op({0}), group, nested, text.op({2, 6, 3})});
  text.rank({text.op({5})});
  return text;
}

TEST(Trim, LeavesWhatIsBelowTheBound) {
  Context context;
  const Symbol mb = context.symbols.intern("mb"), copy = context.symbols.intern("copy");
  const Order order = sample(mb).order;
  EXPECT_EQ(text_of(order), "0 {7&1} {8;{9}} 2+6+3\n5\n");
  EXPECT_EQ(text_of(trim(order, mb, 10)), text_of(order));
  EXPECT_EQ(text_of(trim(order, copy, 0)), text_of(order));
  EXPECT_EQ(text_of(trim(order, mb, 9)), "0 {7&1} {8} 2+6+3\n5\n");
  EXPECT_EQ(text_of(trim(order, mb, 6)), "0 {1} 2+3\n5\n");
  EXPECT_EQ(text_of(trim(order, mb, 0)), "\n\n");
  for (std::uint32_t a = 0; a < 11; ++a) {
    for (std::uint32_t b = 0; b < 11; ++b)
      EXPECT_EQ(text_of(trim(trim(order, mb, a), mb, b)), text_of(trim(order, mb, std::min(a, b))));
  }
}

TEST(Trim, IsEvaluatedWhereItsDimensionIsKnown) {
  Context context;
  const Symbol mb = context.symbols.intern("mb"), other = context.symbols.intern("other");
  Strategy strategy;
  Order order = sample(mb).order;
  order.trims = {{mb, 6, {}}, {other, 1, {}}, {mb, 1, {}}};
  strategy.directives = {Split{.dim = {}, .into = {{mb, 10}}, .targets = {}, .loc = {}}, order};
  evaluate_orders(strategy);
  const Order& left = std::get<Order>(strategy.directives[1]);
  EXPECT_EQ(text_of(left), "0\n\n");
  ASSERT_EQ(left.trims.size(), 1u);
  EXPECT_EQ(left.trims[0].dim, other);
}

}  // namespace
}  // namespace piper::passes
