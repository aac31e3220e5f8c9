// Chains of ops that read elements at other places than their own run at every extent from 1 to 17
// and in every type; each op by itself runs at some of these extents, with the types in turn. The
// programs are compiled as those of a train are: vectors are partly used, and the compiler may
// unroll loops. Generated code equals the evaluator bit for bit.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "backend/jit/check_chains.h"
#include "backend/jit/jit.h"
#include "ir/tensor/op_rules.h"
#include "runtime/kernel_math.h"
#include "tests/backend/kernel_runs.h"
#include "tests/support/op_cases.h"

namespace piper::test {
namespace {

using tensor::DType;
using tensor::Op;
using tensor::Type;
using tensor::ValueId;

constexpr std::int64_t kMaxExtent = 17, kBatch = 4;
constexpr DType kTypes[] = {DType::f64, DType::f32, DType::bf16};

/// Numbers that the element type has.
void round_to(DType dtype, Array& array) {
  for (double& number : array.data) {
    if (dtype == DType::f32) number = static_cast<float>(number);
    if (dtype == DType::bf16) number = piper_round_bf16(static_cast<float>(number));
  }
}

/// The dimension that the op works along, else the last one.
Symbol own_dim(const OpCase& op_case) {
  const Type& type = op_case.operands.empty() ? op_case.attrs.shape : op_case.operands.front();
  if (!op_case.attrs.dims.empty() && type.find(op_case.attrs.dims.front()) &&
      !type.dims[*type.find(op_case.attrs.dims.front())].sampled)
    return op_case.attrs.dims.front();
  return type.dims.back().name;
}

/// The case with `extent` of that dimension in the first operand, and as much more or less in
/// others.
OpCase resized(OpCase op_case, Symbol dim, std::int64_t extent) {
  const Type& first = op_case.operands.empty() ? op_case.attrs.shape : op_case.operands.front();
  const std::int64_t before = first.dims[*first.find(dim)].extent;
  const auto resize = [&](Type& type) {
    for (tensor::Dim& each : type.dims) {
      if (each.name == dim && !each.sampled)
        each.extent = std::max<std::int64_t>(1, each.extent * extent / before);
    }
  };
  for (Type& type : op_case.operands) resize(type);
  resize(op_case.attrs.shape);
  tensor::Attrs& attrs = op_case.attrs;
  if (op_case.op == Op::slice) {
    attrs.from = std::min(attrs.from, extent - 1);
    attrs.extent = std::min(attrs.extent, extent - attrs.from);
  }
  if (op_case.op == Op::pad) attrs.extent += extent - before;
  if (op_case.op == Op::shift) attrs.from = std::clamp(attrs.from, -extent, extent);
  return op_case;
}

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

/// Bodies in files of a size that a compiler likes.
class Files {
 public:
  void add(std::string what, dag::Body body, std::vector<Array> inputs) {
    if (runs_.empty() || runs_.back()->size() == kMax)
      runs_.push_back(std::make_unique<KernelRuns>());
    runs_.back()->add(std::move(what), std::move(body), std::move(inputs), {}, 0);
    ++size_;
  }
  void check() const {
    for (const auto& runs : runs_) runs->check(backend::machine_flags());
  }
  std::size_t size() const { return size_; }

 private:
  static constexpr std::size_t kMax = 400;
  std::vector<std::unique_ptr<KernelRuns>> runs_;
  std::size_t size_ = 0;
};

/// An op is compiled at one of this number of consecutive extents, because functions take the
/// compiler long; ops that read elements at other positions, or only some, are compiled at each.
std::size_t stride_of(const tensor::OpInfo& info) {
  switch (info.code_class) {
    case tensor::CodeClass::pointwise: return info.operands > 1 ? 1 : 5;
    case tensor::CodeClass::reduction:
    case tensor::CodeClass::library: return 4;
    default: return 1;
  }
}

/// All types in turn: each op meets every type, and extents as above.
TEST(KernelExtents, EveryOp) {
  Context context;
  Files files;
  Random random(1);
  std::map<Op, int> extents_of;
  for (const tensor::OpInfo& info : tensor::all_ops()) {
    std::size_t turn = 0;
    for (const OpCase& f64_case : cases_of(info.op, context)) {
      const Type& type =
          f64_case.operands.empty() ? f64_case.attrs.shape : f64_case.operands.front();
      if (type.dims.empty()) continue;
      for (std::int64_t extent = 1; extent <= kMaxExtent; ++extent) {
        const DType dtype = kTypes[++turn % std::size(kTypes)];
        if (turn % stride_of(info) != 0) continue;
        const OpCase op_case = with_dtype(resized(f64_case, own_dim(f64_case), extent), dtype);
        if (!tensor::infer(op_case.op, op_case.operands, op_case.attrs, context.symbols)
                 .error.empty())
          continue;
        std::vector<Array> inputs = random_operands(op_case, context.symbols, random);
        tensor::Graph graph(context);
        std::vector<ValueId> operands, results;
        for (std::size_t i = 0; i < op_case.operands.size(); ++i) {
          operands.push_back(
              graph.add_leaf(op_case.operands[i], context.symbol("x" + std::to_string(i))));
          round_to(op_case.operands[i].dtype, inputs[i]);
          if (op_case.operands[i].dtype != DType::i64) continue;
          for (double& index : inputs[i].data)
            index = static_cast<double>(static_cast<std::int64_t>(index) % extent);
        }
        const tensor::NodeId node = graph.add(op_case.op, operands, op_case.attrs, Pass::F, {}, {},
                                              {}, context.symbol("y"));
        for (std::size_t r = 0; r < info.results; ++r)
          results.push_back(graph.result(graph.node(node), r));
        const std::string what = std::string(info.name) + " (" + op_case.what + ") in " +
                                 std::string(tensor::dtype_name(dtype)) + ", extent " +
                                 std::to_string(extent);
        files.add(what, make_body(std::move(graph), results, "case"), std::move(inputs));
        ++extents_of[info.op];
      }
    }
  }
  for (const tensor::OpInfo& info : tensor::all_ops())
    EXPECT_GE(extents_of[info.op], 3) << info.name;
  files.check();
}

TEST(KernelExtents, Chains) {
  Context context;
  Files files;
  Random random(2);
  for (const DType dtype : kTypes) {
    for (std::int64_t extent = 1; extent <= kMaxExtent; ++extent) {
      for (backend::CheckChain& chain : backend::check_chains(context, dtype, kBatch, extent)) {
        std::vector<Array> inputs;
        for (const dag::BodyPort& port : chain.body.inputs) {
          inputs.push_back(random_array(chain.body.graph.type(port.value), random));
          round_to(dtype, inputs.back());
        }
        files.add(chain.what, std::move(chain.body), std::move(inputs));
      }
    }
  }
  files.check();
}

}  // namespace
}  // namespace piper::test
