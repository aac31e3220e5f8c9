// Every op of the table, alone, in f64, f32 and bf16: the evaluator against the reference,
// generated code against the evaluator bit for bit.

#include <gtest/gtest.h>

#include "runtime/kernel_math.h"
#include "tests/backend/kernel_runs.h"
#include "tests/support/op_cases.h"

namespace piper::test {
namespace {

using tensor::Dim;
using tensor::DType;
using tensor::Op;
using tensor::Type;
using tensor::ValueId;

/// The op's case in another element type.
OpCase with_dtype(OpCase op_case, DType dtype) {
  for (std::size_t i = 0; i < op_case.operands.size(); ++i) {
    // Sums are wide.
    const bool sum = (op_case.op == Op::cross_entropy_grad && i == 2) ||
                     (op_case.op == Op::attend_grad && i == 4) ||
                     (op_case.op == Op::contract_add && i == 2);
    if (op_case.operands[i].dtype != DType::i64)
      op_case.operands[i].dtype = sum ? tensor::wide(dtype) : dtype;
  }
  if (op_case.attrs.shape.dtype != DType::i64)
    op_case.attrs.shape.dtype = op_case.op == Op::lookup_grad ? tensor::wide(dtype) : dtype;
  return op_case;
}

// For bf16 one unit in the last place: rounded values differ in f32.
double bound_of(DType dtype) {
  return dtype == DType::f64 ? 1e-12 : dtype == DType::f32 ? 2e-5 : 0x1p-7;
}

class KernelOps : public testing::TestWithParam<backend::Target> {};

TEST_P(KernelOps, EveryOp) {
  Context context;
  KernelRuns runs(GetParam());
  Random random(1);
  for (const tensor::OpInfo& info : tensor::all_ops()) {
    for (const OpCase& f64_case : cases_of(info.op, context)) {
      for (DType dtype : {DType::f64, DType::f32, DType::bf16}) {
        const OpCase op_case = with_dtype(f64_case, dtype);
        std::vector<Array> inputs = random_operands(op_case, context.symbols, random);
        tensor::Graph graph(context);
        std::vector<ValueId> operands;
        for (std::size_t i = 0; i < op_case.operands.size(); ++i) {
          operands.push_back(
              graph.add_leaf(op_case.operands[i], context.symbol("x" + std::to_string(i))));
          if (op_case.operands[i].dtype == DType::f32) {
            for (double& number : inputs[i].data) number = static_cast<float>(number);
          } else if (op_case.operands[i].dtype == DType::bf16) {
            for (double& number : inputs[i].data)
              number = piper_round_bf16(static_cast<float>(number));
          }
        }
        const tensor::NodeId node = graph.add(op_case.op, operands, op_case.attrs, Pass::F, {}, {},
                                              {}, context.symbol("y"));
        std::vector<ValueId> results;
        for (std::size_t r = 0; r < info.results; ++r)
          results.push_back(graph.result(graph.node(node), r));
        DropoutMask keeps;
        if (info.op == Op::dropout)
          keeps = keeps_as_kernels(graph.type(results[0]), op_case.attrs.scalar,
                                   std::string(context.text(op_case.attrs.seed)));
        const std::string what = std::string(info.name) + " (" + op_case.what + ") in " +
                                 std::string(tensor::dtype_name(dtype));
        for (const bool grad : {false, true}) {
          if (grad && (info.results != 1 || tensor::is_narrow(graph.type(results[0]).dtype)))
            continue;
          dag::Body body = make_body(graph, results, "case");
          if (grad) body.outputs[0].kind = dag::PortKind::grad;
          runs.add(what, std::move(body), inputs, {static_cast<std::uint8_t>(grad ? 1 : 0)},
                   bound_of(dtype), {}, keeps);
        }
      }
    }
  }
  EXPECT_GT(runs.size(), 200u);
  runs.check("-O1 -ftree-vectorize -march=native");
}

INSTANTIATE_TEST_SUITE_P(Targets, KernelOps,
                         testing::Values(backend::Target::cpu, backend::Target::cuda));

}  // namespace
}  // namespace piper::test
