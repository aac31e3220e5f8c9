// `piper train --device cuda` as a command, on the test driver and on a machine without a GPU;
// refused driver calls, failing and hanging kernels.

#include <gtest/gtest.h>

#include <filesystem>
#include <regex>

#include "frontend/tools/driver.h"
#include "tests/cuda/host_machine.h"
#include "tests/support/fetched.h"
#include "tests/support/golden.h"
#include "tests/support/process.h"

namespace piper::test {
namespace {

constexpr const char* kProgram = R"(use std.models.mlp
use std.schedules.gpipe
mesh pair(pp: 2)
train tiny = mlp(layers: 2, features: 4, hidden: 6, classes: 3) on pair {
    data:     synthetic(batch: 8, classes: 3)
    held_out: synthetic(batch: 8, classes: 3)
    optim:    adamw(lr: 0.01, clip: 1.0)
    steps:    4
    gpipe(pp, 2)
}
)";

const std::string kNarrowProgram = std::string(kProgram).replace(
    std::string(kProgram).find("    steps:"), 0, "    dtype:    bf16\n");

Ended train_on_cuda(const HostOptions& host, std::vector<std::string> words = {},
                    std::map<std::string, std::string> environment = {},
                    const std::string& text = kProgram) {
  words.insert(words.end(), {"--device", "cuda"});
  HostMachine machine;
  machine.options = host;
  return train(text, &machine, std::move(words), std::move(environment));
}

TEST(CudaTrain, PrintsAndKeepsWhatTheCpuDoes) {
  const TemporaryFolder folder;
  const Ended on_cuda = train_on_cuda({}, {"--out", (folder.path() / "cuda").string()});
  ASSERT_EQ(on_cuda.code, 0) << on_cuda.err;
  EXPECT_NE(on_cuda.out.find("2 devices, 2 roles"), std::string::npos) << on_cuda.out;
  EXPECT_NE(on_cuda.out.find("on the host's stand-in for a GPU"), std::string::npos) << on_cuda.out;
  const Ended on_cpu = train(kProgram, nullptr, {"--out", (folder.path() / "cpu").string()});
  ASSERT_EQ(on_cpu.code, 0) << on_cpu.err;
  // Four digits are the same; sums over rows round in another order.
  EXPECT_EQ(line_with(on_cuda.out, "held-out loss"), line_with(on_cpu.out, "held-out loss"));
  EXPECT_NE(line_with(on_cuda.out, "held-out loss"), "");
  const std::string metrics = read_text(folder.path() / "cuda" / "metrics.jsonl").value_or("");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 5) << metrics;
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "cuda" / "flight.1"));
}

TEST(CudaTrain, WithoutAGpuItSaysWhatIsMissing) {
  const Ended ended =
      train(kProgram, nullptr, {"--device", "cuda"}, {{"PIPER_CUDA_PATH", "/dev/null"}});
  EXPECT_EQ(ended.code, tools::kDiagnostics);
  EXPECT_NE(ended.err.find("P6014"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("piper doctor"), std::string::npos) << ended.err;
}

constexpr const char* kAttention = R"(use std.models.gpt
mesh one(pp: 1)
train small = gpt(layers: 1, dim: 8, heads: 2, vocab: 11) on one {
    data:  synthetic(batch: 2, seq: 32, classes: 11)
    optim: sgd(lr: 0.1)
    steps: 3
    place model on pp[0]
}
)";

TEST(CudaTrain, WithoutLibTorchForCudaItSaysWhatIsMissing) {
  HostOptions host;
  host.no_attention = "there is no `libtorch_cuda.so` in `/nowhere`";
  const Ended ended = train_on_cuda(host, {}, {}, kAttention);
  EXPECT_EQ(ended.code, tools::kDiagnostics);
  EXPECT_NE(
      ended.err.find(
          "error P6014: LibTorch for CUDA, whose attention the program uses, is not here: there is no `libtorch_cuda.so` in `/nowhere`"),
      std::string::npos)
      << ended.err;
  EXPECT_NE(ended.err.find("PIPER_CUDA_ATTENTION=builtin"), std::string::npos) << ended.err;
  const Ended own = train_on_cuda(host, {}, {{"PIPER_CUDA_ATTENTION", "builtin"}}, kAttention);
  EXPECT_EQ(own.code, 0) << own.err;
  const Ended neither = train_on_cuda(host, {}, {{"PIPER_CUDA_ATTENTION", "flash"}}, kAttention);
  EXPECT_NE(neither.err.find("P6013"), std::string::npos) << neither.err;
}

