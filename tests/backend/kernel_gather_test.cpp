// Every op that says where its elements lie, or computes them, below cross_entropy and lookup,
// which read at an index: forward and gradients against the reference, which runs one op at a time.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "ir/diagnostics/diagnostics.h"
#include "ir/tensor/builder.h"
#include "passes/build/differentiate.h"
#include "runtime/kernel_math.h"
#include "tests/backend/kernel_runs.h"
#include "tests/support/op_cases.h"

namespace piper::test {
namespace {

using tensor::Attrs;
using tensor::Built;
using tensor::Dim;
using tensor::DType;
using tensor::Op;
using tensor::Type;
using tensor::ValueId;

/// A graph under construction with the numbers of its leaves.
class GatherGraph {
 public:
  GatherGraph(Context& context, Random& random, DType dtype)
      : graph(context), build(graph), context_(context), random_(random), dtype_(dtype) {
    build.at(RegionId(), LocId(), "gather");
  }

  Dim dim(std::string_view name, std::int64_t extent, bool sampled = false) {
    return {context_.symbol(name), extent, sampled};
  }
  ValueId weight(std::vector<Dim> dims, bool trained = true) {
    const Type type{dtype_, std::move(dims)};
    Array array = random_array(type, random_);
    for (double& number : array.data) {
      if (dtype_ == DType::f32) number = static_cast<float>(number);
      if (dtype_ == DType::bf16) number = piper_round_bf16(static_cast<float>(number));
    }
    inputs.push_back(std::move(array));
    const std::string name = "w" + std::to_string(inputs.size());
    return trained ? build.weight(name, type, {}) : build.input(name, type);
  }
  /// Numbers below `bound`, all of them where there is room: the first places and the last ones
  /// too.
  ValueId indices(std::vector<Dim> dims, std::int64_t bound) {
    Array array{{DType::i64, std::move(dims)}, {}};
    for (std::int64_t i = 0; i < array.type.elements(); ++i)
      array.data.push_back(static_cast<double>(i % bound));
    random_.shuffle(array.data);
    inputs.push_back(std::move(array));
    return build.input("i" + std::to_string(inputs.size()), inputs.back().type);
  }
  const std::vector<Dim>& dims(ValueId value) const { return graph.type(value).dims; }
  Context& context() { return context_; }
  /// Like the value, so long along the dimension.
  ValueId like(ValueId value, Symbol along, std::int64_t extent, bool trained = true) {
    std::vector<Dim> made = dims(value);
    made[*graph.type(value).find(along)].extent = extent;
    return weight(std::move(made), trained);
  }
  Built op(Op op, std::vector<ValueId> operands, Attrs attrs = {}) {
    return build.op(op, std::move(operands), std::move(attrs));
  }

  tensor::Graph graph;
  tensor::Builder build;
  std::vector<Array> inputs;

