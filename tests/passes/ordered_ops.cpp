#include "tests/passes/ordered_ops.h"

namespace piper::test {

directive::Order make_order(
    Context& context, const std::vector<std::pair<DeviceSetId, std::vector<OrderedOp>>>& ranks) {
  directive::Order order;
  const FileId file = context.locations.files().add_without_text("order.pipe");
  std::uint32_t line = 0;
  const auto next_line = [&] {
    ++line;
    SourceTable& files = context.locations.files();
    return context.locations.intern(
        {file, files.offset(file, {line, 1}), files.offset(file, {line, 9})});
  };
  order.loc = next_line();
  for (const auto& [devices, ops] : ranks) {
    const LocId loc = next_line();
    std::vector<std::uint32_t> steps;
    const auto op_step = [&](const OrderedOp& op) {
      const LocId at = next_line();
      order.steps.push_back(
          {directive::OrderStep::Kind::op, static_cast<std::uint32_t>(order.ops.size()), 1, at});
      order.ops.push_back({op.pass, directive::CommClass::none,
                           static_cast<std::uint32_t>(order.coordinates.size()),
                           static_cast<std::uint32_t>(op.at.size()), at});
      for (const auto& [name, index] : op.at) order.coordinates.push_back({name, index, false});
      return static_cast<std::uint32_t>(order.steps.size() - 1);
    };
    for (std::size_t i = 0; i < ops.size();) {
      std::size_t next = i + 1;
      while (ops[i].group >= 0 && next < ops.size() && ops[next].group == ops[i].group) ++next;
      std::vector<std::uint32_t> members;
      for (std::size_t k = i; k < next; ++k) members.push_back(op_step(ops[k]));
      if (members.size() == 1) {
        steps.push_back(members[0]);
      } else {
        steps.push_back(static_cast<std::uint32_t>(order.steps.size()));
        order.steps.push_back({directive::OrderStep::Kind::group,
                               static_cast<std::uint32_t>(order.children.size()),
                               static_cast<std::uint32_t>(members.size()), next_line()});
        order.children.insert(order.children.end(), members.begin(), members.end());
      }
      i = next;
    }
    order.ranks.push_back({devices, static_cast<std::uint32_t>(order.children.size()),
                           static_cast<std::uint32_t>(steps.size()), loc});
    order.children.insert(order.children.end(), steps.begin(), steps.end());
  }
  return order;
}

}  // namespace piper::test
