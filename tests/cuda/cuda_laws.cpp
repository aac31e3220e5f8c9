#include "tests/cuda/cuda_laws.h"

#include <gtest/gtest.h>

#include "frontend/lower/lower.h"
#include "runtime/cuda/cuda_device.h"

namespace piper::test {

CudaLaw::CudaLaw(const std::string& text, tensor::DType dtype) {
  files.add("small.pipe", text);
  DiagnosticSink sink(context.locations);
  const auto file = source::open("small.pipe", {}, files, context.locations.files(), sink);
  const sema::Program analysed = sema::analyse(*file, files, context, sink);
  const auto lowered = analysed.ok ? lower::lower_train(analysed, analysed.find_train("small"), {},
                                                        context, sink, dtype)
                                   : std::nullopt;
  EXPECT_TRUE(lowered) << text << render_text(sink.sorted(), context.locations.files());
  if (lowered)
    program = std::make_unique<LawProgram>(context, lowered->model, lowered->strategy,
                                           backend::Target::cuda);
}

decltype(LawRunOptions::executor) executors_on(std::vector<std::string> images,
                                               MakeDriver make_driver) {
  return [images = std::move(images), make_driver = std::move(make_driver)](
             const backend::Job& job, const runtime::ExecutorOptions& settings,
             runtime::Failure& failure) {
    runtime::cuda::GpuPrograms programs{images, {}, {}};
    for (std::size_t rank = 0; rank < job.tables().num_ranks; ++rank) {
      programs.training.push_back(job.enqueue(rank, false));
      if (job.evaluation() != nullptr) programs.evaluation.push_back(job.enqueue(rank, true));
    }
    return runtime::Executor::create(
        job.tables(), runtime::cuda::make_cuda_device(std::move(programs), make_driver()), settings,
        failure);
  };
}

runtime::ExecutorOptions with_graphs(bool graphs) {
  runtime::ExecutorOptions options;
  options.runtime.cuda_graphs = graphs;
  return options;
}

std::string flash_source(int heads, int kv, int width, int seq) {
  const auto number = [](int n) { return std::to_string(n); };
  return R"(use std.schedules.gpipe
model net(layers: int, dim: int) {
    input tokens: i64[batch, seq], targets: i64[batch, seq]
    weight token[vocab: 11, dim] = normal(0.5)
    var x = lookup(token, tokens)
    for l in 0..layers { x = attention(x) }
    weight out[dim, vocab]
    loss cross_entropy(x @ out, targets)
}
model attention(x: tensor[batch, seq, dim]) -> tensor[batch, seq, dim] {
    weight q[dim, heads: )" +
         number(heads) + ", width: " + number(width) + "], k[dim, kv: " + number(kv) +
         R"(, width], v[dim, kv, width]
    weight out[heads, width, dim]
    return x + attend(x @ q, x @ k, x @ v, causal: true) @ out
}
mesh cluster(pp: 2)
train small = net(layers: 2, dim: 32) on cluster {
    data:  synthetic(batch: 4, seq: )" +
         number(seq) + R"(, classes: 11)
    optim: sgd(lr: 0.1)
    steps: 3
    gpipe(pp, 2)
}
)";
}

std::string noisy_source(const std::string& lines) {
  return R"(use std.schedules.one_f_one_b
model net(layers: int) {
    input x: tensor[batch, dim]
    var h = x
    for l in 0..layers { h = layer(h) }
    loss square(h)
}
model layer(x: tensor[batch, dim]) -> tensor[batch, dim] {
    weight up[dim, inner: 3*dim], down[inner, dim] = normal(0.4)
    return x + dropout(gelu(layer_norm(x) @ up), 0.2) @ down
}
mesh line(pp: 2, dp: 2)
train small = net(layers: 6) on line {
    data:  synthetic(batch: 16, dim: 4)
    optim: adamw(lr: 1e-2, clip: 1.0)
    steps: 3
    one_f_one_b(pp, 4)
    )" + lines +
         "\n}\n";
}

}  // namespace piper::test
