#include "backend/cuda/prelude.h"
#include "runtime/kernel_math.h"

// lookup, add, rms_norm, mul: 2 x 16 rows of 32 in 2 passes
// 1 block of 128: 4 lanes per row, 4 elements at once
// embed_with.0.lookup, embed_with.0.add, block.0.norm.0.rms_norm, block.0.norm.0.mul
extern "C" __global__ void __launch_bounds__(128) fused_lookup_add_rms_norm_mul(const int64_t* __restrict__ tokens, const float* __restrict__ token, const float* __restrict__ position, float* __restrict__ add, const float* __restrict__ gain, float* __restrict__ rms_norm, float* __restrict__ mul) {
  const int32_t row = (int32_t)blockIdx.x * 32 + threadIdx.x / 4;
  const int32_t lane = threadIdx.x % 4;
  const int32_t i1 = row % 16;
  const int32_t i0 = row / 16;
#line 8 "examples/tied/tied.pipe"  // lookup
  const int64_t tokens_i = tokens[i0 * 16 + i1];
  float sum_square_lane = 0.0f;
  for (int32_t j0 = lane * 4; j0 < 32; j0 += 16) {
    const piper_piece<float, 4> lookup_piece = piper_read<4>(token + (piper_within(tokens_i, 64) * 32 + j0));
    const piper_piece<float, 4> position_j_piece = piper_read<4>(position + (i1 * 32 + j0));
    piper_piece<float, 4> effect_piece;
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float lookup = lookup_piece.at[u];
#line 8 "examples/tied/tied.pipe"  // add
      const float position_j = position_j_piece.at[u];
      const float add_j = lookup + position_j;
      effect_piece.at[u] = add_j;
#line 8 "examples/tied/tied.pipe"  // rms_norm
      const float square = add_j * add_j;
      sum_square_lane += square;
    }
    piper_write(add + (i0 * 512 + i1 * 32 + j0), effect_piece);
  }
  const float sum_square = piper_join_row<piper_sum, 4>(sum_square_lane, (float*)0);
  const float mean_square = sum_square * 0.03125f;
  const float variance = mean_square + 9.99999997e-07f;
  const float inverse_rms = piper_rsqrt(variance);
  for (int32_t j0 = lane * 4; j0 < 32; j0 += 16) {
    const piper_piece<float, 4> add_j_2_piece = piper_read<4>(add + (i0 * 512 + i1 * 32 + j0));
    piper_piece<float, 4> effect_j_piece;
    const piper_piece<float, 4> gain_j_piece = piper_read<4>(gain + (j0));
    piper_piece<float, 4> effect_j_2_piece;
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float add_j_2 = add_j_2_piece.at[u];
      const float rms_norm_j = add_j_2 * inverse_rms;
      effect_j_piece.at[u] = rms_norm_j;
#line 8 "examples/tied/tied.pipe"  // mul
      const float gain_j = gain_j_piece.at[u];
      const float mul_j = rms_norm_j * gain_j;
      effect_j_2_piece.at[u] = mul_j;
    }
    piper_write(rms_norm + (i0 * 512 + i1 * 32 + j0), effect_j_piece);
    piper_write(mul + (i0 * 512 + i1 * 32 + j0), effect_j_2_piece);
  }
}

// add, rms_norm, mul: 32 rows of 32 in 2 passes
// 1 block of 128: 4 lanes per row, 4 elements at once
// block.0.add, block.0.norm.1.rms_norm, block.0.norm.1.mul
extern "C" __global__ void __launch_bounds__(128) fused_add_rms_norm_mul(const float* __restrict__ add, const float* __restrict__ contract, float* __restrict__ add_2, const float* __restrict__ gain, float* __restrict__ rms_norm, float* __restrict__ mul) {
  const int32_t row = (int32_t)blockIdx.x * 32 + threadIdx.x / 4;
  const int32_t lane = threadIdx.x % 4;
  const int32_t i = row;
  float sum_square_lane = 0.0f;
  for (int32_t j0 = lane * 4; j0 < 32; j0 += 16) {
    const piper_piece<float, 4> add_j_piece = piper_read<4>(add + (i * 32 + j0));
    const piper_piece<float, 4> contract_j_piece = piper_read<4>(contract + (i * 32 + j0));
    piper_piece<float, 4> effect_piece;
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
#line 8 "examples/tied/tied.pipe"  // add
      const float add_j = add_j_piece.at[u];
      const float contract_j = contract_j_piece.at[u];
      const float add_j_2 = add_j + contract_j;
      effect_piece.at[u] = add_j_2;
#line 8 "examples/tied/tied.pipe"  // rms_norm
      const float square = add_j_2 * add_j_2;
      sum_square_lane += square;
    }
    piper_write(add_2 + (i * 32 + j0), effect_piece);
  }
  const float sum_square = piper_join_row<piper_sum, 4>(sum_square_lane, (float*)0);
  const float mean_square = sum_square * 0.03125f;
  const float variance = mean_square + 9.99999997e-07f;
  const float inverse_rms = piper_rsqrt(variance);
  for (int32_t j0 = lane * 4; j0 < 32; j0 += 16) {
    const piper_piece<float, 4> add_j_3_piece = piper_read<4>(add_2 + (i * 32 + j0));
    piper_piece<float, 4> effect_j_piece;
    const piper_piece<float, 4> gain_j_piece = piper_read<4>(gain + (j0));
    piper_piece<float, 4> effect_j_2_piece;
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float add_j_3 = add_j_3_piece.at[u];
      const float rms_norm_j = add_j_3 * inverse_rms;
      effect_j_piece.at[u] = rms_norm_j;
#line 8 "examples/tied/tied.pipe"  // mul
      const float gain_j = gain_j_piece.at[u];
      const float mul_j = rms_norm_j * gain_j;
      effect_j_2_piece.at[u] = mul_j;
    }
    piper_write(rms_norm + (i * 32 + j0), effect_j_piece);
    piper_write(mul + (i * 32 + j0), effect_j_2_piece);
  }
}

// gelu: 1 row of 4096
// 4 blocks of 256: a thread per 4 elements
// block.0.mlp.0.gelu
extern "C" __global__ void __launch_bounds__(256) fused_gelu(const float* __restrict__ contract, float* __restrict__ gelu) {
  const int32_t at = ((int32_t)blockIdx.x * 256 + threadIdx.x) * 4;
  if (at >= 4096) return;
  const int32_t j0 = at;
  const piper_piece<float, 4> contract_j_piece = piper_read<4>(contract + (j0));
  piper_piece<float, 4> effect_piece;
#pragma unroll
  for (int32_t u = 0; u < 4; ++u) {
    const int32_t j = j0 + u;
#line 8 "examples/tied/tied.pipe"  // gelu
    const float contract_j = contract_j_piece.at[u];
    const float gelu_j = piper_gelu(contract_j);
    effect_piece.at[u] = gelu_j;
  }
  piper_write(gelu + (j0), effect_piece);
}

// add: 1 row of 1024
// 1 block of 256: a thread per 4 elements
// block.0.add.1
extern "C" __global__ void __launch_bounds__(256) fused_add(const float* __restrict__ add, const float* __restrict__ contract, float* __restrict__ add_2) {
  const int32_t at = ((int32_t)blockIdx.x * 256 + threadIdx.x) * 4;
  if (at >= 1024) return;
  const int32_t j0 = at;
  const piper_piece<float, 4> add_j_piece = piper_read<4>(add + (j0));
  const piper_piece<float, 4> contract_j_piece = piper_read<4>(contract + (j0));
  piper_piece<float, 4> effect_piece;
#pragma unroll
  for (int32_t u = 0; u < 4; ++u) {
    const int32_t j = j0 + u;
#line 8 "examples/tied/tied.pipe"  // add
    const float add_j = add_j_piece.at[u];
    const float contract_j = contract_j_piece.at[u];
    const float add_j_2 = add_j + contract_j;
    effect_piece.at[u] = add_j_2;
  }
  piper_write(add_2 + (j0), effect_piece);
}

// rms_norm, mul: 32 rows of 32 in 2 passes
// 1 block of 128: 4 lanes per row, 4 elements at once
// block.3.norm.0.rms_norm, block.3.norm.0.mul
extern "C" __global__ void __launch_bounds__(128) fused_rms_norm_mul(const float* __restrict__ add, const float* __restrict__ gain, float* __restrict__ rms_norm, float* __restrict__ mul) {
  const int32_t row = (int32_t)blockIdx.x * 32 + threadIdx.x / 4;
  const int32_t lane = threadIdx.x % 4;
  const int32_t i = row;
  float sum_square_lane = 0.0f;
  for (int32_t j0 = lane * 4; j0 < 32; j0 += 16) {
    const piper_piece<float, 4> add_j_piece = piper_read<4>(add + (i * 32 + j0));
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
#line 8 "examples/tied/tied.pipe"  // rms_norm
      const float add_j = add_j_piece.at[u];
      const float square = add_j * add_j;
      sum_square_lane += square;
    }
  }
  const float sum_square = piper_join_row<piper_sum, 4>(sum_square_lane, (float*)0);
  const float mean_square = sum_square * 0.03125f;
  const float variance = mean_square + 9.99999997e-07f;
  const float inverse_rms = piper_rsqrt(variance);
  for (int32_t j0 = lane * 4; j0 < 32; j0 += 16) {
    const piper_piece<float, 4> add_j_2_piece = piper_read<4>(add + (i * 32 + j0));
    piper_piece<float, 4> effect_piece;
    const piper_piece<float, 4> gain_j_piece = piper_read<4>(gain + (j0));
    piper_piece<float, 4> effect_j_piece;
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float add_j_2 = add_j_2_piece.at[u];
      const float rms_norm_j = add_j_2 * inverse_rms;
      effect_piece.at[u] = rms_norm_j;
#line 8 "examples/tied/tied.pipe"  // mul
      const float gain_j = gain_j_piece.at[u];
      const float mul_j = rms_norm_j * gain_j;
      effect_j_piece.at[u] = mul_j;
    }
    piper_write(rms_norm + (i * 32 + j0), effect_piece);
    piper_write(mul + (i * 32 + j0), effect_j_piece);
  }
}

