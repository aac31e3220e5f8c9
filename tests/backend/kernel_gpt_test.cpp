// A GPT as kernels: as few as fusion allows, one library call per product, and no value in memory
// that only one loop nest uses.

#include <gtest/gtest.h>

#include <ostream>

#include "ir/diagnostics/diagnostics.h"
#include "passes/build/differentiate.h"
#include "passes/build/localise.h"
#include "tests/backend/kernel_runs.h"
#include "tests/support/tensor_models.h"

namespace piper::test {
namespace {

using tensor::NodeId;

/// The whole model as one chunk: its forward body and its backward bodies.
struct GptBodies {
  explicit GptBodies(const ModelSize& size) : graph(gpt_model(context, size)) {
    DiagnosticSink sink(context.locations);
    EXPECT_TRUE(passes::differentiate(graph, sink));
    const std::vector<std::uint32_t> chunk_of(graph.nodes().size(), 0);
    passes::BodyExtractor extractor(graph, chunk_of);
    const auto extract = [&](auto wanted, const char* name) {
      std::vector<NodeId> piece;
      for (std::size_t n = 0; n < graph.nodes().size(); ++n) {
        if (wanted(graph.nodes()[n].pass)) piece.push_back(NodeId::at(n));
      }
      auto extraction = extractor.extract(piece, 1);
      EXPECT_EQ(extraction.error, "");
      extraction.body.name = context.symbol(name);
      return std::move(extraction.body);
    };
    bodies.push_back(extract([](Pass pass) { return pass == Pass::F; }, "gpt.F"));
    bodies.push_back(extract([](Pass pass) { return pass != Pass::F; }, "gpt.B"));
    bodies.push_back(extract([](Pass pass) { return pass == Pass::BI; }, "gpt.BI"));
    bodies.push_back(extract([](Pass pass) { return pass == Pass::BW; }, "gpt.BW"));
  }

  Context context;
  tensor::Graph graph;
  std::vector<dag::Body> bodies;
};

struct Counts {
  std::int64_t kernels, calls;
  friend bool operator==(const Counts&, const Counts&) = default;
  friend std::ostream& operator<<(std::ostream& out, const Counts& counts) {
    return out << counts.kernels << " kernels, " << counts.calls << " calls";
  }
};
Counts counts(const dag::Body& body) {
  const backend::KernelStats stats = backend::kernel_stats(backend::build_kernels(body));
  return {stats.kernels, stats.library_calls};
}

// Forward, per layer: residual + norm + gain twice, gelu; and embedding (with the first norm),
// head's norm + residual, loss. Backward, per layer: norm's adjoint + gain's gradient + residual
// twice, gelu; and head's norm, loss, the tied table's two gradients added.
TEST(KernelGpt, KernelsPerLayer) {
  for (const std::int64_t layers : {1, 2, 5}) {
    ModelSize size;
    size.layers = layers;
    size.dtype = tensor::DType::f32;
    const GptBodies gpt(size);
    EXPECT_EQ(counts(gpt.bodies[0]), (Counts{3 * layers + 2, 7 * layers + 1}));
    EXPECT_EQ(counts(gpt.bodies[1]), (Counts{3 * layers + 3, 13 * layers + 2}));
    EXPECT_EQ(counts(gpt.bodies[2]), (Counts{3 * layers + 2, 7 * layers + 1}));
    EXPECT_EQ(counts(gpt.bodies[3]), (Counts{2 * layers + 3, 6 * layers + 1}));
  }
}

// No pointwise or reduction op touches memory except its kernel's operands, results, and rows of
// scratch.
TEST(KernelGpt, BytesMoved) {
  ModelSize size;
  size.layers = 1;
  size.dtype = tensor::DType::f32;
  const GptBodies gpt(size);
  const auto kernels = backend::build_kernels(gpt.bodies[0]);
  const std::int64_t rows = size.batch * size.seq, x = rows * size.dim * 4, up = 4 * x,
                     scores = rows * size.vocab * 4, indices = rows * 8;
  const std::int64_t weights = size.dim * size.dim * 4, table = size.vocab * size.dim * 4,
                     position = size.seq * size.dim * 4, gain = size.dim * 4;
  const std::int64_t lse = size.batch * size.heads * size.seq * 4;
  // Stores x, the norm and the operands of the products.
  const std::int64_t embed = indices + table + position + gain + 3 * x;
  const std::int64_t attention = 4 * (2 * x + weights) + 3 * x + x + lse;
  const std::int64_t mlp = 2 * (x + up + 4 * weights) + 2 * up;
  // The stored sum is read again in the second pass.
  const std::int64_t norms = 2 * (gain + 2 * x + 3 * x) + 2 * x;
  const std::int64_t head = x + table + scores + indices + scores + 4;
  EXPECT_EQ(backend::kernel_stats(kernels).bytes, embed + x + attention + mlp + norms + head);
}

class KernelGptOn : public testing::TestWithParam<backend::Target> {};

TEST_P(KernelGptOn, EqualsTheReference) {
  for (const tensor::DType dtype : {tensor::DType::f64, tensor::DType::f32}) {
    ModelSize size;
    size.layers = 2;
    size.dtype = dtype;
    GptBodies gpt(size);
    Random random(4);
    KernelRuns runs(GetParam());
    for (std::size_t b = 0; b < gpt.bodies.size(); ++b) {
      dag::Body& body = gpt.bodies[b];
      std::vector<Array> inputs;
      std::vector<std::uint8_t> accumulate;
      for (const auto& port : body.inputs) {
        const tensor::Type& type = body.graph.type(port.value);
        Array array{type, {}};
        if (type.dtype == tensor::DType::i64) {
          for (std::int64_t i = 0; i < type.elements(); ++i)
            array.data.push_back(
                static_cast<double>(random.below(static_cast<std::uint64_t>(size.vocab))));
        } else {
          for (std::int64_t i = 0; i < type.elements(); ++i)
            array.data.push_back(static_cast<float>(random.unit() - 0.5));
        }
        inputs.push_back(std::move(array));
      }
      for (const auto& port : body.outputs)
        accumulate.push_back(port.kind == dag::PortKind::grad && random.chance(0.5) ? 1 : 0);
      // Saved values are random here, so that attention's adjoint is not that of its forward: the
      // reference and the test's library agree on it only where both derive it from q, k and v.
      // Backward bodies are compared with generated code alone.
      runs.add("gpt body " + std::to_string(b), std::move(body), inputs, accumulate,
               b == 0 ? (dtype == tensor::DType::f64 ? 1e-11 : 2e-4) : 0);
    }
    runs.check("-march=native");
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, KernelGptOn,
                         testing::Values(backend::Target::cpu, backend::Target::cuda));

}  // namespace
}  // namespace piper::test
