// Shapes that bring every way in which a nest is spread over blocks and threads on CUDA: rows over
// several warps, sums and long rows in parts, scatters of many equal indices, several blocks with
// tails. All of it on the host, against the evaluator bit for bit and against the reference.

#include <gtest/gtest.h>

#include <set>

#include "backend/cuda/kernel_set.h"
#include "backend/cuda/launch.h"
#include "backend/cuda/print_kernel.h"
#include "runtime/kernel_math.h"
#include "tests/backend/kernel_runs.h"
#include "tests/support/op_cases.h"

namespace piper::test {
namespace {

using backend::Form;
using backend::Target;
using tensor::Attrs;
using tensor::DType;
using tensor::Op;
using tensor::Type;
using tensor::ValueId;

/// Bodies of a few ops over dimensions that a case names.
class Blocks {
 public:
  using Build = std::function<ValueId(tensor::Graph&, const std::vector<ValueId>&)>;

  Type type(std::vector<std::pair<const char*, std::int64_t>> dims, DType dtype = DType::f32) {
    Type made{dtype, {}};
    for (const auto& [name, extent] : dims)
      made.dims.push_back({context.symbol(name), extent, false});
    return made;
  }
  Attrs along(std::vector<const char*> dims, double scalar = 1e-3) {
    Attrs attrs;
    for (const char* dim : dims) attrs.dims.push_back(context.symbol(dim));
    attrs.scalar = scalar;
    return attrs;
  }
  ValueId op(tensor::Graph& graph, Op op, const std::vector<ValueId>& operands, Attrs attrs = {}) {
    const tensor::NodeId node =
        graph.add(op, operands, std::move(attrs), Pass::F, {}, {}, {},
                  context.symbol("v" + std::to_string(graph.values().size())));
    return graph.result(graph.node(node));
  }
  /// `classes`: of operands of i64.
  void add(const std::string& what, const std::vector<Type>& operands, std::int64_t classes,
           const std::function<std::vector<ValueId>(tensor::Graph&, const std::vector<ValueId>&)>&
               build) {
    tensor::Graph graph(context);
    std::vector<ValueId> leaves;
    std::vector<Array> inputs;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      leaves.push_back(graph.add_leaf(operands[i], context.symbol("x" + std::to_string(i))));
      Array array{operands[i], {}};
      if (operands[i].dtype == DType::i64) {
        for (std::int64_t e = 0; e < operands[i].elements(); ++e)
          array.data.push_back(
              static_cast<double>(random.below(static_cast<std::uint64_t>(classes))));
      } else {
        array = random_array(operands[i], random);
        const bool narrow = tensor::is_narrow(operands[i].dtype);
        for (double& number : array.data)
          number =
              narrow ? piper_round_bf16(static_cast<float>(number)) : static_cast<float>(number);
      }
      inputs.push_back(std::move(array));
    }
    const std::vector<ValueId> outputs = build(graph, leaves);
    const bool narrow = std::any_of(operands.begin(), operands.end(),
                                    [](const Type& type) { return tensor::is_narrow(type.dtype); });
    for (const bool adds : {false, true}) {
      dag::Body body = make_body(graph, outputs, "blocks");
      // Gradients are wide.
      for (auto& port : body.outputs)
        port.kind = adds && !tensor::is_narrow(graph.type(port.value).dtype) ? dag::PortKind::grad
                                                                             : dag::PortKind::data;
      const backend::KernelBody kernels = backend::build_kernels(body, Target::cuda);
      for (const auto& step : kernels.steps) {
        const auto* kernel = std::get_if<backend::Kernel>(&step);
        if (kernel == nullptr) continue;
        forms.insert({kernel->form, kernel->part});
        lanes.insert(kernel->lanes.count);
        vectors.insert(kernel->lanes.vector);
        most_blocks = std::max(most_blocks, backend::cuda::launch_of(*kernel).blocks);
      }
      std::vector<std::uint8_t> accumulates;
      for (const auto& port : body.outputs)
        accumulates.push_back(port.kind == dag::PortKind::grad ? 1 : 0);
      runs.add(what, std::move(body), inputs, accumulates, narrow ? 0x1p-6 : 1e-3);
    }
  }

