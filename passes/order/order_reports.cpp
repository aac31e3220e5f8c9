#include "passes/order/order_reports.h"

#include <algorithm>
#include <tuple>
#include <variant>

#include "ir/dag/segment_text.h"

namespace piper::passes {

using namespace dag;
using directive::CommClass;
using directive::Order;
using directive::OrderOp;
using directive::OrderStep;
using directive::RankSteps;

namespace {

std::string chunk_text(const SegmentTexts& texts, const Node& node) {
  return std::string(pass_name(node.pass)) + " " + texts.of(node.chunk);
}

/// `F stage[1] mb[3..8], B stage[1] mb[2]`: runs along the last dimension are joined.
std::string list_text(const Dag& dag, std::vector<NodeId> nodes) {
  const std::size_t last = dag.dims.empty() ? 0 : dag.dims.size() - 1;
  const auto head = [&](const Node& node) {
    Instance instance = node.instance;
    instance.at[last] = Instance::kNone;
    return std::tuple(node.pass, node.chunk, instance);
  };
  std::sort(nodes.begin(), nodes.end(), [&](NodeId a, NodeId b) {
    const Node &x = dag.node(a), &y = dag.node(b);
    return std::tuple(head(x), x.instance.at[last]) < std::tuple(head(y), y.instance.at[last]);
  });
  const SegmentTexts texts(dag);
  std::string text;
  std::size_t items = 0;
  for (std::size_t i = 0; i < nodes.size(); ++items) {
    const Node& node = dag.node(nodes[i]);
    std::size_t next = i + 1;
    while (next < nodes.size() && head(dag.node(nodes[next])) == head(node) &&
           dag.node(nodes[next]).instance.at[last] ==
               dag.node(nodes[next - 1]).instance.at[last] + 1) {
      ++next;
    }
    if (items == 6) {
      std::size_t left = nodes.size() - i;
      return text + " and " + std::to_string(left) + " more";
    }
    if (items > 0) text += ", ";
    text += "`" + chunk_text(texts, node);
    for (std::size_t d = 0; d < dag.dims.size(); ++d) {
      const std::int32_t index = node.instance.at[d];
      if (index == Instance::kNone) continue;
      text += " " + std::string(dag.context->text(dag.dims[d].name)) + "[" + std::to_string(index);
      if (d == last && next > i + 1)
        text += ".." + std::to_string(dag.node(nodes[next - 1]).instance.at[d] + 1);
      text += "]";
    }
    text += "`";
    i = next;
  }
  return text;
}

}  // namespace

std::string work_text(const Dag& dag, NodeId id) {
  const Node& node = dag.node(id);
  if (node.reduces_gradients() || gathers_shards(node.kind)) {
    // The bucket's first contribution, because a reduction covers all microbatches.
    const Node* source = &node;
    while (!runs_body(source->kind))
      source = &dag.node(dag.inputs_of(dag.adding_member(*source)).front().source.node);
    return chunk_text(SegmentTexts(dag), *source) +
           (gathers_shards(node.kind) ? ".gather" : ".reduce");
  }
  if (!runs_body(node.kind) && (!node.chunk.valid() || !is_message(node.kind))) return dag.name(id);
  const std::string quoted = list_text(dag, {id});
  std::string text = quoted.substr(1, quoted.size() - 2);
  if (runs_body(node.kind)) return text;
  const std::size_t region = text.find(' ') + 1;
  return text.insert(std::min(text.find(' ', region), text.size()),
                     is_send(node.kind) ? ".send" : ".recv");
}

void OrderReports::claims_too_much(const RankSteps& rank, NodeId node) {
  sink_
      .report(Code::order_claims_too_much, rank.loc,
              "the order of `{}` covers devices with different work: `{}` runs on `{}` alone",
              dag_.text(rank.devices), work_text(dag_, node), dag_.text(dag_.node(node).devices))
      .hint("claim finer ranks, `rank r in …, d in …`");
}

void OrderReports::lacks_work(const RankSteps& rank, const std::vector<NodeId>& missing) {
  auto report = sink_.report(Code::order_lacks_work, rank.loc, "the order of `{}` lacks {}",
                             dag_.text(rank.devices), list_text(dag_, missing));
  if (const directive::Place* place = place_of(missing.front()))
    report.related(place->loc, "`{}` is placed here", work_text(dag_, missing.front()));
  report.hint(
      "an order that names a rank names all of its work; without an order a default is chosen");
}

void OrderReports::elsewhere(const RankOp& at, NodeId node, bool wider) {
  const auto& [order, op, rank] = at;
  const DeviceSetId devices = dag_.node(node).devices;
  // For a cursor the list has the error, not the operations that walk through it.
  const bool listed = order.written_at(op) != op.loc;
  const LocId loc = listed ? directive::narrowest(order.coordinates[op.first_coordinate].loc,
                                                  order.written_at(op))
                           : op.loc;
  auto report = sink_.report(
      Code::order_on_other_devices, loc, "`{}` stands in the order of `{}`, but it runs on `{}`",
      op.part == CommClass::none ? work_text(dag_, node) : op_text(at, op.pass, op.part),
      dag_.text(rank.devices), dag_.text(devices));
  if (listed) report.related(op.loc, "it is used here");
  if (const directive::Place* place = place_of(node))
    report.related(place->loc, "it is placed here");
  if (wider) {
    report.hint(
        "the order claims more devices than run it: claim finer ranks, `rank r in …, d in …`");
  } else {
    report.hint("put it into the order of a rank of `{}`", dag_.text(devices));
  }
}

void OrderReports::repeated(const RankOp& at, NodeId node, LocId first) {
  const auto& [order, op, rank] = at;
  auto report =
      sink_.report(Code::order_repeats_work, op.loc, "`{}` stands twice in the order of `{}`",
                   work_text(dag_, node), dag_.text(rank.devices));
  if (first != op.loc) {
    report.related(first, "it stands here first");
  } else if (order.written_at(op) != op.loc) {
    report.related(order.written_at(op), "the cursor walks through this");
  }
  report.hint("each operation runs once in a step");
}

void OrderReports::members_dependent(const OrderStep& group, NamedNode x, NamedNode y,
                                     bool forward) {
  const std::string x_text = work_text(dag_, x.node), y_text = work_text(dag_, y.node);
  sink_
      .report(Code::group_members_dependent, group.loc,
              "`{}` and `{}` overlap in one group, but `{}` needs what `{}` makes", x_text, y_text,
              forward ? y_text : x_text, forward ? x_text : y_text)
      .related(x.loc, "`{}` is here", x_text)
      .related(y.loc, "`{}` is here", y_text)
      .hint("put them one after the other");
}

void OrderReports::gathered_late(const RankOp& at, NodeId node, LocId where) {
  auto report = sink_.report(Code::gather_misplaced, at.op.loc,
                             "`{}` stands behind `{}`, which reads the parameters that it gathers",
                             op_text(at, at.op.pass, CommClass::gather), work_text(dag_, node));
  report.related(where, "they are read here");
  report.hint("name the gather before that");
}

void OrderReports::gathered_differently(const RankSteps& rank, const Dag::GatherInterval& gather,
                                        const Dag::GatherInterval& other) {
  auto report = sink_.report(
      Code::gather_misplaced, gather.loc,
      "on `{}` this gather is for {}, and on replicas, which gather together with it, one is for {}",
      dag_.text(rank.devices), list_text(dag_, gather.uses), list_text(dag_, other.uses));
  report.related(other.loc, "the gather of the others");
  report.hint("let the orders of replicas name the same gathers");
}

void OrderReports::named_apart(const RankOp& at, const std::vector<NodeId>& behind,
                               const RankSteps& other, const RankOp* other_at,
                               const std::vector<NodeId>& other_behind) {
  const auto where = [&](const std::vector<NodeId>& work) {
    return work.empty() ? std::string("at the beginning") : "behind " + list_text(dag_, work);
  };
  auto report = sink_.report(
      Code::order_contradicts_data, at.op.loc,
      "`{}` stands {} in the order of `{}`, and {} in the order of `{}`, which runs the same work",
      op_text(at, at.op.pass, at.op.part), where(behind), dag_.text(at.rank.devices),
      other_at != nullptr ? where(other_behind) : "is not named", dag_.text(other.devices));
  if (other_at != nullptr) {
    report.related(other_at->op.loc, "here it stands elsewhere");
  } else {
    report.related(other.loc, "this order does not name it");
  }
  report.hint("replicas run the same operations in one order: give all of them the same steps");
}

void OrderReports::no_communication(const RankOp& at, NodeId node) {
  const OrderOp& op = at.op;
  const char* what = op.part == CommClass::send     ? "is sent to other devices"
                     : op.part == CommClass::recv   ? "comes from other devices"
                     : op.part == CommClass::gather ? "is gathered"
                                                    : "is reduced over devices";
  auto report = sink_.report(Code::no_such_communication, op.loc,
                             "`{}` has no `.{}` on `{}`: nothing of it {}", work_text(dag_, node),
                             directive::part_name(op.part), dag_.text(at.rank.devices), what);
  if (op.part == CommClass::reduce && op.pass != Pass::B && op.pass != Pass::BW) {
    const Node& work = dag_.node(node);
    const bool halves =
        selection_.work()
            .at(work.chunk, Pass::BW, selection_.instances().position(work.instance))
            .valid();
    report.hint("gradients of weights come from `{}`: write `{}`", halves ? "BW" : "B",
                op_text(at, halves ? Pass::BW : Pass::B, CommClass::reduce, false));
  } else if (op.part == CommClass::gather) {
    report.hint(
        "parameters are gathered before work that reads them if `replicate` shards them, with `zero: 3`");
  } else {
    report.hint("leave the operation out");
  }
}

void OrderReports::repeated_communication(const RankOp& at, LocId first) {
  const OrderOp& op = at.op;
  const char* what = op.part == CommClass::send     ? "send"
                     : op.part == CommClass::recv   ? "receive"
                     : op.part == CommClass::gather ? "gather"
                                                    : "reduction";
  auto report = sink_.report(Code::order_repeats_work, op.loc,
                             "the {} of `{}` stands twice in the order of `{}`", what,
                             op_text(at, op.pass, CommClass::none), dag_.text(at.rank.devices));
  report.related(first, "it stands here first");
  if (op.part == CommClass::reduce && !dag_.dims.empty()) {
    report.hint(
        "what is named is the reduction after which all gradients of the batch are summed: name `{}` once, after the last `{}`",
        op_text(at, op.pass, op.part, false), pass_name(op.pass));
  } else if (op.part == CommClass::gather) {
    report.hint("no work between the two reads what the first brings: leave one out");
  } else {
    report.hint("each operation runs once in a step");
  }
}

std::string OrderReports::op_text(const RankOp& at, Pass pass, CommClass part,
                                  bool with_dims) const {
  std::string region, dims;
  for (std::uint32_t i = 0; i < at.op.num_coordinates; ++i) {
    const directive::OrderCoordinate& coordinate = at.order.coordinates[at.op.first_coordinate + i];
    const bool is_dim = std::any_of(dag_.dims.begin(), dag_.dims.end(), [&](const SplitDim& dim) {
      return dim.name == coordinate.name && !coordinate.rest;
    });
    std::string& text = is_dim ? dims : region;
    if (!is_dim && !region.empty() && !coordinate.rest) text += ".";
    text +=
        directive::coordinate_text(dag_.context->text(coordinate.name), coordinate.rest, !is_dim);
    if (!coordinate.all) text += "[" + std::to_string(coordinate.index) + "]";
  }
  if (region.empty()) region = "model";
  if (part != CommClass::none) region += "." + std::string(directive::part_name(part));
  return std::string(pass_name(pass)) + " " + region + (with_dims ? dims : std::string());
}

const directive::Place* OrderReports::place_of(NodeId node) {
  DiagnosticSink ignored(sink_.locations());
  std::vector<NodeId> nodes;
  const directive::Place* place = nullptr;
  const directive::Selector* by = nullptr;
  for (const directive::Directive& directive : strategy_.directives) {
    const auto* other = std::get_if<directive::Place>(&directive);
    if (other == nullptr || other->devices != dag_.node(node).devices) continue;
    for (const directive::Selector& target : other->targets) {
      if (place != nullptr && !directive::holds_over(*other, target, *place, *by)) continue;
      nodes.clear();
      if (!selection_.nodes(target, ignored, nodes) ||
          std::find(nodes.begin(), nodes.end(), node) == nodes.end())
        continue;
      place = other;
      by = &target;
    }
  }
  return place;
}

}  // namespace piper::passes