// cross_entropy, sum: 32 rows of 64 in 2 passes
// 1 block of 256: 8 lanes per row, 4 elements at once
// cross_entropy, sum
extern "C" __global__ void __launch_bounds__(256) fused_cross_entropy_sum(const int64_t* __restrict__ targets, const float* __restrict__ contract, double* __restrict__ cross_entropy) {
  const int32_t row = (int32_t)blockIdx.x * 32 + threadIdx.x / 8;
  const int32_t lane = threadIdx.x % 8;
  const int32_t i = row;
#line 8 "examples/tied/tied.pipe"  // cross_entropy
  const int64_t targets_i = targets[i];
  const float picked = contract[piper_within(targets_i, 64) + i * 64];
  float largest_lane = -piper_infinity(0.0f);
  for (int32_t j0 = lane * 4; j0 < 64; j0 += 32) {
    const piper_piece<float, 4> contract_j_piece = piper_read<4>(contract + (i * 64 + j0));
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float contract_j = contract_j_piece.at[u];
      largest_lane = piper_max(largest_lane, contract_j);
    }
  }
  const float largest = piper_join_row<piper_largest, 8>(largest_lane, (float*)0);
  float sum_exp_lane = 0.0f;
  for (int32_t j0 = lane * 4; j0 < 64; j0 += 32) {
    const piper_piece<float, 4> contract_j_2_piece = piper_read<4>(contract + (i * 64 + j0));
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float contract_j_2 = contract_j_2_piece.at[u];
      const float shifted = contract_j_2 - largest;
      const float e = piper_exp(shifted);
      sum_exp_lane += e;
    }
  }
  const float sum_exp = piper_join_row<piper_sum, 8>(sum_exp_lane, (float*)0);
  const float log_sum = piper_log(sum_exp);
  const float log_sum_exp = largest + log_sum;
  const float cross_entropy_i = log_sum_exp - picked;
#line 8 "examples/tied/tied.pipe"  // sum
  const double cross_entropy_i_2 = (double)cross_entropy_i;
  if (lane == 0) {
    cross_entropy[i] = cross_entropy_i_2;
  }
}

// total: 32 rows of 64
// 4 blocks of 256: 32 lanes per row
extern "C" __global__ void __launch_bounds__(256) fused__total(const double* __restrict__ cross_entropy, double* __restrict__ sums) {
  const int32_t row = (int32_t)blockIdx.x * 8 + threadIdx.x / 32;
  const int32_t lane = threadIdx.x % 32;
  const int32_t i = row;
  const double cross_entropy_i = cross_entropy[i];
  double sum_lane = 0.0;
  for (int32_t j = lane; j < 64; j += 32) {
    sum_lane += cross_entropy_i;
  }
  const double sum = piper_join_row<piper_sum, 32>(sum_lane, (double*)0);
  if (lane == 0) {
    sums[i] = sum;
  }
}

// sum (join): 1 row of 32
// 1 block of 8: 8 lanes per row, 2 elements at once
// sum
extern "C" __global__ void __launch_bounds__(8) fused_sum_join(const double* __restrict__ sums, float* __restrict__ sum) {
  const int32_t row = (int32_t)blockIdx.x * 1 + threadIdx.x / 8;
  const int32_t lane = threadIdx.x % 8;
  double sum_i_lane = 0.0;
  for (int32_t j0 = lane * 2; j0 < 32; j0 += 16) {
    const piper_piece<double, 2> sums_j_piece = piper_read<2>(sums + (j0));
#pragma unroll
    for (int32_t u = 0; u < 2; ++u) {
      const int32_t j = j0 + u;
      const double sums_j = sums_j_piece.at[u];
#line 8 "examples/tied/tied.pipe"  // sum
      sum_i_lane += sums_j;
    }
  }
  const double sum_i = piper_join_row<piper_sum, 8>(sum_i_lane, (double*)0);
  const float sum_i_2 = (float)sum_i;
  if (lane == 0) {
    sum[0] = sum_i_2;
  }
}

// cross_entropy_grad: 32 rows of 64 in 3 passes
// 1 block of 256: 8 lanes per row, 4 elements at once
// d.tied_head.0.contract.cross_entropy_grad
extern "C" __global__ void __launch_bounds__(256) fused_cross_entropy_grad(const int64_t* __restrict__ targets, const float* __restrict__ contract, float* __restrict__ d_contract) {
  const int32_t row = (int32_t)blockIdx.x * 32 + threadIdx.x / 8;
  const int32_t lane = threadIdx.x % 8;
  const int32_t i = row;
#line 8 "examples/tied/tied.pipe"  // cross_entropy_grad
  const int64_t targets_i = targets[i];
  float largest_lane = -piper_infinity(0.0f);
  for (int32_t j0 = lane * 4; j0 < 64; j0 += 32) {
    const piper_piece<float, 4> contract_j_piece = piper_read<4>(contract + (i * 64 + j0));
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float contract_j = contract_j_piece.at[u];
      largest_lane = piper_max(largest_lane, contract_j);
    }
  }
  const float largest = piper_join_row<piper_largest, 8>(largest_lane, (float*)0);
  float sum_exp_lane = 0.0f;
  for (int32_t j0 = lane * 4; j0 < 64; j0 += 32) {
    const piper_piece<float, 4> contract_j_2_piece = piper_read<4>(contract + (i * 64 + j0));
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float contract_j_2 = contract_j_2_piece.at[u];
      const float shifted = contract_j_2 - largest;
      const float e = piper_exp(shifted);
      sum_exp_lane += e;
    }
  }
  const float sum_exp = piper_join_row<piper_sum, 8>(sum_exp_lane, (float*)0);
  const float scale = 1.0f / sum_exp;
  for (int32_t j0 = lane * 4; j0 < 64; j0 += 32) {
    const piper_piece<float, 4> contract_j_3_piece = piper_read<4>(contract + (i * 64 + j0));
    piper_piece<float, 4> effect_piece;
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float contract_j_3 = contract_j_3_piece.at[u];
      const float shifted_j = contract_j_3 - largest;
      const float e_j = piper_exp(shifted_j);
      const float probability = e_j * scale;
      const float one_hot = (int32_t)j == (int32_t)targets_i ? 1.0f : 0.0f;
      const float difference = probability - one_hot;
      const float d_contract_j = difference * 0.00390625f;
      effect_piece.at[u] = d_contract_j;
    }
    piper_write(d_contract + (i * 64 + j0), effect_piece);
  }
}

// mul, rms_norm_grad: 32 rows of 32 in 2 passes
// 1 block of 128: 4 lanes per row, 4 elements at once
// d.tied_head.0.norm.0.rms_norm.mul, d.block.3.add.1.rms_norm_grad
extern "C" __global__ void __launch_bounds__(128) fused_mul_rms_norm_grad(const float* __restrict__ d_mul, const float* __restrict__ gain, const float* __restrict__ add, float* __restrict__ d_add) {
  const int32_t row = (int32_t)blockIdx.x * 32 + threadIdx.x / 4;
  const int32_t lane = threadIdx.x % 4;
  const int32_t i = row;
  float sum_square_lane = 0.0f;
  float dot_lane = 0.0f;
  for (int32_t j0 = lane * 4; j0 < 32; j0 += 16) {
    const piper_piece<float, 4> d_mul_j_piece = piper_read<4>(d_mul + (i * 32 + j0));
    const piper_piece<float, 4> gain_j_piece = piper_read<4>(gain + (j0));
    const piper_piece<float, 4> add_j_piece = piper_read<4>(add + (i * 32 + j0));
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
#line 8 "examples/tied/tied.pipe"  // mul
      const float d_mul_j = d_mul_j_piece.at[u];
      const float gain_j = gain_j_piece.at[u];
      const float d_rms_norm = d_mul_j * gain_j;
#line 8 "examples/tied/tied.pipe"  // rms_norm_grad
      const float add_j = add_j_piece.at[u];
      const float square = add_j * add_j;
      sum_square_lane += square;
      const float product = add_j * d_rms_norm;
      dot_lane += product;
    }
  }
  const float sum_square = piper_join_row<piper_sum, 4>(sum_square_lane, (float*)0);
  const float dot = piper_join_row<piper_sum, 4>(dot_lane, (float*)0);
  const float mean_square = sum_square * 0.03125f;
  const float variance = mean_square + 9.99999997e-07f;
  const float inverse_rms = piper_rsqrt(variance);
  const float mean_dot = dot * 0.03125f;
  const float square_i = inverse_rms * inverse_rms;
  const float cube = square_i * inverse_rms;
  const float factor = mean_dot * cube;
  for (int32_t j0 = lane * 4; j0 < 32; j0 += 16) {
    const piper_piece<float, 4> d_mul_j_2_piece = piper_read<4>(d_mul + (i * 32 + j0));
    const piper_piece<float, 4> gain_j_2_piece = piper_read<4>(gain + (j0));
    const piper_piece<float, 4> add_j_2_piece = piper_read<4>(add + (i * 32 + j0));
    piper_piece<float, 4> effect_piece;
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
#line 8 "examples/tied/tied.pipe"  // mul
      const float d_mul_j_2 = d_mul_j_2_piece.at[u];
      const float gain_j_2 = gain_j_2_piece.at[u];
      const float d_rms_norm_j = d_mul_j_2 * gain_j_2;
#line 8 "examples/tied/tied.pipe"  // rms_norm_grad
      const float scaled = d_rms_norm_j * inverse_rms;
      const float add_j_2 = add_j_2_piece.at[u];
      const float along = add_j_2 * factor;
      const float d_add_j = scaled - along;
      effect_piece.at[u] = d_add_j;
    }
    piper_write(d_add + (i * 32 + j0), effect_piece);
  }
}

