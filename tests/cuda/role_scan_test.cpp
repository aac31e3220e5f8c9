// Roles whose library calls contradict each other or the tables are refused before the first step.

#include "runtime/cuda/role_scan.h"

#include <gtest/gtest.h>

namespace piper::test {
namespace {

using runtime::cuda::RoleScan;

constexpr PiperGemm kProduct = {
    .batch = 1, .m = 2, .n = 3, .k = 4, .transpose_a = 0, .transpose_b = 0, .dtype = PIPER_F32};
constexpr PiperAttend kAttention = {.batch = 1,
                                    .seq = 4,
                                    .keys = 4,
                                    .heads = 2,
                                    .kv_heads = 2,
                                    .width = 8,
                                    .value_width = 8,
                                    .scale = 0.5,
                                    .causal = 1,
                                    .dtype = PIPER_F32,
                                    .form = PIPER_ATTEND_BUILTIN};

PiperCallShape shape_of(PiperGemm gemm, std::uint32_t number = 0) {
  return {.kind = PIPER_CALL_GEMM, .number = number, .of = {.gemm = gemm}};
}
PiperCallShape shape_of(PiperAttend attend, std::uint32_t number = 0) {
  return {.kind = PIPER_CALL_ATTEND, .number = number, .of = {.attend = attend}};
}

template <typename Shape, typename Field, typename Value>
Shape with(Shape shape, Field Shape::* field, Value value) {
  shape.*field = static_cast<Field>(value);
  return shape;
}

struct ScanCase {
  PiperCallShape shape;
  std::uint32_t end = PIPER_END_WRITES;
  std::uint64_t workspace_bytes = PIPER_WORKSPACE_ALIGNMENT;
};

/// The message of the failure; empty: the role is accepted. It makes the calls in one action.
std::string refusal(const std::vector<ScanCase>& calls, RoleScan& scan) {
  const auto enqueue = [](const PiperEnqueue* role, PiperDevice* device, PiperRank* rank,
                          std::uint32_t, std::uint32_t) {
    if (device->begin(device, rank, 0, 0, nullptr, 0) != 0) return 1;
    for (const ScanCase& request : *static_cast<const std::vector<ScanCase>*>(role->context)) {
      const PiperCall call{.shape = &request.shape,
                           .in = nullptr,
                           .out = nullptr,
                           .workspace = nullptr,
                           .workspace_bytes = request.workspace_bytes,
                           .end = request.end};
      if (device->call(device, rank, 0, 0, &call) != 0) return 1;
    }
    return device->end(device, rank, 0, 0);
  };
  constexpr std::uint32_t kPlace = 0, kShapes = 2;
  const PiperEnqueue role = {
      PIPER_DEVICE_ABI_VERSION, 1, 0, kShapes, nullptr, &kPlace, enqueue, &calls};
  const PiperStream stream{.name = "compute",
                           .num_actions = 1,
                           .high_priority = 0,
                           .comm = nullptr,
                           .action_of = &kPlace};
  PiperProgram program{};
  program.num_actions = program.num_streams = 1;
  program.streams = &stream;
  PiperJobRank rank{};
  rank.program = &program;
  const auto failure = runtime::cuda::scan_role(role, PiperJob{}, rank, false, scan);
  return failure ? failure->message : "";
}

TEST(RoleScan, ListsDistinctProductsOnce) {
  RoleScan scan;
  const PiperGemm other = with(kProduct, &PiperGemm::m, 5);
  EXPECT_EQ(refusal({{shape_of(kProduct)},
                     {shape_of(other, 1)},
                     {shape_of(kProduct), PIPER_END_ADDS},
                     {shape_of(kProduct)}},
                    scan),
            "");
  ASSERT_EQ(scan.products.size(), 3u);
  EXPECT_EQ(runtime::cuda::planned_at(scan.products[1].shape, scan.products[1].end), 3u);
  EXPECT_EQ(runtime::cuda::planned_at(scan.products[2].shape, scan.products[2].end), 1u);
  EXPECT_FALSE(scan.torch_attention);
}

TEST(RoleScan, RefusesCallsThatContradict) {
  PiperCallShape unknown = shape_of(kProduct);
  unknown.kind = PIPER_CALL_KINDS;
  const PiperGemm of_bf16 = with(kProduct, &PiperGemm::dtype, PIPER_BF16);
  const struct {
    std::vector<ScanCase> calls;
    const char* message;
  } rows[] = {
      {{{unknown}}, "a library call has an unknown kind"},
      {{{shape_of(kProduct, 2)}}, "a library call has a number that its program does not have"},
      {{{shape_of(kProduct)}, {shape_of(kAttention)}},
       "library calls of two shapes have one number"},
      {{{shape_of(kProduct)}, {shape_of(with(kProduct, &PiperGemm::transpose_b, 1))}},
       "library calls of two shapes have one number"},
      {{{shape_of(with(kProduct, &PiperGemm::dtype, PIPER_I64))}},
       "a matrix product has an unknown dtype"},
      {{{shape_of(kProduct), PIPER_END_ROUNDS}}, "a matrix product has an unknown end"},
      {{{shape_of(of_bf16), PIPER_END_ROUNDS + 1}}, "a matrix product has an unknown end"},
      {{{shape_of(kProduct), PIPER_END_WRITES, PIPER_WORKSPACE_ALIGNMENT - 1}},
       "a matrix product has no workspace"},
      {{{shape_of(with(kAttention, &PiperAttend::dtype, PIPER_I64))}},
       "an attention has an unknown dtype"},
      {{{shape_of(with(kAttention, &PiperAttend::form, 3))}}, "an attention has an unknown form"},
      {{{shape_of(of_bf16), PIPER_END_ROUNDS}}, ""},
      {{{shape_of(with(kAttention, &PiperAttend::form, PIPER_ATTEND_FLASH))}}, ""},
  };
  for (const auto& row : rows) {
    RoleScan scan;
    EXPECT_EQ(refusal(row.calls, scan), row.message);
  }
}

}  // namespace
}  // namespace piper::test