/// Flash attention splits its work by the number of multiprocessors, and the plan has workspaces
/// for at most a fixed number; other attention does not depend on it.
TEST(CudaTrain, AGpuWithMoreProcessorsThanFlashIsPlannedForIsToldBeforeTheFirstStep) {
  std::string narrow =
      std::string(kAttention)
          .replace(std::string(kAttention).find("    steps:"), 0, "    dtype: bf16\n");
  narrow.replace(narrow.find("heads: 2"), 8, "heads: 1");  // of width 8, which flash takes
  HostOptions host;
  host.processors = 161;
  const Ended ended = train_on_cuda(host, {}, {}, narrow);
  EXPECT_EQ(ended.code, tools::kDiagnostics);
  EXPECT_NE(
      ended.err.find(
          "error P6014: the host's stand-in for a GPU has `161` multiprocessors, and workspaces of flash attention are planned for GPUs of up to `160`"),
      std::string::npos)
      << ended.err;
  EXPECT_NE(ended.err.find("PIPER_CUDA_ATTENTION=builtin"), std::string::npos) << ended.err;
  EXPECT_EQ(ended.out.find("step 1"), std::string::npos) << ended.out;
  EXPECT_EQ(train_on_cuda(host, {}, {{"PIPER_CUDA_ATTENTION", "builtin"}}, narrow).code, 0);
  EXPECT_EQ(train_on_cuda(host, {}, {}, kAttention).code, 0);
  host.processors = 160;
  EXPECT_EQ(train_on_cuda(host, {}, {}, narrow).code, 0);
}

TEST(CudaTrain, AttentionThatWantsMoreThanPlannedFailsItsStep) {
  HostOptions host;
  host.attention_wants = 4096;
  const Ended ended = train_on_cuda(host, {}, {}, kAttention);
  EXPECT_EQ(ended.code, tools::kDiagnostics);
  EXPECT_NE(
      ended.err.find(
          "error P6011: rank 0, step 1, `F.model`: a library call wanted `4096` bytes more than its planned workspace"),
      std::string::npos)
      << ended.err;
}

TEST(CudaTrain, IsComparedWithOneDeviceAndWithTheCpu) {
  const Ended ended = train_on_cuda({}, {"--reference"});
  EXPECT_EQ(ended.code, 0) << ended.out << ended.err;
  EXPECT_NE(ended.out.find("3 steps in f64 against the unsplit step on one device (bound 1.0e-10"),
            std::string::npos)
      << ended.out;
  EXPECT_NE(
      ended.out.find(
          "3 steps in f32 on the host's stand-in for a GPU against the same program on the CPU (bound 1.0e-03"),
      std::string::npos)
      << ended.out;
  const Ended narrow = train_on_cuda({}, {"--reference"}, {}, kNarrowProgram);
  EXPECT_EQ(narrow.code, 0) << narrow.out << narrow.err;
  EXPECT_NE(narrow.out.find(
                "3 steps in bf16 against the unsplit step in f64 on one device (bound 1.0e-01"),
            std::string::npos)
      << narrow.out;
  EXPECT_NE(
      narrow.out.find(
          "3 steps in bf16 on the host's stand-in for a GPU against the same program on the CPU (bound 1.0e-01"),
      std::string::npos)
      << narrow.out;
  HostOptions deaf;
  deaf.deaf = true;
  const Ended differs = train_on_cuda(deaf, {"--reference"});
  EXPECT_EQ(differs.code, tools::kDiagnostics) << differs.out;
  EXPECT_TRUE(differs.err.find("P6106") != std::string::npos ||
              differs.err.find("P6001") != std::string::npos)
      << differs.err;
}