// gelu_grad: 1 row of 4096
// 4 blocks of 256: a thread per 4 elements
// d.block.3.mlp.0.contract.gelu_grad
extern "C" __global__ void __launch_bounds__(256) fused_gelu_grad(const float* __restrict__ contract, const float* __restrict__ d_gelu, float* __restrict__ d_contract) {
  const int32_t at = ((int32_t)blockIdx.x * 256 + threadIdx.x) * 4;
  if (at >= 4096) return;
  const int32_t j0 = at;
  const piper_piece<float, 4> contract_j_piece = piper_read<4>(contract + (j0));
  const piper_piece<float, 4> d_gelu_j_piece = piper_read<4>(d_gelu + (j0));
  piper_piece<float, 4> effect_piece;
#pragma unroll
  for (int32_t u = 0; u < 4; ++u) {
    const int32_t j = j0 + u;
#line 8 "examples/tied/tied.pipe"  // gelu_grad
    const float contract_j = contract_j_piece.at[u];
    const float d_gelu_j = d_gelu_j_piece.at[u];
    const float d_contract_j = piper_gelu_grad(contract_j, d_gelu_j);
    effect_piece.at[u] = d_contract_j;
  }
  piper_write(d_contract + (j0), effect_piece);
}

// mul, rms_norm_grad, add: 32 rows of 32 in 2 passes
// 1 block of 128: 4 lanes per row, 4 elements at once
// d.block.3.norm.1.rms_norm.mul, d.block.3.add.rms_norm_grad, d.block.3.add.add
extern "C" __global__ void __launch_bounds__(128) fused_mul_rms_norm_grad_add(const float* __restrict__ d_mul, const float* __restrict__ gain, const float* __restrict__ add, const float* __restrict__ d_add, float* __restrict__ d_add_2) {
  const int32_t row = (int32_t)blockIdx.x * 32 + threadIdx.x / 4;
  const int32_t lane = threadIdx.x % 4;
  const int32_t i = row;
  float sum_square_lane = 0.0f;
  float dot_lane = 0.0f;
  for (int32_t j0 = lane * 4; j0 < 32; j0 += 16) {
    const piper_piece<float, 4> d_mul_j_piece = piper_read<4>(d_mul + (i * 32 + j0));
    const piper_piece<float, 4> gain_j_piece = piper_read<4>(gain + (j0));
    const piper_piece<float, 4> add_j_piece = piper_read<4>(add + (i * 32 + j0));
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
#line 8 "examples/tied/tied.pipe"  // mul
      const float d_mul_j = d_mul_j_piece.at[u];
      const float gain_j = gain_j_piece.at[u];
      const float d_rms_norm = d_mul_j * gain_j;
#line 8 "examples/tied/tied.pipe"  // rms_norm_grad
      const float add_j = add_j_piece.at[u];
      const float square = add_j * add_j;
      sum_square_lane += square;
      const float product = add_j * d_rms_norm;
      dot_lane += product;
    }
  }
  const float sum_square = piper_join_row<piper_sum, 4>(sum_square_lane, (float*)0);
  const float dot = piper_join_row<piper_sum, 4>(dot_lane, (float*)0);
  const float mean_square = sum_square * 0.03125f;
  const float variance = mean_square + 9.99999997e-07f;
  const float inverse_rms = piper_rsqrt(variance);
  const float mean_dot = dot * 0.03125f;
  const float square_i = inverse_rms * inverse_rms;
  const float cube = square_i * inverse_rms;
  const float factor = mean_dot * cube;
  for (int32_t j0 = lane * 4; j0 < 32; j0 += 16) {
    const piper_piece<float, 4> d_add_j_piece = piper_read<4>(d_add + (i * 32 + j0));
    const piper_piece<float, 4> d_mul_j_2_piece = piper_read<4>(d_mul + (i * 32 + j0));
    const piper_piece<float, 4> gain_j_2_piece = piper_read<4>(gain + (j0));
    const piper_piece<float, 4> add_j_2_piece = piper_read<4>(add + (i * 32 + j0));
    piper_piece<float, 4> effect_piece;
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
#line 8 "examples/tied/tied.pipe"  // add
      const float d_add_j = d_add_j_piece.at[u];
#line 8 "examples/tied/tied.pipe"  // mul
      const float d_mul_j_2 = d_mul_j_2_piece.at[u];
      const float gain_j_2 = gain_j_2_piece.at[u];
      const float d_rms_norm_j = d_mul_j_2 * gain_j_2;
#line 8 "examples/tied/tied.pipe"  // rms_norm_grad
      const float scaled = d_rms_norm_j * inverse_rms;
      const float add_j_2 = add_j_2_piece.at[u];
      const float along = add_j_2 * factor;
      const float d_add_j_2 = scaled - along;
#line 8 "examples/tied/tied.pipe"  // add
      const float d_add_j_3 = d_add_j + d_add_j_2;
      effect_piece.at[u] = d_add_j_3;
    }
    piper_write(d_add_2 + (i * 32 + j0), effect_piece);
  }
}

// add, add, mul, rms_norm_grad, add: 32 rows of 32 in 2 passes
// 1 block of 128: 4 lanes per row, 4 elements at once
// d.block.3.norm.0.mul.add, d.block.3.norm.0.mul.add.1, d.block.3.norm.0.rms_norm.mul, d.block.2.add.1.rms_norm_grad, d.block.2.add.1.add
extern "C" __global__ void __launch_bounds__(128) fused_add_mul_rms_norm_grad_add(const float* __restrict__ d_mul, const float* __restrict__ d_mul_2, const float* __restrict__ d_mul_3, const float* __restrict__ gain, const float* __restrict__ add, const float* __restrict__ d_add, float* __restrict__ d_mul_4, float* __restrict__ d_add_2) {
  const int32_t row = (int32_t)blockIdx.x * 32 + threadIdx.x / 4;
  const int32_t lane = threadIdx.x % 4;
  const int32_t i = row;
  float sum_square_lane = 0.0f;
  float dot_lane = 0.0f;
  for (int32_t j0 = lane * 4; j0 < 32; j0 += 16) {
    const piper_piece<float, 4> d_mul_j_piece = piper_read<4>(d_mul + (i * 32 + j0));
    const piper_piece<float, 4> d_mul_j_2_piece = piper_read<4>(d_mul_2 + (i * 32 + j0));
    const piper_piece<float, 4> d_mul_j_4_piece = piper_read<4>(d_mul_3 + (i * 32 + j0));
    piper_piece<float, 4> effect_piece;
    const piper_piece<float, 4> gain_j_piece = piper_read<4>(gain + (j0));
    const piper_piece<float, 4> add_j_piece = piper_read<4>(add + (i * 32 + j0));
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
#line 8 "examples/tied/tied.pipe"  // add
      const float d_mul_j = d_mul_j_piece.at[u];
      const float d_mul_j_2 = d_mul_j_2_piece.at[u];
      const float d_mul_j_3 = d_mul_j + d_mul_j_2;
      const float d_mul_j_4 = d_mul_j_4_piece.at[u];
      const float d_mul_j_5 = d_mul_j_3 + d_mul_j_4;
      effect_piece.at[u] = d_mul_j_5;
#line 8 "examples/tied/tied.pipe"  // mul
      const float gain_j = gain_j_piece.at[u];
      const float d_rms_norm = d_mul_j_5 * gain_j;
#line 8 "examples/tied/tied.pipe"  // rms_norm_grad
      const float add_j = add_j_piece.at[u];
      const float square = add_j * add_j;
      sum_square_lane += square;
      const float product = add_j * d_rms_norm;
      dot_lane += product;
    }
    piper_write(d_mul_4 + (i * 32 + j0), effect_piece);
  }
  const float sum_square = piper_join_row<piper_sum, 4>(sum_square_lane, (float*)0);
  const float dot = piper_join_row<piper_sum, 4>(dot_lane, (float*)0);
  const float mean_square = sum_square * 0.03125f;
  const float variance = mean_square + 9.99999997e-07f;
  const float inverse_rms = piper_rsqrt(variance);
  const float mean_dot = dot * 0.03125f;
  const float square_i = inverse_rms * inverse_rms;
  const float cube = square_i * inverse_rms;
  const float factor = mean_dot * cube;
  for (int32_t j0 = lane * 4; j0 < 32; j0 += 16) {
    const piper_piece<float, 4> d_add_j_piece = piper_read<4>(d_add + (i * 32 + j0));
    const piper_piece<float, 4> d_mul_j_6_piece = piper_read<4>(d_mul_4 + (i * 32 + j0));
    const piper_piece<float, 4> gain_j_2_piece = piper_read<4>(gain + (j0));
    const piper_piece<float, 4> add_j_2_piece = piper_read<4>(add + (i * 32 + j0));
    piper_piece<float, 4> effect_j_piece;
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
#line 8 "examples/tied/tied.pipe"  // add
      const float d_add_j = d_add_j_piece.at[u];
      const float d_mul_j_6 = d_mul_j_6_piece.at[u];
#line 8 "examples/tied/tied.pipe"  // mul
      const float gain_j_2 = gain_j_2_piece.at[u];
      const float d_rms_norm_j = d_mul_j_6 * gain_j_2;
#line 8 "examples/tied/tied.pipe"  // rms_norm_grad
      const float scaled = d_rms_norm_j * inverse_rms;
      const float add_j_2 = add_j_2_piece.at[u];
      const float along = add_j_2 * factor;
      const float d_add_j_2 = scaled - along;
#line 8 "examples/tied/tied.pipe"  // add
      const float d_add_j_3 = d_add_j + d_add_j_2;
      effect_j_piece.at[u] = d_add_j_3;
    }
    piper_write(d_add_2 + (i * 32 + j0), effect_j_piece);
  }
}