 private:
  Context& context_;
  Random& random_;
  DType dtype_;
};

/// Maps `x` to a tensor that is read at an index, with all dimensions of `x`.
struct Maker {
  const char* what;
  std::function<Built(GatherGraph& g, ValueId x, Symbol along)> make;
  bool moves = true;    // `along` matters
  bool reads_x = true;  // not its type alone
};

Built padded(GatherGraph& g, ValueId x, Symbol along) { return g.build.pad(x, 2, 3, along); }
Built looked_up(GatherGraph& g, ValueId x) {
  // Rows of a table with the dimensions of `x` but the first.
  std::vector<Dim> table = g.dims(x);
  const std::int64_t rows = 5;
  table[0] = g.dim("vocabulary", rows);
  return g.build.lookup(g.weight(std::move(table)), g.indices({g.dims(x)[0]}, rows));
}

const std::vector<Maker> kMakers = {
    {"leaf", [](GatherGraph&, ValueId x, Symbol) { return Built(x); }, false},
    {"tanh", [](GatherGraph& g, ValueId x, Symbol) { return g.op(Op::tanh, {x}); }, false},
    {"pad", [](GatherGraph& g, ValueId x, Symbol along) { return padded(g, x, along); }},
    {"slice",
     [](GatherGraph& g, ValueId x, Symbol along) {
       return g.build.slice(x, 1, g.graph.type(x).dims[*g.graph.type(x).find(along)].extent - 1,
                            along);
     }},
    {"shift up",
     [](GatherGraph& g, ValueId x, Symbol along) { return g.build.shift(x, 1, along); }},
    {"shift down",
     [](GatherGraph& g, ValueId x, Symbol along) { return g.build.shift(x, -2, along); }},
    {"concat", [](GatherGraph& g, ValueId x,
                  Symbol along) { return g.build.concat(x, g.like(x, along, 3), along); }},
    {"concat behind", [](GatherGraph& g, ValueId x,
                         Symbol along) { return g.build.concat(g.like(x, along, 3), x, along); }},
    {"concat with itself",
     [](GatherGraph& g, ValueId x, Symbol along) { return g.build.concat(x, x, along); }},
    {"iota",
     [](GatherGraph& g, ValueId x, Symbol along) {
       return g.op(Op::add, {x, g.build.iota(x, -0.5, 0.25, along).value});
     }},
    {"rotary",
     [](GatherGraph& g, ValueId x, Symbol) {
       return g.build.rotary(x, g.dims(x)[g.dims(x).size() - 2].name, 100);
     },
     false},
    {"mask",
     [](GatherGraph& g, ValueId x, Symbol along) {
       const ValueId bound =
           g.like(x, along, g.dims(x)[*g.graph.type(x).find(along)].extent, false);
       return g.op(Op::select_lt,
                   {g.build.iota(x, 0, 1, along).value, g.op(Op::exp, {bound}).value, x});
     }},
    {"dropout", [](GatherGraph& g, ValueId x, Symbol) { return g.build.dropout(x, 0.4); }, false},
    {"broadcast",
     [](GatherGraph& g, ValueId x, Symbol along) {
       Attrs attrs;
       attrs.shape = g.graph.type(x);
       return g.op(Op::broadcast, {g.weight({g.dims(x)[*g.graph.type(x).find(along)]})}, attrs);
     },
     true, false},
    {"permute",
     [](GatherGraph& g, ValueId x, Symbol) {
       std::vector<Symbol> names;
       for (const Dim& dim : g.dims(x)) names.insert(names.begin(), dim.name);
       return g.build.permute(x, names);
     },
     false},
    {"rename",
     [](GatherGraph& g, ValueId x, Symbol along) {
       return g.build.rename(x, {{along, g.context().symbol("other")}});
     }},
    {"cast", [](GatherGraph& g, ValueId x, Symbol) { return g.build.cast(x, DType::bf16); }, false},
    {"softmax",
     [](GatherGraph& g, ValueId x, Symbol along) { return g.build.along(Op::softmax, x, along); }},
    {"lookup", [](GatherGraph& g, ValueId x, Symbol) { return looked_up(g, x); }, false, false},
    {"pad of tanh", [](GatherGraph& g, ValueId x,
                       Symbol along) { return padded(g, g.op(Op::tanh, {x}).value, along); }},
    {"pad of a permuted view",
     [](GatherGraph& g, ValueId x, Symbol along) {
       std::vector<Symbol> names;
       for (const Dim& dim : g.dims(x)) names.insert(names.begin(), dim.name);
       return padded(g, g.build.permute(x, names).value, along);
     }},
    {"a permuted view of pad",
     [](GatherGraph& g, ValueId x, Symbol along) {
       std::vector<Symbol> names;
       for (const Dim& dim : g.dims(x)) names.insert(names.begin(), dim.name);
       return g.build.permute(padded(g, x, along).value, names);
     }},
    {"pad of pad along another dimension",
     [](GatherGraph& g, ValueId x, Symbol along) {
       for (const Dim& dim : g.dims(x)) {
         if (dim.name != along && !dim.sampled) x = g.build.shift(x, 1, dim.name).value;
       }
       return padded(g, x, along);
     }},
    {"slice of pad",
     [](GatherGraph& g, ValueId x, Symbol along) {
       return g.build.slice(padded(g, x, along).value, 1, 4, along);
     }},
    {"shift of lookup",
     [](GatherGraph& g, ValueId x, Symbol along) {
       return g.build.shift(looked_up(g, x).value, 1, along);
     },
     true, false},
    {"rotary of pad",
     [](GatherGraph& g, ValueId x, Symbol along) {
       const Built made = g.build.pad(x, 2, 2, along);
       return g.build.rotary(made.value, g.dims(x)[g.dims(x).size() - 2].name, 100);
     }},
};

/// Reads at an index: elements of a loss from a maker's result.
struct Reader {
  const char* what;
  std::vector<Dim> (*dims)(GatherGraph& g);  // of `x`
  Built (*read)(GatherGraph& g, ValueId x, Symbol last);
};

std::vector<Dim> logits(GatherGraph& g) {
  return {g.dim("batch", 4, true), g.dim("seq", 5), g.dim("classes", 6)};
}
std::vector<Dim> table(GatherGraph& g) { return {g.dim("rows", 5), g.dim("dim", 6)}; }

Built loss_of(GatherGraph& g, ValueId x, Symbol classes, std::optional<std::int32_t> ignore) {
  std::vector<Dim> rest;
  std::int64_t extent = 0;
  for (const Dim& dim : g.dims(x)) {
    if (dim.name != classes) rest.push_back(dim);
    if (dim.name == classes) extent = dim.extent;
  }
  return g.build.cross_entropy(x, g.indices(std::move(rest), extent), classes, ignore);
}

const std::vector<Reader> kReaders = {
    {"cross_entropy", logits,
     [](GatherGraph& g, ValueId x, Symbol last) { return loss_of(g, x, last, std::nullopt); }},
    {"cross_entropy with `ignore`", logits,
     [](GatherGraph& g, ValueId x, Symbol last) { return loss_of(g, x, last, 1); }},
    {"lookup", table,
     [](GatherGraph& g, ValueId x, Symbol) {
       const Built rows = g.build.lookup(
           x, g.indices({g.dim("batch", 4, true), g.dim("seq", 3)}, g.dims(x)[0].extent));
       return g.op(Op::square, {rows.value});
     }},
    {"cross_entropy of lookup", table,
     [](GatherGraph& g, ValueId x, Symbol) {
       const Built rows = g.build.lookup(
           x, g.indices({g.dim("batch", 4, true), g.dim("seq", 3)}, g.dims(x)[0].extent));
       return loss_of(g, rows.value, g.dims(x)[1].name, std::nullopt);
     }},
};

/// f64 and f32: sums of a few dozen elements; bf16: one unit in the last place of a few roundings
/// after each other.
double bound_of(DType dtype) {
  return dtype == DType::f64 ? 1e-12 : dtype == DType::f32 ? 2e-5 : 0x1p-5;
}

class KernelGather : public testing::TestWithParam<backend::Target> {};

void add_case(KernelRuns& runs, Context& context, Random& random, const Maker& maker,
              const Reader& reader, std::size_t along, DType dtype) {
  GatherGraph g(context, random, dtype);
  const std::string what = std::string(reader.what) + " of " + maker.what + " along dimension " +
                           std::to_string(along) + " in " + std::string(tensor::dtype_name(dtype));
  SCOPED_TRACE(what);
  const std::vector<Dim> dims = reader.dims(g);
  const ValueId x = g.weight(dims, maker.reads_x);
  const Built made = maker.make(g, x, dims[along].name);
  ASSERT_TRUE(made) << made.error;
  // The name that the last dimension of `x` has by now.
  const bool renamed = !g.graph.type(made.value).find(dims.back().name).has_value();
  const Built elements =
      reader.read(g, made.value, renamed ? context.symbol("other") : dims.back().name);
  ASSERT_TRUE(elements) << elements.error;
  // Gradients of the size of the numbers, so that none disappears below the bound.
  const Built large =
      g.build.scale(elements.value, static_cast<double>(g.graph.type(elements.value).elements()));
  const std::vector<double> targets = g.inputs.back().data;  // where it is a masked loss
  ASSERT_TRUE(g.build.loss("loss", large.value));
  if (const auto& mask = g.graph.losses[0].mask) {
    const auto counted = std::count_if(targets.begin(), targets.end(),
                                       [&](double target) { return target != mask->ignore; });
    g.inputs.push_back({g.graph.type(mask->count), {static_cast<double>(counted)}});
  }
  const ValueId sum = g.graph.losses[0].sum;
  dag::Body forward = make_body(g.graph, {sum}, "forward");
  DropoutMask keeps;
  for (const tensor::Node& node : g.graph.nodes()) {
    if (node.op == Op::dropout)
      keeps = keeps_as_kernels(g.graph.type(x), node.attrs.scalar,
                               std::string(context.text(node.attrs.seed)));
  }
  const auto forward_inputs = g.inputs;
  DiagnosticSink sink(context.locations);
  ASSERT_TRUE(passes::differentiate(g.graph, sink));
  std::vector<ValueId> outputs{elements.value};
  for (const tensor::ParamGrad& grad : g.graph.grads) outputs.push_back(grad.value);
  ASSERT_GT(outputs.size(), 1u);
  if (dtype == DType::f32)
    runs.add(what, std::move(forward), forward_inputs, {0}, bound_of(dtype), {}, keeps);
  runs.add(what + ", with gradients", make_body(g.graph, outputs, "both"), g.inputs,
           std::vector<std::uint8_t>(outputs.size(), 0), bound_of(dtype), {}, keeps);
}

TEST_P(KernelGather, EveryOpBelowAReadAtAnIndex) {
  Context context;
  KernelRuns runs(GetParam());
  Random random(3);
  for (const Reader& reader : kReaders) {
    for (const Maker& maker : kMakers) {
      GatherGraph shape(context, random, DType::f32);
      const std::vector<Dim> dims = reader.dims(shape);
      for (std::size_t along = 0; along < dims.size(); ++along) {
        if (dims[along].sampled || (!maker.moves && along + 1 < dims.size())) continue;
        for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
          ASSERT_NO_FATAL_FAILURE(add_case(runs, context, random, maker, reader, along, dtype));
        }
      }
    }
  }
  runs.check("-O0");
}

INSTANTIATE_TEST_SUITE_P(Targets, KernelGather,
                         testing::Values(backend::Target::cpu, backend::Target::cuda));

}  // namespace
}  // namespace piper::test
