// Attention of LibTorch on the device of the tests, call by call: the kernels that a plan chooses,
// in its workspaces, on a stream and in a graph. Results match the runtime's own loops, as closely
// as the type allows. Runs in cuda_run_test, with the host in place of both, and in gpu_test.

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <random>
#include <thread>

#include "backend/cuda/attention.h"
#include "runtime/device/library_calls.h"
#include "runtime/kernel_math.h"
#include "tests/cuda/test_device.h"
#include "tests/support/test_call.h"

namespace piper::test {
namespace {

namespace cuda = runtime::cuda;

struct Shape {
  const char* what;
  std::int64_t batch, seq, keys, heads, kv_heads, width;
  bool causal;
  std::uint32_t dtype;
};
constexpr Shape kShapes[] = {
    {"heads of 64", 2, 128, 128, 4, 4, 64, true, PIPER_BF16},
    {"heads of 128", 2, 128, 128, 2, 2, 128, true, PIPER_BF16},
    {"grouped heads of 64", 2, 192, 192, 8, 2, 64, true, PIPER_BF16},
    {"grouped heads of 128", 1, 130, 130, 6, 3, 128, true, PIPER_BF16},
    {"one key head", 2, 96, 160, 4, 1, 64, true, PIPER_BF16},
    {"keys in parts", 1, 128, 2048, 2, 2, 128, true, PIPER_BF16},
    {"all keys in parts", 1, 64, 1500, 2, 2, 64, false, PIPER_BF16},
    {"a width between", 2, 100, 100, 3, 3, 40, true, PIPER_BF16},
    {"wide heads", 1, 64, 64, 2, 2, 256, true, PIPER_BF16},
    {"f32", 2, 128, 128, 3, 3, 64, true, PIPER_F32},
    {"f32, all keys", 1, 64, 100, 2, 2, 36, false, PIPER_F32},
};

/// Operands and results of a call, in memory of the host.
struct Buffers {
  explicit Buffers(const PiperAttend& call) : call(call) {
    const std::size_t element = call.dtype == PIPER_BF16 ? 2 : 4;
    const auto of = [&](std::int64_t positions, std::int64_t heads) {
      return static_cast<std::size_t>(call.batch * positions * heads * call.width) * element;
    };
    sizes = {of(call.seq, call.heads),
             of(call.keys, call.kv_heads),
             of(call.keys, call.kv_heads),
             of(call.seq, call.heads),
             static_cast<std::size_t>(call.batch * call.heads * call.seq) * 4,
             of(call.seq, call.heads),
             of(call.seq, call.heads),
             of(call.keys, call.kv_heads),
             of(call.keys, call.kv_heads)};
    for (const std::size_t size : sizes) bytes.emplace_back(size);
    std::mt19937 random(11);
    std::normal_distribution<float> number(0, 1);
    for (const int operand : {kQ, kK, kV, kDout}) {
      for (std::size_t i = 0; i < sizes[static_cast<std::size_t>(operand)] / element; ++i)
        put(operand, i, number(random));
    }
  }
  void put(int buffer, std::size_t i, float value) {
    if (call.dtype == PIPER_BF16) {
      reinterpret_cast<piper_bf16*>(at(buffer))[i] = value;
    } else {
      reinterpret_cast<float*>(at(buffer))[i] = value;
    }
  }
  float get(int buffer, std::size_t i) const {
    const unsigned char* const from = bytes[static_cast<std::size_t>(buffer)].data();
    return call.dtype == PIPER_BF16 && buffer != kLse
               ? static_cast<float>(reinterpret_cast<const piper_bf16*>(from)[i])
               : reinterpret_cast<const float*>(from)[i];
  }
  std::size_t count(int buffer) const {
    return sizes[static_cast<std::size_t>(buffer)] /
           (call.dtype == PIPER_BF16 && buffer != kLse ? 2 : 4);
  }
  unsigned char* at(int buffer) { return bytes[static_cast<std::size_t>(buffer)].data(); }
  /// The call, or its gradient, on buffers at these addresses.
  template <typename At>
  TestCall request(bool gradient, At at, void* workspace, std::uint64_t workspace_bytes) const {
    if (!gradient)
      return {call, {at(kQ), at(kK), at(kV)}, {at(kOut), at(kLse)}, workspace, workspace_bytes};
    return {call,
            {at(kQ), at(kK), at(kV), at(kOut), at(kLse), at(kDout)},
            {at(kDq), at(kDk), at(kDv)},
            workspace,
            workspace_bytes};
  }

