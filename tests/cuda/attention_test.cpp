// The implementation of attention that a call gets on a GPU, and its bytes: written out by hand
// from LibTorch 2.11's allocations (flash_api.cpp; kernel_backward.h of its wheel).

#include "backend/cuda/attention.h"

#include <gtest/gtest.h>

#include "backend/cuda/product_workspace.h"

namespace piper::test {
namespace {

using backend::cuda::attention_form;
using backend::cuda::attention_workspace;

struct Shape {
  std::int64_t batch, seq, keys, heads, kv_heads, width, value_width;
  bool causal;
};

PiperAttend call_of(const Shape& s, std::uint32_t dtype) {
  PiperAttend call{.batch = s.batch,
                   .seq = s.seq,
                   .keys = s.keys,
                   .heads = s.heads,
                   .kv_heads = s.kv_heads,
                   .width = s.width,
                   .value_width = s.value_width,
                   .scale = 1,
                   .causal = s.causal ? 1u : 0u,
                   .dtype = dtype,
                   .form = PIPER_ATTEND_BUILTIN};
  call.form = attention_form(call);
  return call;
}

TEST(Attention, FormsFollowFromShapeAndType) {
  const Shape usual{4, 2048, 2048, 16, 16, 128, 128, true};
  EXPECT_EQ(call_of(usual, PIPER_BF16).form, static_cast<std::uint32_t>(PIPER_ATTEND_FLASH));
  EXPECT_EQ(call_of(usual, PIPER_F32).form, static_cast<std::uint32_t>(PIPER_ATTEND_EFFICIENT));
  EXPECT_EQ(call_of(usual, PIPER_F64).form, static_cast<std::uint32_t>(PIPER_ATTEND_BUILTIN));
  const auto flash = [](const Shape& s) {
    return call_of(s, PIPER_BF16).form == PIPER_ATTEND_FLASH;
  };
  EXPECT_TRUE(flash({2, 100, 164, 8, 2, 64, 64, true}))
      << "heads that share keys; more keys than queries";
  EXPECT_TRUE(flash({2, 1, 64, 8, 8, 256, 256, true}));
  EXPECT_FALSE(flash({2, 1, 64, 8, 2, 64, 64, false})) << "one query would be rearranged";
  EXPECT_FALSE(flash({2, 64, 64, 8, 8, 264, 264, true})) << "wider than its kernels";
  EXPECT_FALSE(flash({2, 64, 64, 8, 8, 20, 20, true})) << "rows of bf16 that are no 16 bytes";
  EXPECT_FALSE(flash({2, 64, 64, 8, 8, 64, 32, true})) << "values of another width";
  EXPECT_FALSE(flash({2, 64, 32, 8, 8, 64, 64, true})) << "queries without a key";
  EXPECT_TRUE(flash({2, 64, 32, 8, 8, 64, 64, false}));
  const auto efficient = [](const Shape& s) {
    return call_of(s, PIPER_F32).form == PIPER_ATTEND_EFFICIENT;
  };
  EXPECT_TRUE(efficient({2, 64, 96, 8, 8, 64, 32, true}));
  EXPECT_FALSE(efficient({2, 64, 64, 8, 2, 64, 64, true})) << "heads that share keys";
  EXPECT_FALSE(efficient({2, 48, 48, 8, 8, 64, 64, true})) << "its log-sums would be padded";
  EXPECT_FALSE(efficient({2, 64, 64, 8, 8, 6, 6, true})) << "rows of f32 that are no 16 bytes";
  EXPECT_FALSE(efficient({65536, 32, 32, 1, 1, 4, 4, true})) << "more batches than a grid has";
}

TEST(Attention, RefusalsOfLibTorchHaveReasons) {
  const auto reason = [](const Shape& s, std::uint32_t dtype) {
    const char* const told = backend::cuda::attention_refusal(call_of(s, dtype));
    return std::string(told == nullptr ? "" : told);
  };
  EXPECT_EQ(reason({2, 64, 64, 8, 8, 64, 64, true}, PIPER_F32), "");
  EXPECT_EQ(reason({2, 64, 64, 8, 2, 64, 64, true}, PIPER_BF16), "");
  EXPECT_EQ(reason({2, 64, 64, 8, 2, 64, 64, true}, PIPER_F32),
            "in f32 each head needs its own key head");
  EXPECT_EQ(reason({2, 64, 64, 8, 8, 12, 12, true}, PIPER_BF16), "the width is no multiple of 8");
  EXPECT_EQ(reason({2, 64, 64, 8, 8, 64, 64, true}, PIPER_F64),
            "elements are neither bf16 nor f32");
}

struct Planned {
  Shape shape;
  std::uint32_t dtype;
  std::uint64_t forward, backward;
};

TEST(Attention, PlannedBytes) {
  constexpr std::uint64_t kStart = 256, kFlashState = 2 * 256, kInTheNextTest = 1;
  const Planned table[] = {
      // 64 heads fill the GPU: one part. Row sums of 2048 x 64, three parts of dq.
      {{4, 2048, 2048, 16, 16, 128, 128, true},
       PIPER_BF16,
       kStart + kFlashState,
       kStart + 524288 + 3 * 67108864u},
      // Keys' gradients per query head, in bf16, before they are added up.
      {{4, 2048, 2048, 16, 4, 128, 128, true},
       PIPER_BF16,
       kStart + kFlashState,
       kStart + 524288 + 3 * 67108864u + 2 * 33554432u},
      // 80 is computed as 96, 200 queries as 256; 160 processors over 16 heads are 10 parts.
      {{2, 200, 200, 8, 8, 80, 80, false},
       PIPER_BF16,
       kInTheNextTest,
       kStart + 16384 + 10 * 16u * 256 * 96 * 4},
      {{4, 2048, 2048, 16, 16, 128, 128, true}, PIPER_F64, 0, 0},
      // Products, their sums twice, tiles of 64 or 128 queries by 64 with 16 bytes each.
      {{4, 2048, 2048, 16, 16, 128, 128, true},
       PIPER_F32,
       kStart + 2 * 256,
       kStart + 67108864 + 2 * 524288 + 64 * 32 * 2 * (16 + 64 * 64 * 4)},
      {{1, 32, 32, 2, 2, 8, 8, true},
       PIPER_F32,
       kStart + 2 * 256,
       kStart + 2048 + 2 * 256 + 2 * (16 + 128 * 64 * 4) + 224},
  };
  for (const Planned& each : table) {
    const PiperAttend call = call_of(each.shape, each.dtype);
    SCOPED_TRACE(std::to_string(each.shape.batch) + " x " + std::to_string(each.shape.seq) + " x " +
                 std::to_string(each.shape.heads) + " x " + std::to_string(each.shape.width));
    if (each.forward != kInTheNextTest) {
      EXPECT_EQ(attention_workspace(call, false), each.forward);
    }
    EXPECT_EQ(attention_workspace(call, true), each.backward);
  }
}

/// Few queries over many keys: the keys are split into parts. On a GPU of 132 multiprocessors 1 x 8
/// heads over 64 blocks of keys of 128: 8 blocks, 264 places; the fewest parts that use 85 % of the
/// best: 29 of 64 blocks is no valid split, 32 is.
TEST(Attention, FewQueriesOverManyKeysTakeSumsOfParts) {
  const PiperAttend call = call_of({1, 64, 8192, 8, 8, 128, 128, false}, PIPER_BF16);
  const std::uint64_t part = 8 * 64 * 4 + 8 * 64 * 128 * 4,
                      bytes = attention_workspace(call, false) - 256 - 2 * 256;
  EXPECT_EQ(bytes % part, 0u);
  EXPECT_GE(bytes / part, 32u);
  EXPECT_LE(bytes / part, 64u);
}

TEST(Products, ScratchGrowsWithTheResultUpToACap) {
  using backend::cuda::product_workspace;
  constexpr std::uint64_t kSlack = 256;  // the call begins at a multiple of so much
  const auto of = [](std::int64_t m, std::int64_t n, std::uint32_t dtype) {
    return product_workspace(
        {.batch = 1, .m = m, .n = n, .k = 64, .transpose_a = 0, .transpose_b = 0, .dtype = dtype});
  };
  EXPECT_EQ(of(2, 2, PIPER_F32), kSlack + 4096);
  EXPECT_EQ(of(64, 64, PIPER_F32), kSlack + 4u * 64 * 64 * 4);
  EXPECT_EQ(of(64, 64, PIPER_F64), kSlack + 4u * 64 * 64 * 8);
  EXPECT_EQ(of(64, 64, PIPER_BF16), kSlack + 4u * 64 * 64 * 4);
  EXPECT_EQ(of(8192, 8192, PIPER_BF16), kSlack + (std::uint64_t{32} << 20));
}

}  // namespace
}  // namespace piper::test