  Context context;
  Random random{3};
  KernelRuns runs{Target::cuda};
  std::set<std::pair<Form, std::string>> forms;
  std::set<std::int32_t> lanes, vectors;
  std::int64_t most_blocks = 0;
};

TEST(KernelBlocks, EveryFormOnTheHost) {
  Blocks b;
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    const auto rows = [&](std::int64_t n, std::int64_t columns) {
      return b.type({{"row", n}, {"column", columns}}, dtype);
    };
    // The longest are cut, step by step.
    for (const std::int64_t columns : {1, 7, 48, 200, 515, 4096, 32768}) {
      b.add("softmax", {rows(3, columns)}, 0, [&](auto& g, const auto& x) {
        return std::vector{b.op(g, Op::softmax, {x[0]}, b.along({"column"}))};
      });
    }
    // Two steps of reductions, each in parts.
    b.add("norm of long rows", {rows(2, 16400), rows(2, 16400)}, 0, [&](auto& g, const auto& x) {
      return std::vector{b.op(g, Op::layer_norm, {x[0]}, b.along({"column"})),
                         b.op(g, Op::layer_norm_grad, {x[0], x[1]}, b.along({"column"}))};
    });
    // dx and the sum over rows of dy x: the inverse of the norm is handed over, the sum is in
    // parts.
    for (const std::int64_t n : {5, 192, 509}) {
      b.add("norm and gain", {rows(n, 24), rows(n, 24)}, 0, [&](auto& g, const auto& x) {
        const ValueId normed = b.op(g, Op::rms_norm, {x[0]}, b.along({"column"}));
        const ValueId gain = b.op(g, Op::sum, {b.op(g, Op::mul, {normed, x[1]})}, b.along({"row"}));
        return std::vector{b.op(g, Op::rms_norm_grad, {x[0], x[1]}, b.along({"column"})), gain};
      });
    }
    b.add("sums of several kinds", {b.type({{"a", 6}, {"b", 40}, {"c", 20}}, dtype)}, 0,
          [&](auto& g, const auto& x) {
            const ValueId y = b.op(g, Op::tanh, {x[0]});
            return std::vector{y,
                               b.op(g, Op::sum, {y}, b.along({"a"})),
                               b.op(g, Op::sum, {y}, b.along({"a", "b"})),
                               b.op(g, Op::sum, {y}, b.along({"b", "c"})),
                               b.op(g, Op::sum, {y}, b.along({"a", "c"})),
                               b.op(g, Op::sum, {y}, b.along({"a", "b", "c"}))};
          });
    for (const std::int64_t n : {65536, 65537}) {
      b.add("long row", {b.type({{"element", n}}, dtype)}, 0, [&](auto& g, const auto& x) {
        return std::vector{b.op(g, Op::sum, {b.op(g, Op::square, {x[0]})}, b.along({"element"}))};
      });
    }
    b.add("long rows", {rows(2, 20000)}, 0, [&](auto& g, const auto& x) {
      return std::vector{b.op(g, Op::max, {x[0]}, b.along({"column"})),
                         b.op(g, Op::sum, {x[0]}, b.along({"column"}))};
    });
    b.add("first of equal ones",
          {rows(3, 300), b.type({{"row", 3}}, dtype), b.type({{"row", 3}}, dtype)}, 0,
          [&](auto& g, const auto& x) {
            const ValueId most = b.op(g, Op::max, {x[0]}, b.along({"column"}));
            return std::vector{b.op(g, Op::max_grad, {x[0], most, x[2]}, b.along({"column"}))};
          });
    b.add("cross entropy", {rows(3, 2100), b.type({{"row", 3}}, DType::i64)}, 2100,
          [&](auto& g, const auto& x) {
            const ValueId loss = b.op(g, Op::cross_entropy, {x[0], x[1]}, b.along({"column"}));
            return std::vector{
                b.op(g, Op::sum, {loss}, b.along({"row"})),
                b.op(g, Op::cross_entropy_grad, {x[0], x[1], loss}, b.along({"column"}))};
          });
    // Few positions; runs of one index; several runs of some; indices of two digits and positions
    // for several tiles of the block that sorts them.
    for (const auto& [places, classes] : {std::pair<std::int64_t, std::int64_t>{100, 13},
                                          {300, 13},
                                          {300, 1},
                                          {1500, 3},
                                          {2500, 700}}) {
      b.add("scatter",
            {b.type({{"place", places}}, DType::i64),
             b.type({{"place", places}, {"column", 24}}, dtype)},
            classes, [&, classes = classes](auto& g, const auto& x) {
              Attrs attrs;
              attrs.shape = b.type({{"class", classes}, {"column", 24}}, tensor::wide(dtype));
              return std::vector{b.op(g, Op::lookup_grad, {x[0], x[1]}, attrs)};
            });
    }
    for (const std::int64_t rows : {9, 30}) {
      b.add("scatter of numbers",
            {b.type({{"i", rows}, {"j", 11}}, DType::i64), b.type({{"i", rows}, {"j", 11}}, dtype)},
            2, [&](auto& g, const auto& x) {
              Attrs attrs;
              attrs.shape = b.type({{"class", 2}}, tensor::wide(dtype));
              return std::vector{b.op(g, Op::lookup_grad, {x[0], x[1]}, attrs)};
            });
    }
    // Memory or rows that begin at addresses where one thread cannot read several elements at once.
    for (const auto& [columns, from] :
         {std::pair<std::int64_t, std::int64_t>{128, 3}, {67, 0}, {67, 3}}) {
      b.add("slice", {rows(4, columns), rows(4, 64)}, 0, [&, from = from](auto& g, const auto& x) {
        Attrs attrs = b.along({"column"});
        attrs.from = from;
        attrs.extent = 64;
        return std::vector{b.op(g, Op::mul, {b.op(g, Op::slice, {x[0]}, attrs), x[1]})};
      });
    }
    for (const std::int64_t n : {1, 1001, 4100}) {
      b.add("elements", {b.type({{"element", n}}, dtype)}, 0,
            [&](auto& g, const auto& x) { return std::vector{b.op(g, Op::gelu, {x[0]})}; });
    }
  }
  // The cases exist for their forms: none of them may disappear unnoticed.
  using Kind = std::pair<Form, std::string>;
  for (const Kind& kind :
       {Kind{Form::elements, ""}, Kind{Form::rows, ""}, Kind{Form::rows, "total"},
        Kind{Form::rows, "join"}, Kind{Form::rows, "reduce"}, Kind{Form::sums, "sum"},
        Kind{Form::sums, "join"}, Kind{Form::order, "order"}, Kind{Form::scatter, "scatter"},
        Kind{Form::join, "join"}}) {
    EXPECT_TRUE(b.forms.contains(kind)) << static_cast<int>(kind.first) << " " << kind.second;
  }
  EXPECT_TRUE(b.lanes.contains(1) && b.lanes.contains(32) && b.lanes.contains(64) &&
              *b.lanes.rbegin() >= 512);
  EXPECT_EQ(b.vectors, (std::set<std::int32_t>{1, 2, 4, 8}));
  EXPECT_GT(b.most_blocks, 8);
  b.runs.check("-O1 -march=native");
}

