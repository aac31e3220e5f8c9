// The enqueuing functions of the examples, built by the host compiler and run against a device that
// records requests: everything in the plan, in its order, nothing else, and every pointer inside
// the arena.

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "backend/cuda/emit_enqueue.h"
#include "backend/cuda/print_program.h"
#include "backend/interpret/interpret_enqueue.h"
#include "runtime/device_abi.h"
#include "runtime/dtypes.h"
#include "tests/cuda/programs.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace piper::test {
namespace {

using backend::DeviceProgram;
using backend::Instruction;
using backend::cuda::BodyStep;
using backend::cuda::KernelSet;

/// The requests of an action, in words.
using Record = std::vector<std::string>;

/// A device that runs nothing. Its arena is an address range that is never accessed.
struct Recorder {
  static constexpr std::uint64_t kBase = std::uint64_t{1} << 44;

  explicit Recorder(const DeviceProgram& program, const KernelSet& kernels)
      : program(program), kernels(kernels) {
    device.abi_version = PIPER_DEVICE_ABI_VERSION;
    device.draw = this;
    device.device = this;
    device.begin = [](PiperDevice* d, PiperRank*, std::uint32_t stream, std::uint32_t action,
                      const PiperWait* waits, std::uint32_t count) {
      std::string text = "begin " + std::to_string(action) + " on " + std::to_string(stream);
      for (std::uint32_t w = 0; w < count; ++w) text += wait(waits[w]);
      return of(d).put(text);
    };
    device.end = [](PiperDevice* d, PiperRank*, std::uint32_t stream, std::uint32_t action) {
      return of(d).put("end " + std::to_string(action) + " on " + std::to_string(stream));
    };
    device.kernel = [](PiperDevice* d, PiperRank*, std::uint32_t, std::uint32_t,
                       std::uint32_t kernel, const void* const* arguments) {
      EXPECT_NE(arguments, nullptr);
      return of(d).put("kernel " + of(d).kernels.list()[kernel].name);
    };
    device.clear = [](PiperDevice* d, PiperRank*, std::uint32_t, std::uint32_t, void* at,
                      std::uint64_t bytes) { return of(d).inside(at, bytes).put("clear"); };
    device.check = [](PiperDevice* d, PiperRank*, std::uint32_t, std::uint32_t,
                      const PiperCheck* check, const std::int64_t* values) {
      return of(d).inside(values, static_cast<std::uint64_t>(check->count) * 8).put("check");
    };
    device.count = [](PiperDevice* d, PiperRank*, std::uint32_t, std::uint32_t,
                      const std::uint64_t*, std::uint32_t, std::uint64_t, std::int64_t,
                      std::uint64_t) { return of(d).put("count"); };
    device.call = [](PiperDevice* d, PiperRank*, std::uint32_t, std::uint32_t,
                     const PiperCall* call) { return of(d).library(*call); };
    device.load = [](PiperDevice* d, PiperRank*, std::uint32_t, std::uint32_t, std::uint32_t input,
                     std::uint64_t first, std::uint64_t samples, std::uint64_t) {
      return of(d).put("load " + std::to_string(input) + " " + std::to_string(first) + " " +
                       std::to_string(samples));
    };
    device.report = [](PiperDevice* d, PiperRank*, std::uint32_t, std::uint32_t,
                       std::uint32_t subject, const std::uint64_t*, std::uint32_t, std::uint32_t,
                       std::uint32_t) { return of(d).put("report " + std::to_string(subject)); };
    device.communicate = [](PiperDevice* d, PiperRank*, std::uint32_t stream, std::uint32_t,
                            std::uint32_t position) {
      return of(d).put("communicate " + std::to_string(stream) + " " + std::to_string(position));
    };
  }

  static Recorder& of(PiperDevice* device) { return *static_cast<Recorder*>(device->device); }
  static std::string wait(const PiperWait& wait) {
    return ", " + std::to_string(wait.stream) + " " + std::to_string(wait.position) + " " +
           std::to_string(wait.distance);
  }
  int put(std::string text) {
    calls.push_back(std::move(text));
    return 0;
  }
  int library(const PiperCall& call) {
    if (call.shape->kind == PIPER_CALL_GEMM) {
      const PiperGemm& gemm = call.shape->of.gemm;
      const std::uint64_t bytes = piper::runtime::element_bytes(gemm.dtype),
                          batch = static_cast<std::uint64_t>(gemm.batch);
      const std::uint64_t of_sums =
          gemm.dtype == PIPER_BF16 && call.end != PIPER_END_ROUNDS ? 4 : bytes;
      inside(call.in[0], bytes * batch * static_cast<std::uint64_t>(gemm.m * gemm.k));
      inside(call.in[1], bytes * batch * static_cast<std::uint64_t>(gemm.k * gemm.n));
      inside(call.out[0], of_sums * batch * static_cast<std::uint64_t>(gemm.m * gemm.n));
    }
    return inside(call.workspace, call.workspace_bytes).put(call_text(*call.shape, call.end));
  }
  static std::string call_text(const PiperCallShape& shape, std::uint32_t end) {
    return piper_call_name(shape.kind) + std::string(" ") + std::to_string(end);
  }
  Recorder& inside(const void* at, std::uint64_t bytes) {
    if (bytes == 0) return *this;  // a call without a workspace
    const auto begin = reinterpret_cast<std::uint64_t>(at);
    EXPECT_GE(begin, kBase) << calls.back();
    EXPECT_LE(begin + bytes, kBase + program.arena_bytes) << calls.back();
    return *this;
  }