TEST(CudaTrain, TheLastStepIsTraced) {
  const TemporaryFolder folder;
  const std::string trace = (folder.path() / "trace.json").string(),
                    costs = (folder.path() / "costs.json").string();
  const Ended ended = train_on_cuda({}, {"--trace", trace, "--profile", costs});
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.out.find("last step"), std::string::npos) << ended.out;
  EXPECT_NE(line_with(ended.out, "rank 1"), "") << ended.out;
  const std::string text = read_text(trace).value_or("");
  EXPECT_NE(text.find("F stage[1] mb[1]"), std::string::npos) << text.substr(0, 2000);
  EXPECT_NE(text.find("tiny, measured"), std::string::npos) << text.substr(0, 2000);
  EXPECT_NE(read_text(costs).value_or("").find("\"bodies\""), std::string::npos)
      << read_text(costs).value_or("");
}

/// A library called libcuda.so.1 that is as old as `version` and lists `gpus`; a call of the
/// program that finds it.
Ended train_beside(const TemporaryFolder& folder, int version, int gpus) {
  const std::string source = folder.write(
      "cuda.c",
      "int cuInit(unsigned f) { return " + std::string(gpus > 0 ? "0" : "100") +
          "; }\nint cuDriverGetVersion(int* v) { *v = " + std::to_string(version) +
          "; return 0; }\nint cuDeviceGetCount(int* n) { *n = " + std::to_string(gpus) +
          "; return 0; }\nint cuDeviceGetName(char* t, int n, int d) { t[0] = 'G'; t[1] = 0; return 0; }\n"
          "int cuDeviceGetAttribute(int* v, int a, int d) { *v = a == 75 ? 9 : 0; return 0; }\n"
          "int cuDeviceTotalMem_v2(unsigned long* b, int d) { *b = 1ul << 30; return 0; }\n"
          "int cuDeviceGetPCIBusId(char* t, int n, int d) { t[0] = 0; return 0; }\n"
          "int cuDeviceCanAccessPeer(int* c, int a, int b) { *c = 0; return 0; }\n"
          "int cuDeviceGetP2PAttribute(int* v, int a, int d, int o) { *v = 0; return 0; }\n");
  const auto built =
      run_process({"gcc", "-shared", "-fPIC", "-w", "-o", folder.path() / "libcuda.so.1", source});
  EXPECT_EQ(built.exit_code, 0) << built.err;
  ProcessOptions options;
  options.environment = {{"LD_LIBRARY_PATH", folder.path().string()}, {"PIPER_MATH", "builtin"}};
  const auto ended =
      run_process({program_path("piper"), "train", folder.write("tiny.pipe", kProgram),
                   "--interpret", "--device", "cuda"},
                  options);
  return {ended.exit_code, ended.out, ended.err};
}