// Vectors of one sample draw four random numbers at once; other vectors, and unaligned ones, one
// per element. The numbers are the same.
TEST(KernelBlocks, NeighboursShareADraw) {
  Blocks b;
  for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
    for (const std::int64_t columns : {24, 22}) {
      Type type = b.type({{"batch", 3}, {"row", 5}, {"column", columns}}, dtype);
      type.dims[0].sampled = true;
      tensor::Graph graph(b.context);
      const ValueId x = graph.add_leaf(type, b.context.symbol("x"));
      Attrs attrs;
      attrs.scalar = 0.25;
      attrs.seed = b.context.symbol("mlp.0.dropout.0");
      dag::Body body = make_body(graph, {b.op(graph, Op::dropout, {x}, attrs)}, "drawn");
      const backend::KernelBody kernels = backend::build_kernels(body, Target::cuda);
      const std::string text = backend::cuda::print_kernel(
          std::get<backend::Kernel>(kernels.steps[0]), kernels, "drawn", false);
      EXPECT_EQ(text.find("piper_random_u32s") != std::string::npos,
                dtype != DType::f64 && columns == 24)
          << text;
      std::vector<Array> inputs{
          {type, std::vector<double>(static_cast<std::size_t>(type.elements()), 1.0)}};
      b.runs.add("dropout", std::move(body), inputs, {0}, 0x1p-7, {},
                 keeps_as_kernels(type, 0.25, "mlp.0.dropout.0"));
    }
  }
  b.runs.check("-O1");
}