  enum { kQ, kK, kV, kOut, kLse, kDout, kDq, kDk, kDv };
  PiperAttend call;
  std::vector<std::size_t> sizes;
  std::vector<std::vector<unsigned char>> bytes;
};

/// Computes the expected results with the runtime's own loops.
void compute(Buffers& of) {
  std::vector<unsigned char> own(piper_attend_workspace(&of.call));
  runtime::LibraryReport report;
  const runtime::LibraryCalls& loops = runtime::builtin_library_calls();
  const auto at = [&](int buffer) { return of.at(buffer); };
  for (const bool gradient : {false, true})
    ASSERT_EQ(call(loops, of.request(gradient, at, own.data(), own.size()), &report), 0);
}

/// The largest difference of a buffer, over the root mean square of the expected one.
double difference(const Buffers& made, const Buffers& expected, int buffer) {
  double most = 0, squares = 0;
  for (std::size_t i = 0; i < expected.count(buffer); ++i) {
    const double a = made.get(buffer, i), b = expected.get(buffer, i);
    most = std::max(most, std::abs(a - b));
    squares += b * b;
    if (!(a == a)) return 1e30;
  }
  return most / std::max(1e-6, std::sqrt(squares / static_cast<double>(expected.count(buffer))));
}

class DeviceAttention : public testing::Test {
 protected:
  void SetUp() override {
    std::string reason;
    device_ = find_test_device(reason);
    if (!device_) GTEST_SKIP() << reason;
    driver_ = device_->open();
    ASSERT_TRUE(driver_);
    if (!driver_->open_attention(true, reason)) GTEST_SKIP() << "no LibTorch for CUDA: " << reason;
    ASSERT_EQ(driver_->create_stream(cuda::Priority::compute, &stream_), cuda::kSuccess);
    ASSERT_EQ(driver_->create_event(&event_), cuda::kSuccess);
  }
  void finish() {
    ASSERT_EQ(driver_->record(event_, stream_), cuda::kSuccess);
    cuda::Status status = cuda::kNotReady;
    while ((status = driver_->query(event_)) == cuda::kNotReady)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    ASSERT_EQ(status, cuda::kSuccess) << driver_->text_of(status);
  }
  /// Forward and gradient of a call, its operands put on the device before and its results taken
  /// from there.
  void run(Buffers& of, bool captured);