// mul, sum (sum): 32 rows of 32
// 1 block of 32: a thread per sum
// d.tied_head.0.norm.0.gain.mul, d.tied_head.0.norm.0.gain.sum
extern "C" __global__ void __launch_bounds__(32) fused_mul_sum_sum(const float* __restrict__ d_mul, const float* __restrict__ rms_norm, float* __restrict__ d_gain, const uint32_t d_gain_adds) {
  const int32_t at = ((int32_t)blockIdx.x * 32 + threadIdx.x);
  if (at >= 32) return;
  const int32_t j = at;
  float effect = d_gain_adds ? d_gain[j] : 0.0f;
#pragma unroll 4
  for (int32_t i = 0; i < 32; ++i) {
#line 8 "examples/tied/tied.pipe"  // mul
    const float d_gain_j = d_mul[i * 32 + j] * rms_norm[i * 32 + j];
#line 8 "examples/tied/tied.pipe"  // sum
    effect += d_gain_j;
  }
  d_gain[j] = effect;
}

// add, add, mul, rms_norm_grad, add: 32 rows of 32 in 2 passes
// 1 block of 128: 4 lanes per row, 4 elements at once
// d.block.3.norm.0.mul.add, d.block.3.norm.0.mul.add.1, d.block.3.norm.0.rms_norm.mul, d.block.2.add.1.rms_norm_grad, d.block.2.add.1.add
extern "C" __global__ void __launch_bounds__(128) fused_add_mul_rms_norm_grad_add_2(const float* __restrict__ d_mul, const float* __restrict__ d_mul_2, const float* __restrict__ d_mul_3, const float* __restrict__ gain, const float* __restrict__ add, const float* __restrict__ d_add, float* __restrict__ d_add_2) {
  const int32_t row = (int32_t)blockIdx.x * 32 + threadIdx.x / 4;
  const int32_t lane = threadIdx.x % 4;
  const int32_t i = row;
  float sum_square_lane = 0.0f;
  float dot_lane = 0.0f;
  for (int32_t j0 = lane * 4; j0 < 32; j0 += 16) {
    const piper_piece<float, 4> d_mul_j_piece = piper_read<4>(d_mul + (i * 32 + j0));
    const piper_piece<float, 4> d_mul_j_2_piece = piper_read<4>(d_mul_2 + (i * 32 + j0));
    const piper_piece<float, 4> d_mul_j_4_piece = piper_read<4>(d_mul_3 + (i * 32 + j0));
    const piper_piece<float, 4> gain_j_piece = piper_read<4>(gain + (j0));
    const piper_piece<float, 4> add_j_piece = piper_read<4>(add + (i * 32 + j0));
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
#line 8 "examples/tied/tied.pipe"  // add
      const float d_mul_j = d_mul_j_piece.at[u];
      const float d_mul_j_2 = d_mul_j_2_piece.at[u];
      const float d_mul_j_3 = d_mul_j + d_mul_j_2;
      const float d_mul_j_4 = d_mul_j_4_piece.at[u];
      const float d_mul_j_5 = d_mul_j_3 + d_mul_j_4;
#line 8 "examples/tied/tied.pipe"  // mul
      const float gain_j = gain_j_piece.at[u];
      const float d_rms_norm = d_mul_j_5 * gain_j;
#line 8 "examples/tied/tied.pipe"  // rms_norm_grad
      const float add_j = add_j_piece.at[u];
      const float square = add_j * add_j;
      sum_square_lane += square;
      const float product = add_j * d_rms_norm;
      dot_lane += product;
    }
  }
  const float sum_square = piper_join_row<piper_sum, 4>(sum_square_lane, (float*)0);
  const float dot = piper_join_row<piper_sum, 4>(dot_lane, (float*)0);
  const float mean_square = sum_square * 0.03125f;
  const float variance = mean_square + 9.99999997e-07f;
  const float inverse_rms = piper_rsqrt(variance);
  const float mean_dot = dot * 0.03125f;
  const float square_i = inverse_rms * inverse_rms;
  const float cube = square_i * inverse_rms;
  const float factor = mean_dot * cube;
  for (int32_t j0 = lane * 4; j0 < 32; j0 += 16) {
    const piper_piece<float, 4> d_add_j_piece = piper_read<4>(d_add + (i * 32 + j0));
    const piper_piece<float, 4> d_mul_j_6_piece = piper_read<4>(d_mul + (i * 32 + j0));
    const piper_piece<float, 4> d_mul_j_7_piece = piper_read<4>(d_mul_2 + (i * 32 + j0));
    const piper_piece<float, 4> d_mul_j_9_piece = piper_read<4>(d_mul_3 + (i * 32 + j0));
    const piper_piece<float, 4> gain_j_2_piece = piper_read<4>(gain + (j0));
    const piper_piece<float, 4> add_j_2_piece = piper_read<4>(add + (i * 32 + j0));
    piper_piece<float, 4> effect_piece;
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
#line 8 "examples/tied/tied.pipe"  // add
      const float d_add_j = d_add_j_piece.at[u];
      const float d_mul_j_6 = d_mul_j_6_piece.at[u];
      const float d_mul_j_7 = d_mul_j_7_piece.at[u];
      const float d_mul_j_8 = d_mul_j_6 + d_mul_j_7;
      const float d_mul_j_9 = d_mul_j_9_piece.at[u];
      const float d_mul_j_10 = d_mul_j_8 + d_mul_j_9;
#line 8 "examples/tied/tied.pipe"  // mul
      const float gain_j_2 = gain_j_2_piece.at[u];
      const float d_rms_norm_j = d_mul_j_10 * gain_j_2;
#line 8 "examples/tied/tied.pipe"  // rms_norm_grad
      const float scaled = d_rms_norm_j * inverse_rms;
      const float add_j_2 = add_j_2_piece.at[u];
      const float along = add_j_2 * factor;
      const float d_add_j_2 = scaled - along;
#line 8 "examples/tied/tied.pipe"  // add
      const float d_add_j_3 = d_add_j + d_add_j_2;
      effect_piece.at[u] = d_add_j_3;
    }
    piper_write(d_add_2 + (i * 32 + j0), effect_piece);
  }
}

// add, add, mul, sum (sum): 32 rows of 32
// 1 block of 32: a thread per sum
// d.block.3.norm.0.mul.add, d.block.3.norm.0.mul.add.1, d.block.3.norm.0.gain.mul, d.block.3.norm.0.gain.sum
extern "C" __global__ void __launch_bounds__(32) fused_add_mul_sum_sum(const float* __restrict__ d_mul, const float* __restrict__ d_mul_2, const float* __restrict__ d_mul_3, const float* __restrict__ rms_norm, float* __restrict__ d_gain, const uint32_t d_gain_adds) {
  const int32_t at = ((int32_t)blockIdx.x * 32 + threadIdx.x);
  if (at >= 32) return;
  const int32_t j = at;
  float effect = d_gain_adds ? d_gain[j] : 0.0f;
#pragma unroll 4
  for (int32_t i = 0; i < 32; ++i) {
#line 8 "examples/tied/tied.pipe"  // add
    const float d_mul_j_3 = d_mul[i * 32 + j] + d_mul_2[i * 32 + j];
    const float d_mul_j_5 = d_mul_j_3 + d_mul_3[i * 32 + j];
#line 8 "examples/tied/tied.pipe"  // mul
    const float d_gain_j = d_mul_j_5 * rms_norm[i * 32 + j];
#line 8 "examples/tied/tied.pipe"  // sum
    effect += d_gain_j;
  }
  d_gain[j] = effect;
}