  PiperDevice device{};
  const DeviceProgram& program;
  const KernelSet& kernels;
  Record calls;
};

/// The starts of the rank's intervals, each this much after the one before it.
constexpr std::uint64_t kFirstOfInterval = 1024;

/// The same from the tables of the program.
Record planned(const DeviceProgram& program, const std::vector<backend::KernelBody>& bodies,
               const KernelSet& kernels, const std::vector<std::vector<BodyStep>>& steps) {
  Record calls;
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const Instruction& each = program.instructions[i];
    std::string begin = "begin " + std::to_string(i) + " on " + std::to_string(each.stream);
    for (std::uint32_t w = 0; w < each.num_waits; ++w)
      begin += Recorder::wait(program.waits[each.first_wait + w]);
    calls.push_back(std::move(begin));
    switch (each.kind) {
      case Instruction::Kind::run:
        for (const BodyStep& step : steps[each.body]) {
          const backend::KernelBody& body = bodies[each.body];
          if (step.kind == BodyStep::Kind::kernel)
            calls.push_back("kernel " + kernels.list()[step.number].name);
          if (step.kind == BodyStep::Kind::check) calls.emplace_back("check");
          if (step.kind == BodyStep::Kind::clear) {
            const backend::KernelBuffer& buffer = body.buffers[step.buffer];
            if (!buffer.accumulates || program.accumulate[each.first_accumulate + buffer.port] == 0)
              calls.emplace_back("clear");
          }
          if (step.kind == BodyStep::Kind::library) {
            const auto& call = std::get<backend::LibraryCall>(body.steps[step.number]);
            const backend::KernelBuffer& result = body.buffers[call.results[0]];
            const bool adds = call.shape.kind == PIPER_CALL_GEMM && result.accumulates &&
                              program.accumulate[each.first_accumulate + result.port] != 0;
            calls.push_back(Recorder::call_text(call.shape, adds ? PIPER_END_ADDS : call.end));
          }
        }
        break;
      case Instruction::Kind::load: {
        const backend::CallInterval& samples = intervals_of(program, each).front();
        calls.push_back("load " + std::to_string(each.subject) + " " +
                        std::to_string(samples.first + kFirstOfInterval * samples.interval) + " " +
                        std::to_string(program.intervals[samples.interval].extent));
        break;
      }
      case Instruction::Kind::count: calls.emplace_back("count"); break;
      case Instruction::Kind::report:
        if (each.num_operands != 0) calls.push_back("report " + std::to_string(each.subject));
        break;
      case Instruction::Kind::communicate:
        calls.push_back("communicate " + std::to_string(each.stream) + " " +
                        std::to_string(each.position));
        break;
    }
    calls.push_back("end " + std::to_string(i) + " on " + std::to_string(each.stream));
  }
  return calls;
}

TEST(Enqueue, EveryExample) {
  const TemporaryFolder folder;
  std::size_t roles = 0;
  for (const CudaProgram& program : cuda_programs()) {
    KernelSet kernels;
    std::vector<std::vector<BodyStep>> steps;
    for (const backend::KernelBody& body : program.programs.bodies)
      steps.push_back(kernels.add(body));
    for (const DeviceProgram& role : program.programs.roles) {
      const std::string name = "role" + std::to_string(roles++);
      const std::string source = folder.write(name + ".cpp",
                                              backend::cuda::emit_enqueue(
                                                  role, program.programs.bodies, kernels, steps)),
                        object = folder.path() / (name + ".so");
      const auto built = run_process({"g++", "-std=c++20", "-Wall", "-Wextra", "-Werror", "-shared",
                                      "-fPIC", "-I.", "-o", object, source});
      ASSERT_EQ(built.exit_code, 0) << program.name << " " << role.role << "\n"
                                    << built.err.substr(0, 4000);
      void* const library = dlopen(object.c_str(), RTLD_NOW);
      ASSERT_NE(library, nullptr) << dlerror();
      const auto entry =
          reinterpret_cast<const PiperEnqueue* (*)()>(dlsym(library, "piper_enqueue_v1"));
      ASSERT_NE(entry, nullptr);
      const PiperEnqueue& made = *entry();
      EXPECT_EQ(made.abi_version, PIPER_DEVICE_ABI_VERSION);
      EXPECT_EQ(made.num_actions, role.instructions.size());
      ASSERT_EQ(made.num_kernels, kernels.list().size());
      for (std::size_t k = 0; k < kernels.list().size(); ++k)
        EXPECT_EQ(made.kernels[k].name, kernels.list()[k].name);

      Recorder recorder(role, kernels);
      std::vector<PiperInterval> intervals;
      for (const backend::ProgramInterval& each : role.intervals)
        intervals.push_back({kFirstOfInterval * intervals.size(), each.extent,
                             kFirstOfInterval * intervals.size() + each.extent});
      PiperRank rank{};
      rank.arena = reinterpret_cast<unsigned char*>(Recorder::kBase);
      rank.intervals = intervals.data();
      ASSERT_EQ(made.enqueue(&made, &recorder.device, &rank, 0, made.num_actions), 0);
      EXPECT_EQ(recorder.calls, planned(role, program.programs.bodies, kernels, steps))
          << program.name << " " << role.role;
      // Without a compiler a walk over the tables asks for the same.
      const backend::InterpretedEnqueue walk(role, program.programs.bodies, kernels, steps);
      Recorder walked(role, kernels);
      ASSERT_EQ(
          walk.table().enqueue(&walk.table(), &walked.device, &rank, 0, walk.table().num_actions),
          0);
      EXPECT_EQ(walked.calls, recorder.calls) << program.name << " " << role.role;
      EXPECT_TRUE(std::equal(role.places.begin(), role.places.end(), made.places,
                             made.places + made.num_actions))
          << program.name << " " << role.role;
      dlclose(library);
    }
  }
  EXPECT_GT(roles, 8u);
}

}  // namespace
}  // namespace piper::test
