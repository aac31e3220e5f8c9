#include "tests/runtime/sample_jobs.h"

#include <gtest/gtest.h>

namespace piper::runtime {
namespace {

double input_value(std::uint64_t step, std::uint32_t mb, std::uint64_t i) {
  return static_cast<double>(step * 31 + mb * 7 + i) * 0.25;
}

}  // namespace

void add_pipeline(HandJob& job) {
  constexpr std::uint32_t microbatches = kMicrobatches;
  const std::uint32_t down = job.pair(0, 1), up = job.pair(1, 0);
  job.loss("square", microbatches * kWidth);
  HandProgram& a = job.rank(0);
  HandProgram& b = job.rank(1);
  const std::uint64_t weight = a.allocate<double>(1), gradient = a.allocate<double>(1);
  a.end_state();
  a.param("w", weight, gradient, 1, PIPER_F64, PIPER_CONSTANT, 0.5);
  const std::uint64_t sums = b.allocate<double>(microbatches);
  std::uint64_t out[kWindow], back[kWindow], in[kWindow], grad[kWindow];
  for (std::uint32_t w = 0; w < kWindow; ++w) {
    out[w] = a.allocate<double>(kWidth);
    back[w] = a.allocate<double>(kWidth);
    in[w] = b.allocate<double>(kWidth);
    grad[w] = b.allocate<double>(kWidth);
  }

  const std::uint64_t scalars = a.scalars();
  std::vector<Spot> forward, sent, received, work, returned, got, backward;
  for (std::uint32_t mb = 0; mb < microbatches; ++mb) {
    const std::uint32_t w = mb % kWindow;
    forward.push_back(a.compute("F.a.mb" + std::to_string(mb), {}, [=](Step& step) {
      for (std::uint64_t i = 0; i < kWidth; ++i) {
        step.at<double>(out[w])[i] =
            input_value(step.rank->global_step, mb, i) * *step.at<double>(weight);
      }
      return 0;
    }));
    sent.push_back(a.communicate(
        "down", PIPER_SEND, down, mb, {HandProgram::part<double>(out[w], PIPER_NO_OFFSET, kWidth)},
        {HandProgram::after(forward[mb])}, "send.F.mb" + std::to_string(mb)));
    received.push_back(b.communicate("down", PIPER_RECV, down, mb,
                                     {HandProgram::part<double>(PIPER_NO_OFFSET, in[w], kWidth)},
                                     {}, "recv.F.mb" + std::to_string(mb)));
    work.push_back(b.compute("B.b.mb" + std::to_string(mb), {HandProgram::after(received[mb])},
                             [=](Step& step) {
                               double sum = 0;
                               for (std::uint64_t i = 0; i < kWidth; ++i) {
                                 const double y = step.at<double>(in[w])[i];
                                 sum += y * y;
                                 step.at<double>(grad[w])[i] = 2 * y;
                               }
                               step.at<double>(sums)[mb] = sum;
                               return 0;
                             }));
    returned.push_back(b.communicate("up", PIPER_SEND, up, 100 + mb,
                                     {HandProgram::part<double>(grad[w], PIPER_NO_OFFSET, kWidth)},
                                     {HandProgram::after(work[mb])},
                                     "send.B.mb" + std::to_string(mb)));
    got.push_back(a.communicate("up", PIPER_RECV, up, 100 + mb,
                                {HandProgram::part<double>(PIPER_NO_OFFSET, back[w], kWidth)}, {},
                                "recv.B.mb" + std::to_string(mb)));
  }
  for (std::uint32_t mb = 0; mb < microbatches; ++mb) {
    const std::uint32_t w = mb % kWindow;
    backward.push_back(
        a.compute("B.a.mb" + std::to_string(mb), {HandProgram::after(got[mb])}, [=](Step& step) {
          double& g = *step.at<double>(gradient);
          if (mb == 0) g = 0;
          for (std::uint64_t i = 0; i < kWidth; ++i)
            g += step.at<double>(back[w])[i] * input_value(step.rank->global_step, mb, i);
          return 0;
        }));
  }
  a.compute("update", {}, [=](Step& step) {
    const double g = *step.at<double>(gradient) / static_cast<double>(microbatches * kWidth);
    *step.at<double>(weight) -= 1e-6 * step.at<PiperScalars>(scalars)->learning_rate * g;
    return 0;
  });
  b.compute("report", {}, [=](Step& step) {
    step.api->report(step.rank, 0, step.at<double>(sums), microbatches);
    return 0;
  });
  // Buffers are reused: the next write waits for the reader.
  for (std::uint32_t mb = 0; mb < microbatches; ++mb) {
    const std::uint32_t before = (mb + microbatches - kWindow) % microbatches,
                        distance = mb < kWindow ? 1 : 0;
    a.add_wait(forward[mb], HandProgram::after(sent[before], distance));
    b.add_wait(received[mb], HandProgram::after(work[before], distance));
    b.add_wait(work[mb], HandProgram::after(returned[before], distance));
    a.add_wait(got[mb], HandProgram::after(backward[before], distance));
  }
}

std::vector<double> expected_losses(std::uint64_t steps, double& w, std::uint64_t first) {
  std::vector<double> losses;
  for (std::uint64_t step = first; step < first + steps; ++step) {
    double total = 0, g = 0;
    for (std::uint32_t mb = 0; mb < kMicrobatches; ++mb) {
      double sum = 0;
      for (std::uint64_t i = 0; i < kWidth; ++i) {
        const double x = input_value(step, mb, i), y = x * w;
        sum += y * y;
        g += 2 * y * x;
      }
      total += sum;
    }
    losses.push_back(total / (kMicrobatches * kWidth));
    w -= 1e-6 * 0.1 * (g / (kMicrobatches * kWidth));
  }
  return losses;
}

void add_evaluation(HandJob& job) {
  HandProgram& first = job.evaluation(0);
  // The state of the training program: two values, each on its own cache line.
  first.allocate<double>(1);
  first.allocate<double>(1);
  first.end_state();
  const std::uint64_t value = first.allocate<double>(1);
  first.compute("report", {}, [=](Step& step) {
    *step.at<double>(value) =
        (2.0 * static_cast<double>(step.rank->global_step) + 1) * kMicrobatches * kWidth;
    step.api->report(step.rank, 0, step.at<double>(value), 1);
    return 0;
  });
  job.evaluation(1).compute("nothing", {}, [](Step&) { return 0; });
  PiperData& held_out = job.tables().held_out;
  held_out = {};
  held_out.kind = PIPER_SYNTHETIC;
  held_out.batch = 8;
}

std::unique_ptr<Executor> create(const PiperJob& job, const ExecutorOptions& options,
                                 const CpuOptions& cpu) {
  Failure failure;
  auto executor = Executor::create(job, make_cpu_device(cpu), options, failure);
  EXPECT_TRUE(executor) << describe(failure);
  return executor;
}

}  // namespace piper::runtime