// add, add, mul, rms_norm_grad: 32 rows of 32
// 1 block of 128: 4 lanes per row, 4 elements at once
// d.block.0.norm.0.mul.add, d.block.0.norm.0.mul.add.1, d.block.0.norm.0.rms_norm.mul, d.embed_with.0.add.rms_norm_grad
extern "C" __global__ void __launch_bounds__(128) fused_add_mul_rms_norm_grad(const float* __restrict__ add, const float* __restrict__ d_mul, const float* __restrict__ d_mul_2, const float* __restrict__ d_mul_3, const float* __restrict__ gain, float* __restrict__ inverse_rms, float* __restrict__ factor) {
  const int32_t row = (int32_t)blockIdx.x * 32 + threadIdx.x / 4;
  const int32_t lane = threadIdx.x % 4;
  const int32_t i = row;
  float sum_square_lane = 0.0f;
  float dot_lane = 0.0f;
  for (int32_t j0 = lane * 4; j0 < 32; j0 += 16) {
    const piper_piece<float, 4> add_j_piece = piper_read<4>(add + (i * 32 + j0));
    const piper_piece<float, 4> d_mul_j_piece = piper_read<4>(d_mul + (i * 32 + j0));
    const piper_piece<float, 4> d_mul_j_2_piece = piper_read<4>(d_mul_2 + (i * 32 + j0));
    const piper_piece<float, 4> d_mul_j_4_piece = piper_read<4>(d_mul_3 + (i * 32 + j0));
    const piper_piece<float, 4> gain_j_piece = piper_read<4>(gain + (j0));
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
#line 8 "examples/tied/tied.pipe"  // rms_norm_grad
      const float add_j = add_j_piece.at[u];
      const float square = add_j * add_j;
      sum_square_lane += square;
#line 8 "examples/tied/tied.pipe"  // add
      const float d_mul_j = d_mul_j_piece.at[u];
      const float d_mul_j_2 = d_mul_j_2_piece.at[u];
      const float d_mul_j_3 = d_mul_j + d_mul_j_2;
      const float d_mul_j_4 = d_mul_j_4_piece.at[u];
      const float d_mul_j_5 = d_mul_j_3 + d_mul_j_4;
#line 8 "examples/tied/tied.pipe"  // mul
      const float gain_j = gain_j_piece.at[u];
      const float d_rms_norm = d_mul_j_5 * gain_j;
#line 8 "examples/tied/tied.pipe"  // rms_norm_grad
      const float product = add_j * d_rms_norm;
      dot_lane += product;
    }
  }
  const float sum_square = piper_join_row<piper_sum, 4>(sum_square_lane, (float*)0);
  const float dot = piper_join_row<piper_sum, 4>(dot_lane, (float*)0);
  const float mean_square = sum_square * 0.03125f;
  const float variance = mean_square + 9.99999997e-07f;
  const float inverse_rms_i = piper_rsqrt(variance);
  if (lane == 0) {
    inverse_rms[i] = inverse_rms_i;
  }
  const float mean_dot = dot * 0.03125f;
  const float square_i = inverse_rms_i * inverse_rms_i;
  const float cube = square_i * inverse_rms_i;
  const float factor_i = mean_dot * cube;
  if (lane == 0) {
    factor[i] = factor_i;
  }
}

// add, add, mul, rms_norm_grad, add, lookup_grad (scatter): 32 rows of 32
// 32 blocks of 32: a block per index
// d.block.0.norm.0.mul.add, d.block.0.norm.0.mul.add.1, d.block.0.norm.0.rms_norm.mul, d.embed_with.0.add.rms_norm_grad, d.embed_with.0.add.add, d.token.lookup_grad
extern "C" __global__ void __launch_bounds__(32) fused_add_mul_rms_norm_grad_add_scatter(const float* __restrict__ inverse_rms, const float* __restrict__ factor, const int64_t* __restrict__ tokens, const float* __restrict__ d_add, const float* __restrict__ d_mul, const float* __restrict__ d_mul_2, const float* __restrict__ d_mul_3, const float* __restrict__ gain, const float* __restrict__ add, float* __restrict__ d_token, const uint32_t d_token_adds) {
  __shared__ uint32_t masks[1];
  const int32_t first = blockIdx.x;
  int64_t own;
   {
    const int32_t i = first;
#line 8 "examples/tied/tied.pipe"  // lookup_grad
    const int64_t tokens_i = tokens[i];
    own = piper_within(tokens_i, 64);
  }
  bool earlier = false;
  for (int32_t q = threadIdx.x; q < first; q += 32) {
     {
      const int32_t i = q;
      const int64_t tokens_i = tokens[i];
      earlier = earlier || own == piper_within(tokens_i, 64);
    }
  }
  if (__syncthreads_or(earlier)) return;
  for (int32_t q0 = first; q0 < 32; q0 += 32) {
    const int32_t q = q0 + threadIdx.x;
    bool same = false;
    if (q < 32) {
       {
        const int32_t i = q;
        const int64_t tokens_i = tokens[i];
        same = own == piper_within(tokens_i, 64);
      }
    }
    const uint32_t found = __ballot_sync(0xffffffffu, same);
    if (threadIdx.x % 32 == 0) masks[threadIdx.x / 32] = found;
    __syncthreads();
    for (int32_t w = 0; w < 1; ++w) {
      for (uint32_t mask = masks[w]; mask != 0; mask &= mask - 1) {
        const int32_t at = q0 + w * 32 + (__ffs((int)mask) - 1);
        const int32_t i = at;
        const float inverse_rms_i = inverse_rms[i];
        const float factor_i = factor[i];
        const int64_t tokens_i = tokens[i];
        for (int32_t j = threadIdx.x; j < 32; j += 32) {
#line 8 "examples/tied/tied.pipe"  // add
          const float d_mul_j_3 = d_mul[i * 32 + j] + d_mul_2[i * 32 + j];
          const float d_mul_j_5 = d_mul_j_3 + d_mul_3[i * 32 + j];
#line 8 "examples/tied/tied.pipe"  // mul
          const float d_rms_norm = d_mul_j_5 * gain[j];
#line 8 "examples/tied/tied.pipe"  // rms_norm_grad
          const float scaled = d_rms_norm * inverse_rms_i;
          const float along = add[i * 32 + j] * factor_i;
          const float d_add_j_2 = scaled - along;
#line 8 "examples/tied/tied.pipe"  // add
          const float d_add_j_3 = d_add[i * 32 + j] + d_add_j_2;
#line 8 "examples/tied/tied.pipe"  // lookup_grad
          d_token[piper_within(tokens_i, 64) * 32 + j] += d_add_j_3;
        }
      }
    }
    __syncthreads();
  }
}

// add, add, mul, sum (sum): 16 x 2 rows of 32
// 1 block of 32: a thread per sum
// d.block.0.norm.0.mul.add, d.block.0.norm.0.mul.add.1, d.block.0.norm.0.gain.mul, d.block.0.norm.0.gain.sum
extern "C" __global__ void __launch_bounds__(32) fused_add_mul_sum_sum_2(const float* __restrict__ d_mul, const float* __restrict__ d_mul_2, const float* __restrict__ d_mul_3, const float* __restrict__ rms_norm, float* __restrict__ d_gain, const uint32_t d_gain_adds) {
  const int32_t at = ((int32_t)blockIdx.x * 32 + threadIdx.x);
  if (at >= 32) return;
  const int32_t j = at;
  float effect = d_gain_adds ? d_gain[j] : 0.0f;
  for (int32_t i0 = 0; i0 < 16; ++i0) {
#pragma unroll 4
    for (int32_t i1 = 0; i1 < 2; ++i1) {
#line 8 "examples/tied/tied.pipe"  // add
      const float d_mul_j_3 = d_mul[i0 * 32 + i1 * 512 + j] + d_mul_2[i0 * 32 + i1 * 512 + j];
      const float d_mul_j_5 = d_mul_j_3 + d_mul_3[i0 * 32 + i1 * 512 + j];
#line 8 "examples/tied/tied.pipe"  // mul
      const float d_gain_j = d_mul_j_5 * rms_norm[i0 * 32 + i1 * 512 + j];
#line 8 "examples/tied/tied.pipe"  // sum
      effect += d_gain_j;
    }
  }
  d_gain[j] = effect;
}

// add, add, mul, rms_norm_grad, add, sum (sum): 16 x 2 rows of 32
// 2 blocks of 256: a thread per sum
// d.block.0.norm.0.mul.add, d.block.0.norm.0.mul.add.1, d.block.0.norm.0.rms_norm.mul, d.embed_with.0.add.rms_norm_grad, d.embed_with.0.add.add, d.embed_with.0.position.sum
extern "C" __global__ void __launch_bounds__(256) fused_add_mul_rms_norm_grad_add_sum(const float* __restrict__ inverse_rms, const float* __restrict__ factor, const float* __restrict__ d_add, const float* __restrict__ d_mul, const float* __restrict__ d_mul_2, const float* __restrict__ d_mul_3, const float* __restrict__ gain, const float* __restrict__ add, float* __restrict__ d_position, const uint32_t d_position_adds) {
  const int32_t at = ((int32_t)blockIdx.x * 256 + threadIdx.x);
  if (at >= 512) return;
  const int32_t j = (at % 32);
  const int32_t i0 = (at / 32);
  float effect = d_position_adds ? d_position[i0 * 32 + j] : 0.0f;
#pragma unroll 4
  for (int32_t i1 = 0; i1 < 2; ++i1) {
    const float inverse_rms_i = inverse_rms[i0 + i1 * 16];
    const float factor_i = factor[i0 + i1 * 16];
#line 8 "examples/tied/tied.pipe"  // add
    const float d_mul_j_3 = d_mul[i0 * 32 + i1 * 512 + j] + d_mul_2[i0 * 32 + i1 * 512 + j];
    const float d_mul_j_5 = d_mul_j_3 + d_mul_3[i0 * 32 + i1 * 512 + j];
#line 8 "examples/tied/tied.pipe"  // mul
    const float d_rms_norm = d_mul_j_5 * gain[j];
#line 8 "examples/tied/tied.pipe"  // rms_norm_grad
    const float scaled = d_rms_norm * inverse_rms_i;
    const float along = add[i0 * 32 + i1 * 512 + j] * factor_i;
    const float d_add_j_2 = scaled - along;
#line 8 "examples/tied/tied.pipe"  // add
    const float d_add_j_3 = d_add[i0 * 32 + i1 * 512 + j] + d_add_j_2;
#line 8 "examples/tied/tied.pipe"  // sum
    effect += d_add_j_3;
  }
  d_position[i0 * 32 + j] = effect;
}

