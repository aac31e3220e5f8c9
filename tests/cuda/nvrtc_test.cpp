// The kernels of whole programs under NVRTC: they compile for every architecture, need no stack,
// spill no register, and their machine code moves 16 bytes at once where the plan says so.

#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <map>

#include "backend/cuda/kernel_set.h"
#include "backend/cuda/nvrtc.h"
#include "tests/cuda/disassembly.h"
#include "tests/cuda/programs.h"
#include "tests/support/fetched.h"
#include "tests/support/golden.h"

namespace piper::test {
namespace {

using backend::cuda::Compiled;
using backend::cuda::KernelSet;
using backend::cuda::Nvrtc;

constexpr const char* kArchitectures[] = {"sm_80", "sm_90a", "sm_100"};

/// Per kernel the bytes of its narrowest type that a thread moves at once.
using MovedBytes = std::map<std::string, std::int64_t>;

MovedBytes add_all(KernelSet& kernels, const CudaProgram& program) {
  MovedBytes moved;
  for (const backend::KernelBody& body : program.programs.bodies) {
    for (const backend::cuda::BodyStep& step : kernels.add(body)) {
      if (step.kind != backend::cuda::BodyStep::Kind::kernel) continue;
      std::int64_t narrowest = 8;
      for (const backend::cuda::Argument& argument : step.arguments) {
        if (argument.kind == backend::cuda::Argument::Kind::buffer)
          narrowest = std::min<std::int64_t>(
              narrowest, tensor::dtype_bytes(body.buffers[argument.buffer].dtype));
      }
      moved[kernels.list()[step.number].name] =
          narrowest * std::get<backend::Kernel>(body.steps[step.nest]).lanes.vector;
    }
  }
  return moved;
}

class NvrtcTest : public testing::Test {
 protected:
  void SetUp() override {
    nvrtc_ = Nvrtc::open({}, reason_);
    if (!nvrtc_) PIPER_NOT_FETCHED(reason_);
  }
  std::shared_ptr<const Nvrtc> nvrtc_;
  std::string reason_;
};

void expect_clean(const Compiled& made, const KernelSet& kernels, const std::string& what) {
  ASSERT_TRUE(made.ok) << what << "\n" << made.log.substr(0, 4000);
  EXPECT_EQ(made.cubin.substr(1, 3), "ELF") << what;
  for (const auto& entry : kernels.list()) {
    const auto found = made.kernels.find(entry.name);
    ASSERT_NE(found, made.kernels.end()) << what << ": ptxas does not speak of " << entry.name;
    EXPECT_EQ(found->second.stack_bytes, 0u) << what << ": " << entry.name;
    EXPECT_EQ(found->second.spill_bytes, 0u) << what << ": " << entry.name;
    EXPECT_GT(found->second.registers, 0u) << what << ": " << entry.name;
    EXPECT_EQ(found->second.shared_bytes, entry.shared_bytes) << what << ": " << entry.name;
  }
}

void expect_wide(const Compiled& compiled, const MovedBytes& moved) {
  std::string reason;
  const auto codes = disassemble(compiled.cubin, reason);
  if (codes.empty()) PIPER_NOT_FETCHED(reason);
  std::size_t wide = 0;
  for (const auto& [name, bytes] : moved) {
    const auto found = codes.find(name);
    ASSERT_NE(found, codes.end()) << name;
    const MachineCode& code = found->second;
    EXPECT_EQ(code.local, 0u) << name;
    EXPECT_GT(code.stores, 0u) << name;
    if (bytes < 16) continue;
    ++wide;
    EXPECT_GT(code.wide_loads + code.wide_stores, 0u)
        << name << ": " << code.loads << " loads, " << code.stores << " stores";
  }
  EXPECT_GT(wide, 60u);
}

TEST_F(NvrtcTest, EveryProgram) {
  KernelSet kernels;  // those that several programs have are compiled once
  MovedBytes moved;
  for (const auto& dtype : {std::optional<tensor::DType>(), std::optional(tensor::DType::bf16)}) {
    const std::size_t known = kernels.list().size();
    for (const CudaProgram& program : cuda_programs(dtype)) moved.merge(add_all(kernels, program));
    EXPECT_GT(kernels.list().size(), known + 40);
  }
  std::vector<std::future<Compiled>> made;
  for (const char* architecture : kArchitectures) {
    made.push_back(std::async(std::launch::async, [&, architecture] {
      return nvrtc_->compile(kernels.source(), architecture);
    }));
  }
  for (std::size_t i = 0; i < made.size(); ++i) {
    const Compiled compiled = made[i].get();
    expect_clean(compiled, kernels, kArchitectures[i]);
    if (std::string_view(kArchitectures[i]) == "sm_90a") expect_wide(compiled, moved);
  }
}

/// The kernels of the runtime itself.
TEST_F(NvrtcTest, TheRuntimesKernels) {
  for (const char* architecture : kArchitectures) {
    const Compiled made = nvrtc_->compile(backend::cuda::runtime_kernels_source(), architecture);
    ASSERT_TRUE(made.ok) << architecture << "\n" << made.log.substr(0, 4000);
    EXPECT_EQ(made.kernels.size(), 21u);
    for (const auto& [name, kernel] : made.kernels)
      EXPECT_EQ(kernel.stack_bytes + kernel.spill_bytes, 0u) << architecture << ": " << name;
  }
}

TEST_F(NvrtcTest, SaysWhatIsWrong) {
  const Compiled made = nvrtc_->compile("this is no program", "sm_90a");
  EXPECT_FALSE(made.ok);
  EXPECT_NE(made.log.find("kernels.cu"), std::string::npos) << made.log;
  EXPECT_FALSE(nvrtc_->compile("", "sm_1").ok);
}

TEST(CudaSource, Golden) {
  KernelSet kernels;
  add_all(kernels, cuda_program("tests/cuda/testdata/forms.pipe"));
  expect_golden("tests/cuda/testdata/forms.expected.cu", kernels.source());
}

// Only one of several forms of ptxas's output.
TEST(CudaSource, ResourcesOfALog) {
  const auto kernels = backend::cuda::parse_resources(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'a' for 'sm_90a'\n"
      "ptxas info    : Function properties for a\n"
      "    16 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads\n"
      "ptxas info    : Used 32 registers, used 1 barriers, 128 bytes smem, 400 bytes cmem[0]\n"
      "ptxas info    : Compiling entry function 'b' for 'sm_90a'\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 10 registers\n");
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels.at("a").registers, 32u);
  EXPECT_EQ(kernels.at("a").shared_bytes, 128u);
  EXPECT_EQ(kernels.at("a").stack_bytes, 16u);
  EXPECT_EQ(kernels.at("a").spill_bytes, 8u);
  EXPECT_EQ(kernels.at("b").registers, 10u);
  EXPECT_EQ(kernels.at("b").shared_bytes, 0u);
}

}  // namespace
}  // namespace piper::test
