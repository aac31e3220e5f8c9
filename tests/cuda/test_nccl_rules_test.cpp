// The library of NCCL as a file, and the calls that its double in tests accepts and refuses.

#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "runtime/cuda/nccl.h"
#include "tests/cuda/forked.h"
#include "tests/cuda/host_driver.h"
#include "tests/cuda/test_nccl.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace piper::test {
namespace {

TEST(NcclLibraryFile, MissingTooOldOrLackingFunctions) {
  runtime::Failure failure;
  EXPECT_FALSE(runtime::cuda::open_nccl("/dev/null/libnccl.so.2", failure));
  EXPECT_EQ(failure.code, runtime::kCudaMissing);
  const TemporaryFolder folder;
  const auto open = [&](const std::string& text) {
    const std::string path = folder.path() / ("lib" + std::to_string(text.size()) + ".so");
    EXPECT_EQ(
        run_process({"gcc", "-shared", "-fPIC", "-w", "-o", path, folder.write("nccl.c", text)})
            .exit_code,
        0);
    return runtime::cuda::open_nccl(path, failure);
  };
  EXPECT_FALSE(open("int ncclGetVersion(int* v) { *v = 21003; return 0; }"));
  EXPECT_EQ(failure.code, runtime::kCudaTooOld);
  EXPECT_NE(failure.message.find(
                "is version 2.10.3, and lacks `ncclAllGather`; 2.18.3 or newer is needed"),
            std::string::npos)
      << failure.message;
  std::string whole;
#define NCCL_FUNCTION(result, symbol, parameters) \
  whole += std::string("long ") + #symbol + "(int* v) { *v = 22809; return 0; }\n";
#include "runtime/cuda/nccl_functions.def"
#undef NCCL_FUNCTION
  const auto found = open(whole);
  ASSERT_TRUE(found) << failure.message;
  EXPECT_EQ(found->name(), "NCCL 2.28.9");
}

/// Two members of a communicator that make one call each; returns their errors.
std::vector<Ended> call_forked(const runtime::cuda::NcclCall& first,
                               const runtime::cuda::NcclCall& second, bool at_once = false) {
  const TemporaryFolder folder;
  return run_forked(2, [&](std::uint32_t self) {
    HostDriver driver({.seed = self + 1});
    TestNccl nccl(driver, {.folder = folder.path().string()});
    runtime::cuda::NcclId id{"one"};
    runtime::cuda::NcclCommunicator communicator = nullptr;
    runtime::cuda::CudaStream stream = nullptr;
    unsigned char* memory = nullptr;
    driver.create_stream(runtime::cuda::Priority::communication, &stream);
    driver.allocate(1024, &memory);
    std::string said;
    const auto settle = [&] {
      runtime::cuda::NcclResult state = runtime::cuda::kNcclInProgress;
      for (int i = 0; i < 2000 && nccl.state(communicator, &state) == 0 &&
                      state == runtime::cuda::kNcclInProgress;
           ++i)
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      return state;
    };
    EXPECT_EQ(nccl.open(&communicator, 2, id, self, 4), runtime::cuda::kNcclInProgress);
    if (!at_once) settle();
    runtime::cuda::NcclCall call = self == 0 ? first : second;
    call.from = memory;
    call.to = memory + 512;
    auto result = nccl.enqueue(communicator, stream, call);
    if (result == runtime::cuda::kNcclInProgress) result = settle();
    runtime::cuda::Event event = nullptr;
    driver.create_event(&event);
    driver.record(event, stream);
    for (int i = 0; i < 2000 && result == 0 && driver.query(event) == runtime::cuda::kNotReady;
         ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      nccl.state(communicator, &result);
    }
    return Ended{result, nccl.text_of(result, communicator), ""};
  });
}

TEST(TestNcclRules, CallsMatchOrFail) {
  using runtime::cuda::NcclKind;
  const auto call = [](NcclKind kind, std::uint64_t count, std::uint32_t peer = 0,
                       std::uint32_t dtype = PIPER_F32) {
    return runtime::cuda::NcclCall{kind, nullptr, nullptr, count, dtype, peer};
  };
  for (const Ended& each : call_forked(call(NcclKind::send, 8, 1), call(NcclKind::receive, 8, 0)))
    EXPECT_EQ(each.code, 0) << each.out;
  for (const auto& [first, second] :
       {std::pair{call(NcclKind::send, 8, 1), call(NcclKind::receive, 7, 0)},
        {call(NcclKind::send, 8, 1), call(NcclKind::send, 8, 0)},
        {call(NcclKind::all_reduce, 8), call(NcclKind::all_gather, 8)},
        {call(NcclKind::broadcast, 8, 0), call(NcclKind::broadcast, 8, 1)},
        {call(NcclKind::all_reduce, 8), call(NcclKind::all_reduce, 8, 0, PIPER_F64)}}) {
    for (const Ended& each : call_forked(first, second)) {
      EXPECT_EQ(each.code, runtime::cuda::kNcclInvalidUsage);
      EXPECT_NE(each.out.find("make different calls"), std::string::npos) << each.out;
    }
  }
  // Before it is there.
  for (const Ended& each :
       call_forked(call(NcclKind::send, 8, 1), call(NcclKind::receive, 8, 0), true))
    EXPECT_NE(each.out.find("in progress"), std::string::npos) << each.out;
}

}  // namespace
}  // namespace piper::test