// add, add, mul, rms_norm_grad: 32 rows of 32 in 2 passes
// 1 block of 128: 4 lanes per row, 4 elements at once
// d.block.0.norm.0.mul.add, d.block.0.norm.0.mul.add.1, d.block.0.norm.0.rms_norm.mul, d.embed_with.0.add.rms_norm_grad
extern "C" __global__ void __launch_bounds__(128) fused_add_mul_rms_norm_grad_2(const float* __restrict__ d_mul, const float* __restrict__ d_mul_2, const float* __restrict__ d_mul_3, const float* __restrict__ gain, const float* __restrict__ add, float* __restrict__ d_mul_4, float* __restrict__ d_add) {
  const int32_t row = (int32_t)blockIdx.x * 32 + threadIdx.x / 4;
  const int32_t lane = threadIdx.x % 4;
  const int32_t i = row;
  float sum_square_lane = 0.0f;
  float dot_lane = 0.0f;
  for (int32_t j0 = lane * 4; j0 < 32; j0 += 16) {
    const piper_piece<float, 4> d_mul_j_piece = piper_read<4>(d_mul + (i * 32 + j0));
    const piper_piece<float, 4> d_mul_j_2_piece = piper_read<4>(d_mul_2 + (i * 32 + j0));
    const piper_piece<float, 4> d_mul_j_4_piece = piper_read<4>(d_mul_3 + (i * 32 + j0));
    piper_piece<float, 4> effect_piece;
    const piper_piece<float, 4> gain_j_piece = piper_read<4>(gain + (j0));
    const piper_piece<float, 4> add_j_piece = piper_read<4>(add + (i * 32 + j0));
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
#line 8 "examples/tied/tied.pipe"  // add
      const float d_mul_j = d_mul_j_piece.at[u];
      const float d_mul_j_2 = d_mul_j_2_piece.at[u];
      const float d_mul_j_3 = d_mul_j + d_mul_j_2;
      const float d_mul_j_4 = d_mul_j_4_piece.at[u];
      const float d_mul_j_5 = d_mul_j_3 + d_mul_j_4;
      effect_piece.at[u] = d_mul_j_5;
#line 8 "examples/tied/tied.pipe"  // mul
      const float gain_j = gain_j_piece.at[u];
      const float d_rms_norm = d_mul_j_5 * gain_j;
#line 8 "examples/tied/tied.pipe"  // rms_norm_grad
      const float add_j = add_j_piece.at[u];
      const float square = add_j * add_j;
      sum_square_lane += square;
      const float product = add_j * d_rms_norm;
      dot_lane += product;
    }
    piper_write(d_mul_4 + (i * 32 + j0), effect_piece);
  }
  const float sum_square = piper_join_row<piper_sum, 4>(sum_square_lane, (float*)0);
  const float dot = piper_join_row<piper_sum, 4>(dot_lane, (float*)0);
  const float mean_square = sum_square * 0.03125f;
  const float variance = mean_square + 9.99999997e-07f;
  const float inverse_rms = piper_rsqrt(variance);
  const float mean_dot = dot * 0.03125f;
  const float square_i = inverse_rms * inverse_rms;
  const float cube = square_i * inverse_rms;
  const float factor = mean_dot * cube;
  for (int32_t j0 = lane * 4; j0 < 32; j0 += 16) {
    const piper_piece<float, 4> d_mul_j_6_piece = piper_read<4>(d_mul_4 + (i * 32 + j0));
    const piper_piece<float, 4> gain_j_2_piece = piper_read<4>(gain + (j0));
    const piper_piece<float, 4> add_j_2_piece = piper_read<4>(add + (i * 32 + j0));
    piper_piece<float, 4> effect_j_piece;
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float d_mul_j_6 = d_mul_j_6_piece.at[u];
#line 8 "examples/tied/tied.pipe"  // mul
      const float gain_j_2 = gain_j_2_piece.at[u];
      const float d_rms_norm_j = d_mul_j_6 * gain_j_2;
#line 8 "examples/tied/tied.pipe"  // rms_norm_grad
      const float scaled = d_rms_norm_j * inverse_rms;
      const float add_j_2 = add_j_2_piece.at[u];
      const float along = add_j_2 * factor;
      const float d_add_j = scaled - along;
      effect_j_piece.at[u] = d_add_j;
    }
    piper_write(d_add + (i * 32 + j0), effect_j_piece);
  }
}

// add, lookup_grad (scatter): 32 rows of 32
// 32 blocks of 32: a block per index
// d.embed_with.0.add.add, d.token.lookup_grad
extern "C" __global__ void __launch_bounds__(32) fused_add_lookup_grad_scatter(const int64_t* __restrict__ tokens, const float* __restrict__ d_add, const float* __restrict__ d_add_2, float* __restrict__ d_token, const uint32_t d_token_adds) {
  __shared__ uint32_t masks[1];
  const int32_t first = blockIdx.x;
  int64_t own;
   {
    const int32_t i = first;
#line 8 "examples/tied/tied.pipe"  // lookup_grad
    const int64_t tokens_i = tokens[i];
    own = piper_within(tokens_i, 64);
  }
  bool earlier = false;
  for (int32_t q = threadIdx.x; q < first; q += 32) {
     {
      const int32_t i = q;
      const int64_t tokens_i = tokens[i];
      earlier = earlier || own == piper_within(tokens_i, 64);
    }
  }
  if (__syncthreads_or(earlier)) return;
  for (int32_t q0 = first; q0 < 32; q0 += 32) {
    const int32_t q = q0 + threadIdx.x;
    bool same = false;
    if (q < 32) {
       {
        const int32_t i = q;
        const int64_t tokens_i = tokens[i];
        same = own == piper_within(tokens_i, 64);
      }
    }
    const uint32_t found = __ballot_sync(0xffffffffu, same);
    if (threadIdx.x % 32 == 0) masks[threadIdx.x / 32] = found;
    __syncthreads();
    for (int32_t w = 0; w < 1; ++w) {
      for (uint32_t mask = masks[w]; mask != 0; mask &= mask - 1) {
        const int32_t at = q0 + w * 32 + (__ffs((int)mask) - 1);
        const int32_t i = at;
        const int64_t tokens_i = tokens[i];
        for (int32_t j = threadIdx.x; j < 32; j += 32) {
#line 8 "examples/tied/tied.pipe"  // add
          const float d_add_j_3 = d_add[i * 32 + j] + d_add_2[i * 32 + j];
#line 8 "examples/tied/tied.pipe"  // lookup_grad
          d_token[piper_within(tokens_i, 64) * 32 + j] += d_add_j_3;
        }
      }
    }
    __syncthreads();
  }
}

// add, sum (sum): 16 x 2 rows of 32
// 2 blocks of 256: a thread per sum
// d.embed_with.0.add.add, d.embed_with.0.position.sum
extern "C" __global__ void __launch_bounds__(256) fused_add_sum_sum(const float* __restrict__ d_add, const float* __restrict__ d_add_2, float* __restrict__ d_position, const uint32_t d_position_adds) {
  const int32_t at = ((int32_t)blockIdx.x * 256 + threadIdx.x);
  if (at >= 512) return;
  const int32_t j = (at % 32);
  const int32_t i0 = (at / 32);
  float effect = d_position_adds ? d_position[i0 * 32 + j] : 0.0f;
#pragma unroll 4
  for (int32_t i1 = 0; i1 < 2; ++i1) {
#line 8 "examples/tied/tied.pipe"  // add
    const float d_add_j_3 = d_add[i0 * 32 + i1 * 512 + j] + d_add_2[i0 * 32 + i1 * 512 + j];
#line 8 "examples/tied/tied.pipe"  // sum
    effect += d_add_j_3;
  }
  d_position[i0 * 32 + j] = effect;
}

// cast, square, sum: 1 row of 2048
// 1 block of 256: 256 lanes per row, 4 elements at once
// sum_squares.cast, sum_squares.square, square_0
extern "C" __global__ void __launch_bounds__(256) fused_cast_square_sum(const float* __restrict__ gradient_0, double* __restrict__ square_0) {
  __shared__ double square_0_i_partial[8];
  const int32_t row = blockIdx.x;
  const int32_t lane = threadIdx.x;
  double square_0_i_lane = 0.0;
  for (int32_t j0 = lane * 4; j0 < 2048; j0 += 1024) {
    const piper_piece<float, 4> gradient_0_j_piece = piper_read<4>(gradient_0 + (j0));
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float gradient_0_j = gradient_0_j_piece.at[u];
      const double cast = (double)gradient_0_j;
      const double square = cast * cast;
      square_0_i_lane += square;
    }
  }
  const double square_0_i = piper_join_row<piper_sum, 256>(square_0_i_lane, square_0_i_partial);
  if (lane == 0) {
    square_0[0] = square_0_i;
  }
}

// cast, square, sum: 1 row of 512
// 1 block of 64: 64 lanes per row, 4 elements at once
// sum_squares.cast.1, sum_squares.square.1, square_1
extern "C" __global__ void __launch_bounds__(64) fused_cast_square_sum_2(const float* __restrict__ gradient_1, double* __restrict__ square_1) {
  __shared__ double square_1_i_partial[2];
  const int32_t row = blockIdx.x;
  const int32_t lane = threadIdx.x;
  double square_1_i_lane = 0.0;
  for (int32_t j0 = lane * 4; j0 < 512; j0 += 256) {
    const piper_piece<float, 4> gradient_1_j_piece = piper_read<4>(gradient_1 + (j0));
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float gradient_1_j = gradient_1_j_piece.at[u];
      const double cast = (double)gradient_1_j;
      const double square = cast * cast;
      square_1_i_lane += square;
    }
  }
  const double square_1_i = piper_join_row<piper_sum, 64>(square_1_i_lane, square_1_i_partial);
  if (lane == 0) {
    square_1[0] = square_1_i;
  }
}

