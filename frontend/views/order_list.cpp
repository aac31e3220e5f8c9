#include "frontend/views/order_list.h"

#include <algorithm>
#include <span>

namespace piper::views {

using directive::Order;
using directive::OrderOp;
using directive::OrderStep;

namespace {

class Writer {
 public:
  Writer(const Order& order, std::span<const Symbol> dims, const DeviceSetTable& device_sets,
         const Mesh& mesh, const SymbolTable& symbols)
      : order_(order), dims_(dims), device_sets_(device_sets), mesh_(mesh), symbols_(symbols) {}

  std::string run() {
    std::string text = "order {\n";
    for (const directive::RankSteps& rank : order_.ranks) {
      text += "    rank " + coordinates(device_sets_[rank.devices]) + " {\n";
      for (std::uint32_t i = 0; i < rank.num_steps; ++i)
        text += "        " + step(order_.children[rank.first_step + i], true) + "\n";
      text += "    }\n";
    }
    return text + "}\n";
  }

 private:
  /// `_pp in pp[0], _dp in dp[1]`. All devices are the coordinates of one axis, because replicas
  /// run the same operations.
  std::string coordinates(const DeviceSet& set) const {
    std::string text;
    for (std::size_t axis = 0; axis < set.at.size(); ++axis) {
      if (set.at[axis] == DeviceSet::kWhole) continue;
      const std::string name(symbols_.text(mesh_.axes[axis].name));
      text += (text.empty() ? "_" : ", _") + name + " in " + name + "[" +
              std::to_string(set.at[axis]) + "]";
    }
    if (!text.empty() || mesh_.axes.empty()) return text;
    const std::string name(symbols_.text(mesh_.axes.front().name));
    return "_" + name + " in " + name;
  }

  std::string step(std::uint32_t index, bool outermost) const {
    const OrderStep& step = order_.steps[index];
    if (step.kind == OrderStep::Kind::op) {
      const auto ops = std::span(order_.ops).subspan(step.first, step.count);
      std::string text;
      for (const OrderOp& op : ops) text += (text.empty() ? "" : "; ") + this->op(op);
      return ops.size() == 1 || outermost ? text : "{ " + text + " }";
    }
    const bool group = step.kind == OrderStep::Kind::group;
    std::string text;
    for (std::uint32_t i = 0; i < step.count; ++i)
      text += (text.empty() ? ""
               : group      ? " & "
                            : "; ") +
              this->step(order_.children[step.first + i], false);
    return outermost && group ? text : "{ " + text + " }";
  }

  /// A communication stands behind its region: `F stage[0].send mb[1]`.
  std::string op(const OrderOp& op) const {
    std::string region, instance;
    for (std::uint32_t i = 0; i < op.num_coordinates; ++i) {
      const directive::OrderCoordinate& at = order_.coordinates[op.first_coordinate + i];
      const std::string index = at.all ? "" : "[" + std::to_string(at.index) + "]";
      const std::string name(symbols_.text(at.name));
      if (!at.rest && std::find(dims_.begin(), dims_.end(), at.name) != dims_.end()) {
        instance += " " + name + index;
      } else if (at.rest) {
        region += (region.empty() ? "model" : "") + (".rest" + index);
      } else {
        region += (region.empty() ? "" : ".") + name + index;
      }
    }
    if (region.empty()) region = "model";
    const std::string part = op.part == directive::CommClass::none
                                 ? ""
                                 : "." + std::string(directive::part_name(op.part));
    return std::string(pass_name(op.pass)) + " " + region + part + instance;
  }

  const Order& order_;
  std::span<const Symbol> dims_;
  const DeviceSetTable& device_sets_;
  const Mesh& mesh_;
  const SymbolTable& symbols_;
};

}  // namespace

std::string order_list(const Order& order, std::span<const Symbol> dims,
                       const DeviceSetTable& device_sets, const Mesh& mesh,
                       const SymbolTable& symbols) {
  return Writer(order, dims, device_sets, mesh, symbols).run();
}

}  // namespace piper::views
