#include "tests/passes/order_program.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/compile.h"

namespace piper::test {

OrderedOp OrderProgram::op(Pass pass, std::uint32_t stage, std::uint32_t mb, int group) {
  return {pass, {{context.symbol("stage"), stage}, {context.symbol("mb"), mb}}, group};
}

std::vector<OrderedOp> OrderProgram::gpipe(std::uint32_t stage) {
  std::vector<OrderedOp> ops;
  for (const Pass pass : {Pass::F, Pass::B}) {
    for (std::uint32_t i = 0; i < microbatches; ++i) ops.push_back(op(pass, stage, i));
  }
  return ops;
}

directive::Order OrderProgram::overlapped() {
  return order(
      {{rank(0), gpipe(0)},
       {rank(1),
        {op(Pass::F, 1, 0), op(Pass::F, 1, 1, 1), op(Pass::B, 1, 0, 1), op(Pass::B, 1, 1)}}});
}

directive::Selector OrderProgram::part(std::vector<Index> coordinates, directive::CommClass part) {
  directive::Selector selector = build.selector(std::move(coordinates));
  selector.part = part;
  selector.loc = build.next_line();
  return selector;
}

void OrderProgram::stream(std::string_view name, std::vector<directive::Selector> targets,
                          std::optional<std::uint32_t> window) {
  build.add(directive::Stream{context.symbol(name), std::move(targets), window,
                              directive::Priority::normal, build.next_line()});
}

std::optional<dag::Dag> OrderProgram::compile(std::int64_t batch) {
  tensor::Graph model =
      mlp_chain(context, {.layers = std::max(2u, stages), .batch = batch, .dim = 2, .hidden = 3});
  passes::Options options;
  options.verify_each = true;
  return test::compile(model, build.strategy(), sink, options);
}

std::string OrderProgram::sequence(const dag::Dag& dag, std::uint32_t r) {
  std::string text;
  std::uint32_t group = dag::Dag::kNoGroup;
  const DeviceSet set{{static_cast<std::int32_t>(r)}};
  for (const dag::NodeId id : dag.order) {
    const dag::Node& node = dag.node(id);
    if (!runs_body(node.kind) || !dag.device_sets[node.devices].contains(set)) continue;
    const std::uint32_t now = dag.group.empty() ? dag::Dag::kNoGroup : dag.group[id.index()];
    if (now != group && group != dag::Dag::kNoGroup) text += "]";
    if (!text.empty()) text += " ";
    if (now != group && now != dag::Dag::kNoGroup) text += "[";
    group = now;
    text += std::string(pass_name(node.pass)) +
            std::to_string(*dag.regions.coordinate(dag.chunks[node.chunk.index()].region,
                                                   context.symbol("stage"))) +
            "." + std::to_string(node.instance.at[0]);
  }
  return group == dag::Dag::kNoGroup ? text : text + "]";
}

Diagnostic expect_error(OrderProgram& program, Code code, std::string_view message,
                        std::int64_t batch) {
  EXPECT_FALSE(program.compile(batch));
  const std::vector<Diagnostic> found = program.sink.sorted();
  EXPECT_EQ(found.size(), 1u) << program.reports();
  if (found.empty()) return {};
  EXPECT_EQ(found[0].code, code) << program.reports();
  EXPECT_EQ(found[0].message, message);
  EXPECT_TRUE(found[0].range.valid() || code == Code::too_many_streams);
  // The hint of a measure names the values tried; the passes by themselves try none.
  EXPECT_EQ(found[0].hint.empty(), code == Code::measure_out_of_bounds);
  return found[0];
}

}  // namespace piper::test