// Positions of 32 bits reach no further than 2^31: neither through a nest, nor through a buffer of
// which a small nest reads some places.
TEST(KernelBlocks, PositionsAreAsWideAsNestsAndBuffers) {
  constexpr std::int64_t kLarge = std::int64_t{1} << 22, kSmall = 64, kColumns = 1024;
  struct Wide {
    const char* what;
    std::int64_t rows, places;  // places: of a lookup of rows; 0: all elements
    bool is_wide;
  };
  for (const Wide& each : {Wide{"small nest", kSmall, 0, false},
                           {"large nest", kLarge, 0, true},
                           {"small buffer", kSmall, 8, false},
                           {"large buffer", kLarge, 8, true}}) {
    SCOPED_TRACE(each.what);
    Blocks b;
    tensor::Graph graph(b.context);
    const ValueId x =
        graph.add_leaf(b.type({{"row", each.rows}, {"column", kColumns}}), b.context.symbol("x"));
    ValueId result;
    if (each.places > 0) {
      const ValueId places =
          graph.add_leaf(b.type({{"place", each.places}}, DType::i64), b.context.symbol("places"));
      result = b.op(graph, Op::lookup, {x, places});
    } else {
      result = b.op(graph, Op::gelu, {x});
    }
    const dag::Body body = make_body(graph, {result}, "wide");
    const backend::KernelBody kernels = backend::build_kernels(body, Target::cuda);
    ASSERT_EQ(kernels.steps.size(), 1u);
    const std::string text = backend::cuda::print_kernel(
        std::get<backend::Kernel>(kernels.steps[0]), kernels, "wide", false);
    EXPECT_EQ(text.find("(int64_t)blockIdx.x") != std::string::npos, each.is_wide) << text;
    EXPECT_EQ(text.find("(int32_t)blockIdx.x") != std::string::npos, !each.is_wide) << text;
  }
}

// Two losses check the same targets: an index that one of them ignores may be refused by the other.
TEST(KernelBlocks, ChecksOfOneBuffer) {
  using Ignore = std::optional<std::int32_t>;
  for (const auto& [first, second, checks] :
       {std::tuple<Ignore, Ignore, int>{{}, {}, 1}, {2, 2, 1}, {{}, 2, 2}, {1, 2, 2}}) {
    Blocks b;
    tensor::Graph graph(b.context);
    const ValueId x = graph.add_leaf(b.type({{"row", 4}, {"column", 9}}), b.context.symbol("x"));
    const ValueId targets =
        graph.add_leaf(b.type({{"row", 4}}, DType::i64), b.context.symbol("targets"));
    std::vector<ValueId> losses;
    for (const Ignore& ignore : {first, second}) {
      Attrs attrs = b.along({"column"});
      attrs.ignore = ignore;
      losses.push_back(b.op(graph, Op::cross_entropy, {x, targets}, attrs));
    }
    const dag::Body body = make_body(graph, losses, "checks");
    backend::cuda::KernelSet kernels;
    const auto steps = kernels.add(backend::build_kernels(body, Target::cuda));
    const auto is_check = [](const backend::cuda::BodyStep& step) {
      return step.kind == backend::cuda::BodyStep::Kind::check;
    };
    EXPECT_EQ(std::count_if(steps.begin(), steps.end(), is_check), checks)
        << first.value_or(-1) << " " << second.value_or(-1);
  }
}

// A parameter that is used twice in a chunk has two gradients, which lie in the same memory: no
// kernel may add to both.
TEST(KernelBlocks, GradientsOfOneParameterApart) {
  for (const bool summed : {false, true}) {
    for (const bool shared : {false, true}) {
      Blocks b;
      tensor::Graph graph(b.context);
      const ValueId x = graph.add_leaf(b.type({{"row", 40}, {"column", 8}}), b.context.symbol("x"));
      std::vector<ValueId> outputs = {b.op(graph, Op::tanh, {x}), b.op(graph, Op::exp, {x})};
      if (summed) {
        for (ValueId& output : outputs) output = b.op(graph, Op::sum, {output}, b.along({"row"}));
      }
      dag::Body body = make_body(graph, outputs, "shared");
      for (std::size_t o = 0; o < outputs.size(); ++o) {
        body.outputs[o].kind = dag::PortKind::grad;
        body.outputs[o].param = tensor::ParamId::at(shared ? 0 : o);
      }
      const backend::KernelBody kernels = backend::build_kernels(body, Target::cuda);
      std::size_t most = 0;
      for (const auto& step : kernels.steps) {
        std::set<backend::BufferIndex> added;
        for (const auto& s : std::get<backend::Kernel>(step).statements) {
          const bool writes = s.code == backend::Code::store || s.code == backend::Code::store_add;
          if (writes && kernels.buffers[s.access.buffer].accumulates) added.insert(s.access.buffer);
        }
        most = std::max(most, added.size());
      }
      EXPECT_EQ(most, shared ? 1u : 2u) << backend::print(kernels);
    }
  }
}

}  // namespace
}  // namespace piper::test
