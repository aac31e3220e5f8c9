#pragma once
// Programs planned for CUDA and run on a test's driver, and by the interpreter.

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "frontend/source/source_manager.h"
#include "runtime/cuda/driver.h"
#include "tests/laws/law_runs.h"

namespace piper::test {

/// A program from text, its train called `small`.
struct CudaLaw {
  /// Fails the test if it does not compile.
  explicit CudaLaw(const std::string& text, tensor::DType dtype = tensor::DType::f64);
  source::MemoryFileSystem files;
  Context context;
  std::unique_ptr<LawProgram> program;
};

/// Makes executors over drivers, which load the images.
using MakeDriver = std::function<std::unique_ptr<runtime::cuda::Driver>()>;
decltype(LawRunOptions::executor) executors_on(std::vector<std::string> images,
                                               MakeDriver make_driver);

/// Options of an executor: steps are captured as graphs, or all of them enqueued action by action.
runtime::ExecutorOptions with_graphs(bool graphs);

inline constexpr const char* kMlp = R"(use std.models.mlp
mesh one(d: 1)
train small = mlp(layers: 2, features: 4, hidden: 6, classes: 3) on one {
    data:  synthetic(batch: 8, classes: 3)
    optim: adamw(lr: 1e-2, clip: 0.1)
    steps: 3
}
)";

/// With attention of a shape that LibTorch's kernels support, in f32.
inline constexpr const char* kAttention = R"(use std.models.gpt
use std.schedules.gpipe
mesh cluster(pp: 2)
train small = gpt(layers: 2, dim: 8, heads: 2, vocab: 11) on cluster {
    data:  synthetic(batch: 4, seq: 32, classes: 11)
    optim: adamw(lr: 1e-2, eps: 1e-4)
    steps: 3
    gpipe(pp, 2)
}
)";

/// With attention of shapes that LibTorch's flash kernels support, in bf16: `heads` of `width` that
/// share `kv` key heads, `seq` positions of each of four samples on two stages.
std::string flash_source(int heads, int kv, int width, int seq);

/// Two stages, four microbatches, and targets some of which do not count.
inline constexpr const char* kMasked = R"(use std.schedules.gpipe
model net(layers: int) {
    input x: tensor[batch, dim], targets: i64[batch]
    weight head[dim, classes: 3] = normal(0.3)
    var h = x
    for l in 0..layers { h = layer(h) }
    loss cross_entropy(h @ head, targets, ignore: 2)
}
model layer(x: tensor[batch, dim]) -> tensor[batch, dim] {
    weight w[dim] = normal(0.4)
    return tanh(x * w)
}
mesh cluster(pp: 2)
train small = net(layers: 2) on cluster {
    data:  synthetic(batch: 16, dim: 3, classes: 3)
    optim: adamw(lr: 1e-2)
    steps: 3
    gpipe(pp, 4)
}
)";

/// Six layers that draw random numbers, on two stages and two replicas; `lines` are further
/// directives.
std::string noisy_source(const std::string& lines);
inline constexpr std::pair<const char*, const char*> kNoisyLines[] = {
    {"whole", "replicate model over dp"},
    {"buckets", "replicate model over dp with bucket: 256"},
    {"zero 1", "replicate model over dp with bucket: 256, zero: 1"},
    {"zero 2", "replicate model over dp with bucket: 256, zero: 2"},
    {"zero 3", "replicate model over dp with bucket: 256, zero: 3, prefetch: 1"},
    {"offload", "replicate model over dp\n    offload layer[1], layer[4] with window: 1"},
    {"optimizer on the host",
     "replicate model over dp with zero: 1\n    offload model with what: optimizer"},
    {"recompute", "replicate model over dp with zero: 1\n    recompute layer[1], layer[4]"},
};

}  // namespace piper::test