// cast, square, sum: 1 row of 32
// 1 block of 4: 4 lanes per row, 4 elements at once
// sum_squares.cast.2, sum_squares.square.2, square_2
extern "C" __global__ void __launch_bounds__(4) fused_cast_square_sum_3(const float* __restrict__ gradient_2, double* __restrict__ square_2) {
  const int32_t row = (int32_t)blockIdx.x * 1 + threadIdx.x / 4;
  const int32_t lane = threadIdx.x % 4;
  double square_2_i_lane = 0.0;
  for (int32_t j0 = lane * 4; j0 < 32; j0 += 16) {
    const piper_piece<float, 4> gradient_2_j_piece = piper_read<4>(gradient_2 + (j0));
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float gradient_2_j = gradient_2_j_piece.at[u];
      const double cast = (double)gradient_2_j;
      const double square = cast * cast;
      square_2_i_lane += square;
    }
  }
  const double square_2_i = piper_join_row<piper_sum, 4>(square_2_i_lane, (double*)0);
  if (lane == 0) {
    square_2[0] = square_2_i;
  }
}

// cast, square, sum: 1 row of 1024
// 1 block of 128: 128 lanes per row, 4 elements at once
// sum_squares.cast.3, sum_squares.square.3, square_3
extern "C" __global__ void __launch_bounds__(128) fused_cast_square_sum_4(const float* __restrict__ gradient_3, double* __restrict__ square_3) {
  __shared__ double square_3_i_partial[4];
  const int32_t row = blockIdx.x;
  const int32_t lane = threadIdx.x;
  double square_3_i_lane = 0.0;
  for (int32_t j0 = lane * 4; j0 < 1024; j0 += 512) {
    const piper_piece<float, 4> gradient_3_j_piece = piper_read<4>(gradient_3 + (j0));
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float gradient_3_j = gradient_3_j_piece.at[u];
      const double cast = (double)gradient_3_j;
      const double square = cast * cast;
      square_3_i_lane += square;
    }
  }
  const double square_3_i = piper_join_row<piper_sum, 128>(square_3_i_lane, square_3_i_partial);
  if (lane == 0) {
    square_3[0] = square_3_i;
  }
}

// cast, square, sum: 1 row of 4096
// 1 block of 512: 512 lanes per row, 4 elements at once
// sum_squares.cast.8, sum_squares.square.8, square_8
extern "C" __global__ void __launch_bounds__(512) fused_cast_square_sum_5(const float* __restrict__ gradient_8, double* __restrict__ square_8) {
  __shared__ double square_8_i_partial[16];
  const int32_t row = blockIdx.x;
  const int32_t lane = threadIdx.x;
  double square_8_i_lane = 0.0;
  for (int32_t j0 = lane * 4; j0 < 4096; j0 += 2048) {
    const piper_piece<float, 4> gradient_8_j_piece = piper_read<4>(gradient_8 + (j0));
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float gradient_8_j = gradient_8_j_piece.at[u];
      const double cast = (double)gradient_8_j;
      const double square = cast * cast;
      square_8_i_lane += square;
    }
  }
  const double square_8_i = piper_join_row<piper_sum, 512>(square_8_i_lane, square_8_i_partial);
  if (lane == 0) {
    square_8[0] = square_8_i;
  }
}

// add, add, add, add, add, add, add, add, add, add, add, add, add, add, add, add, add, add, add, add, add, add, add: 1 row of 1
// 1 block of 32: a thread per element
// norm.add, norm.add.1, norm.add.2, norm.add.3, norm.add.4, norm.add.5, norm.add.6, norm.add.7, norm.add.8, norm.add.9, norm.add.10, norm.add.11, ...
extern "C" __global__ void __launch_bounds__(32) fused_add_2(const double* __restrict__ square_0, const double* __restrict__ square_1, const double* __restrict__ square_2, const double* __restrict__ square_3, const double* __restrict__ square_4, const double* __restrict__ square_5, const double* __restrict__ square_6, const double* __restrict__ square_7, const double* __restrict__ square_8, const double* __restrict__ square_9, const double* __restrict__ square_10, const double* __restrict__ square_11, const double* __restrict__ square_12, const double* __restrict__ square_13, const double* __restrict__ square_14, const double* __restrict__ square_15, const double* __restrict__ square_16, const double* __restrict__ square_17, const double* __restrict__ square_18, const double* __restrict__ square_19, const double* __restrict__ square_20, const double* __restrict__ square_21, const double* __restrict__ square_22, const double* __restrict__ square_23, double* __restrict__ add) {
  const int32_t at = ((int32_t)blockIdx.x * 32 + threadIdx.x);
  if (at >= 1) return;
  const int32_t j = at;
  const double square_0_i = square_0[0];
  const double square_1_i = square_1[0];
  const double add_i = square_0_i + square_1_i;
  const double square_2_i = square_2[0];
  const double add_i_2 = add_i + square_2_i;
  const double square_3_i = square_3[0];
  const double add_i_3 = add_i_2 + square_3_i;
  const double square_4_i = square_4[0];
  const double add_i_4 = add_i_3 + square_4_i;
  const double square_5_i = square_5[0];
  const double add_i_5 = add_i_4 + square_5_i;
  const double square_6_i = square_6[0];
  const double add_i_6 = add_i_5 + square_6_i;
  const double square_7_i = square_7[0];
  const double add_i_7 = add_i_6 + square_7_i;
  const double square_8_i = square_8[0];
  const double add_i_8 = add_i_7 + square_8_i;
  const double square_9_i = square_9[0];
  const double add_i_9 = add_i_8 + square_9_i;
  const double square_10_i = square_10[0];
  const double add_i_10 = add_i_9 + square_10_i;
  const double square_11_i = square_11[0];
  const double add_i_11 = add_i_10 + square_11_i;
  const double square_12_i = square_12[0];
  const double add_i_12 = add_i_11 + square_12_i;
  const double square_13_i = square_13[0];
  const double add_i_13 = add_i_12 + square_13_i;
  const double square_14_i = square_14[0];
  const double add_i_14 = add_i_13 + square_14_i;
  const double square_15_i = square_15[0];
  const double add_i_15 = add_i_14 + square_15_i;
  const double square_16_i = square_16[0];
  const double add_i_16 = add_i_15 + square_16_i;
  const double square_17_i = square_17[0];
  const double add_i_17 = add_i_16 + square_17_i;
  const double square_18_i = square_18[0];
  const double add_i_18 = add_i_17 + square_18_i;
  const double square_19_i = square_19[0];
  const double add_i_19 = add_i_18 + square_19_i;
  const double square_20_i = square_20[0];
  const double add_i_20 = add_i_19 + square_20_i;
  const double square_21_i = square_21[0];
  const double add_i_21 = add_i_20 + square_21_i;
  const double square_22_i = square_22[0];
  const double add_i_22 = add_i_21 + square_22_i;
  const double square_23_i = square_23[0];
  const double add_i_23 = add_i_22 + square_23_i;
  add[0] = add_i_23;
}

// add, add, add, add, add, add, add, add, add, add, add, sqrt, offset, div, minimum: 1 row of 1
// 1 block of 32: a thread per element
// norm.add.23, norm.add.24, norm.add.25, norm.add.26, norm.add.27, norm.add.28, norm.add.29, norm.add.30, norm.add.31, norm.add.32, norm.add.33, norm, ...
extern "C" __global__ void __launch_bounds__(32) fused_add_sqrt_offset_div(const double* __restrict__ add, const double* __restrict__ square_24, const double* __restrict__ square_25, const double* __restrict__ square_26, const double* __restrict__ square_27, const double* __restrict__ square_28, const double* __restrict__ square_29, const double* __restrict__ square_30, const double* __restrict__ square_31, const double* __restrict__ square_32, const double* __restrict__ square_33, const double* __restrict__ square_34, double* __restrict__ norm, double* __restrict__ factor) {
  const int32_t at = ((int32_t)blockIdx.x * 32 + threadIdx.x);
  if (at >= 1) return;
  const int32_t j = at;
  const double add_i = add[0];
  const double square_24_i = square_24[0];
  const double add_i_2 = add_i + square_24_i;
  const double square_25_i = square_25[0];
  const double add_i_3 = add_i_2 + square_25_i;
  const double square_26_i = square_26[0];
  const double add_i_4 = add_i_3 + square_26_i;
  const double square_27_i = square_27[0];
  const double add_i_5 = add_i_4 + square_27_i;
  const double square_28_i = square_28[0];
  const double add_i_6 = add_i_5 + square_28_i;
  const double square_29_i = square_29[0];
  const double add_i_7 = add_i_6 + square_29_i;
  const double square_30_i = square_30[0];
  const double add_i_8 = add_i_7 + square_30_i;
  const double square_31_i = square_31[0];
  const double add_i_9 = add_i_8 + square_31_i;
  const double square_32_i = square_32[0];
  const double add_i_10 = add_i_9 + square_32_i;
  const double square_33_i = square_33[0];
  const double add_i_11 = add_i_10 + square_33_i;
  const double square_34_i = square_34[0];
  const double add_i_12 = add_i_11 + square_34_i;
  const double norm_i = piper_sqrt(add_i_12);
  norm[0] = norm_i;
  const double offset = norm_i + 9.9999999999999995e-07;
  const double div = 1.0 / offset;
  const double factor_i = piper_min(1.0, div);
  factor[0] = factor_i;
}