  std::unique_ptr<TestDevice> device_;
  std::unique_ptr<cuda::Driver> driver_;
  cuda::CudaStream stream_ = nullptr;
  cuda::Event event_ = nullptr;
  std::size_t room_ = 0;
  unsigned char *on_device_ = nullptr, *on_host_ = nullptr;
};

void DeviceAttention::run(Buffers& of, bool captured) {
  constexpr std::size_t kLine = 256, kCanary = 576;  // workspaces begin at multiples of 64 alone
  const std::uint64_t forward = backend::cuda::attention_workspace(of.call, false),
                      backward = backend::cuda::attention_workspace(of.call, true);
  std::size_t total = 0;
  std::vector<std::size_t> places;
  for (const std::size_t size : of.sizes) {
    places.push_back(total);
    total += (size + kLine - 1) / kLine * kLine + kLine;  // the memory between buffers is unused
  }
  const std::size_t workspace = total + kCanary,
                    all = workspace + std::max(forward, backward) + kCanary;
  if (all > room_) {
    room_ = all;
    ASSERT_EQ(driver_->allocate(all, &on_device_), cuda::kSuccess);
    ASSERT_EQ(driver_->allocate_host(all, &on_host_), cuda::kSuccess);
  }
  unsigned char *const device = on_device_, *const host = on_host_;
  std::memset(host, 0xC3, all);
  for (std::size_t b = 0; b < of.sizes.size(); ++b)
    std::memcpy(host + places[b], of.bytes[b].data(), of.sizes[b]);
  ASSERT_EQ(driver_->copy(stream_, device, host, all), cuda::kSuccess);
  const auto at = [&](int buffer) { return device + places[static_cast<std::size_t>(buffer)]; };
  cuda::Graph graph = nullptr;
  if (captured) {
    ASSERT_EQ(driver_->begin_capture(stream_), cuda::kSuccess);
  }
  for (const bool gradient : {false, true}) {
    const TestCall request =
        of.request(gradient, at, device + workspace, gradient ? backward : forward);
    const cuda::Status status = driver_->call(stream_, nullptr, request.get());
    EXPECT_EQ(status, cuda::kSuccess) << driver_->text_of(status);
  }
  if (captured) {
    ASSERT_EQ(driver_->end_capture(stream_, &graph), cuda::kSuccess);
    ASSERT_EQ(driver_->launch_graph(stream_, graph), cuda::kSuccess);
  }
  ASSERT_EQ(driver_->copy(stream_, host, device, all), cuda::kSuccess);
  finish();
  for (std::size_t b = 0; b < of.sizes.size(); ++b) {
    std::memcpy(of.bytes[b].data(), host + places[b], of.sizes[b]);
    EXPECT_EQ(host[places[b] + of.sizes[b]], 0xC3) << "behind buffer " << b;
  }
  for (std::size_t i = 0; i < kCanary; ++i) {
    EXPECT_EQ(host[workspace - 1 - i], 0xC3) << i << " before the workspace";
    EXPECT_EQ(host[all - 1 - i], 0xC3) << "behind the workspace";
  }
}

TEST_F(DeviceAttention, IsThatOfTheLoops) {
  for (const Shape& shape : kShapes) {
    SCOPED_TRACE(shape.what);
    PiperAttend call = {.batch = shape.batch,
                        .seq = shape.seq,
                        .keys = shape.keys,
                        .heads = shape.heads,
                        .kv_heads = shape.kv_heads,
                        .width = shape.width,
                        .value_width = shape.width,
                        .scale = 0.125,
                        .causal = shape.causal ? 1u : 0u,
                        .dtype = shape.dtype,
                        .form = 0};
    call.form = backend::cuda::attention_form(call);
    ASSERT_EQ(call.form,
              static_cast<std::uint32_t>(shape.dtype == PIPER_BF16 ? PIPER_ATTEND_FLASH
                                                                   : PIPER_ATTEND_EFFICIENT));
    Buffers expected(call), plain(call), captured(call), again(call);
    compute(expected);
    run(plain, false);
    run(captured, true);
    run(again, false);
    // Numbers of about 1; of bf16 one that is rounded to a neighbour is 2^-8 away, and weights are
    // rounded before they are summed up.
    const double bound = shape.dtype == PIPER_BF16 ? 0x1p-4 : 1e-3;
    for (const auto& [buffer, name] : {std::pair{Buffers::kOut, "out"},
                                       {Buffers::kLse, "lse"},
                                       {Buffers::kDq, "dq"},
                                       {Buffers::kDk, "dk"},
                                       {Buffers::kDv, "dv"}}) {
      EXPECT_LE(difference(plain, expected, buffer), bound) << name;
      EXPECT_EQ(captured.bytes[static_cast<std::size_t>(buffer)],
                plain.bytes[static_cast<std::size_t>(buffer)])
          << name << " in a graph";
      EXPECT_EQ(again.bytes[static_cast<std::size_t>(buffer)],
                plain.bytes[static_cast<std::size_t>(buffer)])
          << name << " once more";
    }
  }
}

}  // namespace
}  // namespace piper::test