TEST(CudaTrain, ADriverThatIsTooOldOrListsNothing) {
  const TemporaryFolder old, empty;
  const Ended none = train_beside(empty, 13000, 0);
  EXPECT_EQ(none.code, tools::kDiagnostics);
  EXPECT_NE(none.err.find("P6014"), std::string::npos) << none.err;
  const Ended ended = train_beside(old, 11040, 1);
  EXPECT_EQ(ended.code, tools::kDiagnostics);
  // Without NVRTC the version that the driver must support is unknown.
  if (ended.err.find("NVRTC, which") != std::string::npos) PIPER_NOT_FETCHED(ended.err);
  EXPECT_NE(ended.err.find("P6015"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("CUDA 11.4"), std::string::npos) << ended.err;
}

TEST(CudaTrain, EveryCallThatIsRefusedIsTold) {
  struct Refused {
    const char* call;
    std::uint64_t number;
    bool in_a_step;
  };
  for (const Refused& each : {Refused{"cuMemGetInfo", 0, false},
                              {"cuMemAlloc", 1, false},
                              {"cuMemHostAlloc", 2, false},
                              {"cuModuleLoadData", 1, false},
                              {"cuStreamCreateWithPriority", 1, false},
                              {"cuEventCreate", 5, false},
                              {"cublasLtMatmulAlgoGetHeuristic", 1, false},
                              {"cuMemcpyAsync", 9, true},
                              {"cuLaunchKernel", 24, true},
                              {"cublasLtMatmul", 5, true},
                              {"cuStreamWaitEvent", 4, true},
                              {"cuStreamWriteValue32", 20, true}}) {
    HostOptions host;
    host.refused = each.call;
    host.refused_call = each.number;
    const Ended ended = train_on_cuda(host);
    EXPECT_EQ(ended.code, tools::kDiagnostics) << each.call;
    EXPECT_NE(ended.err.find("P6016"), std::string::npos) << each.call << "\n" << ended.err;
    EXPECT_NE(ended.err.find(std::string("`") + each.call + "` failed"), std::string::npos)
        << each.call << "\n"
        << ended.err;
    // Then the action is named, at its line.
    EXPECT_EQ(std::regex_search(ended.err, std::regex("rank [0-9]+, `")), each.in_a_step)
        << each.call << "\n"
        << ended.err;
  }
}

TEST(CudaTrain, StepsThatCannotBeCapturedRunAllTheSame) {
  const Ended whole = train_on_cuda({});
  EXPECT_EQ(whole.err.find("P6019"), std::string::npos) << whole.err;
  HostOptions host;
  for (const auto& [call, number] : {std::pair{"cuStreamBeginCapture", 0u},
                                     {"cuStreamBeginCapture", 1u},
                                     {"cuStreamEndCapture", 0u},
                                     {"cuStreamEndCapture", 1u}}) {
    host.refused = call;
    host.refused_call = number;
    const Ended ended = train_on_cuda(host);
    EXPECT_EQ(ended.code, 0) << ended.err;
    EXPECT_NE(ended.err.find(std::string("warning P6019: a step cannot be captured as a graph: `") +
                             call + "` failed"),
              std::string::npos)
        << ended.err;
    EXPECT_EQ(line_with(ended.out, "held-out loss"), line_with(whole.out, "held-out loss"));
    EXPECT_EQ(train_on_cuda(host, {}, {{"PIPER_CUDA_GRAPHS", "0"}}).err.find("P6019"),
              std::string::npos);
  }
  host.refused = "cuGraphLaunch";
  const Ended ended = train_on_cuda(host);
  EXPECT_EQ(ended.code, tools::kDiagnostics);
  EXPECT_NE(ended.err.find("P6016: `cuGraphLaunch` failed"), std::string::npos) << ended.err;
}

TEST(CudaTrain, ArenasThatDoNotFit) {
  HostOptions host;
  host.memory = 1000;
  const Ended ended = train_on_cuda(host);
  EXPECT_EQ(ended.code, tools::kDiagnostics);
  EXPECT_NE(ended.err.find("P6018"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("2 arenas"), std::string::npos) << ended.err;
  host.memory = std::uint64_t{1} << 32;
  host.refused = "cuMemAlloc";
  host.refused_status = runtime::cuda::kOutOfDeviceMemory;
  EXPECT_NE(train_on_cuda(host).err.find("P6018"), std::string::npos);
}

/// The first kernel of the program that computes on stage 1, by its name.
std::string kernel_named(const std::string& part) {
  HostMachine::objects.clear();
  train_on_cuda({});
  const std::string source = HostMachine::objects.begin()->first;
  std::size_t at = source.find("fused_" + part);
  EXPECT_NE(at, std::string::npos) << source;
  return at == std::string::npos ? "" : source.substr(at, source.find('(', at) - at);
}

TEST(CudaTrain, AKernelThatFailsIsNamedByItsLine) {
  HostOptions host;
  host.fault = kernel_named("cross_entropy");
  // On one queue there is one action that it can be; of several that were busy all are named.
  std::string alone = kProgram;
  alone.replace(alone.find("pp: 2"), 5, "pp: 1");
  EXPECT_NE(train_on_cuda(host, {}, {}, alone).err.find("P6017: rank 0, step 1, `F."),
            std::string::npos)
      << train_on_cuda(host, {}, {}, alone).err;
  const Ended ended = train_on_cuda(host);
  EXPECT_EQ(ended.code, tools::kDiagnostics);
  EXPECT_NE(ended.err.find("P6017"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("`F.stage1.mb0`"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("CUDA_ERROR_ILLEGAL_ADDRESS"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("tiny.pipe:"), std::string::npos) << ended.err;
  // So are those of a step that runs as a graph: the third.
  host.spared = 5;
  const Ended later = train_on_cuda(host);
  EXPECT_NE(later.err.find("P6017"), std::string::npos) << later.err;
  EXPECT_NE(later.err.find("step 3, "), std::string::npos) << later.err;
  EXPECT_NE(later.err.find("`F.stage1.mb1`"), std::string::npos) << later.err;
}

/// A graph signals consecutive short actions together: the first and the last of them are named.
TEST(CudaTrain, AKernelThatFailsAmongShortActionsOfAGraph) {
  HostOptions host;
  host.fault = kernel_named("cross_entropy");
  std::string alone = kProgram;
  alone.replace(alone.find("pp: 2"), 5, "pp: 1");
  host.spared = 5;  // both microbatches of two steps, and the first of the third
  const Ended ended = train_on_cuda(host, {}, {}, alone);
  EXPECT_EQ(ended.code, tools::kDiagnostics);
  EXPECT_NE(ended.err.find("P6017: rank 0, step 3, `"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("or an action after it up to `"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("PIPER_CUDA_GRAPHS=0"), std::string::npos) << ended.err;
  const Ended exact = train_on_cuda(host, {}, {{"PIPER_CUDA_GRAPHS", "0"}}, alone);
  EXPECT_NE(exact.err.find("P6017: rank 0, step 3, `F."), std::string::npos) << exact.err;
  EXPECT_EQ(exact.err.find("or an action after it"), std::string::npos) << exact.err;
}

TEST(CudaTrain, AKernelThatNeverEndsIsNotWaitedForForEver) {
  HostOptions host;
  host.hangs = kernel_named("cross_entropy");
  const Ended ended = train_on_cuda(host, {}, {{"PIPER_STALL_SECONDS", "1"}});
  EXPECT_EQ(ended.code, tools::kDiagnostics);
  EXPECT_NE(ended.err.find("P6004"), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("F.stage1.mb0"), std::string::npos) << ended.err;
}

/// Wrong numbers are reported with the messages of the CPU.
TEST(CudaTrain, NumbersThatAreWrongAreToldAsOnTheCpu) {
  const char* const kInfinite = R"(model net() {
    input x: tensor[batch, dim: 4]
    weight w[dim] = normal(1.0)
    loss exp(square(x * w) * 1e6)
}
mesh one(d: 1)
train start = net() on one {
    data: synthetic(batch: 8)
    optim: sgd(lr: 0.1)
    steps: 3
}
)";
  const TemporaryFolder folder;
  const std::string outside = R"(use std.models.gpt
mesh one(d: 1)
train start = gpt(layers: 1, dim: 4, heads: 1, vocab: 64) on one {
    data: bytes(")" + folder.write("text.txt", std::string(200, 'a')) +
                              R"(", batch: 4, seq: 3)
    optim: sgd(lr: 0.1)
    steps: 3
}
)";
  for (const auto& [text, code] :
       {std::pair{std::string(kInfinite), "P6001"}, {outside, "P6002"}}) {
    const Ended on_cpu = train(text, nullptr), on_cuda = train_on_cuda({}, {}, {}, text);
    EXPECT_EQ(on_cuda.code, on_cpu.code);
    EXPECT_NE(line_with(on_cpu.err, code), "") << on_cpu.err;
    EXPECT_EQ(line_with(on_cuda.err, code), line_with(on_cpu.err, code)) << on_cuda.err;
  }
}

}  // namespace
}  // namespace piper::test