// cast, mul, scale, scale, add, square, scale, scale, add, div, cast, sqrt, cast, sqrt, div, offset, mul, div, sub: 1 row of 14912
// 15 blocks of 256: a thread per 4 elements
// update.cast, clipped, update.scale, update.scale.1, updated.moment1, update.square, update.scale.2, update.scale.3, updated.moment2, update.div, step, update.sqrt, ...
extern "C" __global__ void __launch_bounds__(256) fused_cast_mul_scale_add(const double* __restrict__ factor, const double* __restrict__ learning_rate, const double* __restrict__ bias1, const double* __restrict__ bias2, float* __restrict__ moment1, const float* __restrict__ gradient, float* __restrict__ moment2, float* __restrict__ parameter) {
  const int32_t at = ((int32_t)blockIdx.x * 256 + threadIdx.x) * 4;
  if (at >= 14912) return;
  const int32_t j0 = at;
  const double factor_i = factor[0];
  const float cast = (float)factor_i;
  const double learning_rate_i = learning_rate[0];
  const double bias1_i = bias1[0];
  const double div = learning_rate_i / bias1_i;
  const float step = (float)div;
  const double bias2_i = bias2[0];
  const double sqrt = piper_sqrt(bias2_i);
  const float root_bias2 = (float)sqrt;
  const piper_piece<float, 4> moment1_j_piece = piper_read<4>(moment1 + (j0));
  const piper_piece<float, 4> gradient_j_piece = piper_read<4>(gradient + (j0));
  piper_piece<float, 4> effect_piece;
  const piper_piece<float, 4> moment2_j_piece = piper_read<4>(moment2 + (j0));
  piper_piece<float, 4> effect_j_piece;
  const piper_piece<float, 4> parameter_j_piece = piper_read<4>(parameter + (j0));
  piper_piece<float, 4> effect_j_2_piece;
#pragma unroll
  for (int32_t u = 0; u < 4; ++u) {
    const int32_t j = j0 + u;
    const float moment1_j = moment1_j_piece.at[u];
    const float scale = moment1_j * 0.899999976f;
    const float gradient_j = gradient_j_piece.at[u];
    const float clipped = gradient_j * cast;
    const float scale_j = clipped * 0.100000001f;
    const float moment1_j_2 = scale + scale_j;
    effect_piece.at[u] = moment1_j_2;
    const float moment2_j = moment2_j_piece.at[u];
    const float scale_j_2 = moment2_j * 0.999000013f;
    const float square = clipped * clipped;
    const float scale_j_3 = square * 0.00100000005f;
    const float moment2_j_2 = scale_j_2 + scale_j_3;
    effect_j_piece.at[u] = moment2_j_2;
    const float parameter_j = parameter_j_piece.at[u];
    const float mul = moment1_j_2 * step;
    const float sqrt_j = piper_sqrt(moment2_j_2);
    const float div_j = sqrt_j / root_bias2;
    const float denominator = div_j + 9.99999994e-09f;
    const float div_j_2 = mul / denominator;
    const float parameter_j_2 = parameter_j - div_j_2;
    effect_j_2_piece.at[u] = parameter_j_2;
  }
  piper_write(moment1 + (j0), effect_piece);
  piper_write(moment2 + (j0), effect_j_piece);
  piper_write(parameter + (j0), effect_j_2_piece);
}

// cast, mul, scale, scale, add, square, scale, scale, add, div, cast, sqrt, cast, sqrt, div, offset, mul, div, sub: 1 row of 12384
// 13 blocks of 256: a thread per 4 elements
// update.cast, clipped, update.scale, update.scale.1, updated.moment1, update.square, update.scale.2, update.scale.3, updated.moment2, update.div, step, update.sqrt, ...
extern "C" __global__ void __launch_bounds__(256) fused_cast_mul_scale_add_2(const double* __restrict__ factor, const double* __restrict__ learning_rate, const double* __restrict__ bias1, const double* __restrict__ bias2, float* __restrict__ moment1, const float* __restrict__ gradient, float* __restrict__ moment2, float* __restrict__ parameter) {
  const int32_t at = ((int32_t)blockIdx.x * 256 + threadIdx.x) * 4;
  if (at >= 12384) return;
  const int32_t j0 = at;
  const double factor_i = factor[0];
  const float cast = (float)factor_i;
  const double learning_rate_i = learning_rate[0];
  const double bias1_i = bias1[0];
  const double div = learning_rate_i / bias1_i;
  const float step = (float)div;
  const double bias2_i = bias2[0];
  const double sqrt = piper_sqrt(bias2_i);
  const float root_bias2 = (float)sqrt;
  const piper_piece<float, 4> moment1_j_piece = piper_read<4>(moment1 + (j0));
  const piper_piece<float, 4> gradient_j_piece = piper_read<4>(gradient + (j0));
  piper_piece<float, 4> effect_piece;
  const piper_piece<float, 4> moment2_j_piece = piper_read<4>(moment2 + (j0));
  piper_piece<float, 4> effect_j_piece;
  const piper_piece<float, 4> parameter_j_piece = piper_read<4>(parameter + (j0));
  piper_piece<float, 4> effect_j_2_piece;
#pragma unroll
  for (int32_t u = 0; u < 4; ++u) {
    const int32_t j = j0 + u;
    const float moment1_j = moment1_j_piece.at[u];
    const float scale = moment1_j * 0.899999976f;
    const float gradient_j = gradient_j_piece.at[u];
    const float clipped = gradient_j * cast;
    const float scale_j = clipped * 0.100000001f;
    const float moment1_j_2 = scale + scale_j;
    effect_piece.at[u] = moment1_j_2;
    const float moment2_j = moment2_j_piece.at[u];
    const float scale_j_2 = moment2_j * 0.999000013f;
    const float square = clipped * clipped;
    const float scale_j_3 = square * 0.00100000005f;
    const float moment2_j_2 = scale_j_2 + scale_j_3;
    effect_j_piece.at[u] = moment2_j_2;
    const float parameter_j = parameter_j_piece.at[u];
    const float mul = moment1_j_2 * step;
    const float sqrt_j = piper_sqrt(moment2_j_2);
    const float div_j = sqrt_j / root_bias2;
    const float denominator = div_j + 9.99999994e-09f;
    const float div_j_2 = mul / denominator;
    const float parameter_j_2 = parameter_j - div_j_2;
    effect_j_2_piece.at[u] = parameter_j_2;
  }
  piper_write(moment1 + (j0), effect_piece);
  piper_write(moment2 + (j0), effect_j_piece);
  piper_write(parameter + (j0), effect_j_2_piece);
}

// cast, mul, scale, scale, add, square, scale, scale, add, div, cast, sqrt, cast, sqrt, div, offset, mul, div, sub: 1 row of 12352
// 13 blocks of 256: a thread per 4 elements
// update.cast, clipped, update.scale, update.scale.1, updated.moment1, update.square, update.scale.2, update.scale.3, updated.moment2, update.div, step, update.sqrt, ...
extern "C" __global__ void __launch_bounds__(256) fused_cast_mul_scale_add_3(const double* __restrict__ factor, const double* __restrict__ learning_rate, const double* __restrict__ bias1, const double* __restrict__ bias2, float* __restrict__ moment1, const float* __restrict__ gradient, float* __restrict__ moment2, float* __restrict__ parameter) {
  const int32_t at = ((int32_t)blockIdx.x * 256 + threadIdx.x) * 4;
  if (at >= 12352) return;
  const int32_t j0 = at;
  const double factor_i = factor[0];
  const float cast = (float)factor_i;
  const double learning_rate_i = learning_rate[0];
  const double bias1_i = bias1[0];
  const double div = learning_rate_i / bias1_i;
  const float step = (float)div;
  const double bias2_i = bias2[0];
  const double sqrt = piper_sqrt(bias2_i);
  const float root_bias2 = (float)sqrt;
  const piper_piece<float, 4> moment1_j_piece = piper_read<4>(moment1 + (j0));
  const piper_piece<float, 4> gradient_j_piece = piper_read<4>(gradient + (j0));
  piper_piece<float, 4> effect_piece;
  const piper_piece<float, 4> moment2_j_piece = piper_read<4>(moment2 + (j0));
  piper_piece<float, 4> effect_j_piece;
  const piper_piece<float, 4> parameter_j_piece = piper_read<4>(parameter + (j0));
  piper_piece<float, 4> effect_j_2_piece;
#pragma unroll
  for (int32_t u = 0; u < 4; ++u) {
    const int32_t j = j0 + u;
    const float moment1_j = moment1_j_piece.at[u];
    const float scale = moment1_j * 0.899999976f;
    const float gradient_j = gradient_j_piece.at[u];
    const float clipped = gradient_j * cast;
    const float scale_j = clipped * 0.100000001f;
    const float moment1_j_2 = scale + scale_j;
    effect_piece.at[u] = moment1_j_2;
    const float moment2_j = moment2_j_piece.at[u];
    const float scale_j_2 = moment2_j * 0.999000013f;
    const float square = clipped * clipped;
    const float scale_j_3 = square * 0.00100000005f;
    const float moment2_j_2 = scale_j_2 + scale_j_3;
    effect_j_piece.at[u] = moment2_j_2;
    const float parameter_j = parameter_j_piece.at[u];
    const float mul = moment1_j_2 * step;
    const float sqrt_j = piper_sqrt(moment2_j_2);
    const float div_j = sqrt_j / root_bias2;
    const float denominator = div_j + 9.99999994e-09f;
    const float div_j_2 = mul / denominator;
    const float parameter_j_2 = parameter_j - div_j_2;
    effect_j_2_piece.at[u] = parameter_j_2;
  }
  piper_write(moment1 + (j0), effect_piece);
  piper_write(moment2 + (j0), effect_j_piece);
  piper_write(parameter + (j0), effect_j_2_piece);
}
