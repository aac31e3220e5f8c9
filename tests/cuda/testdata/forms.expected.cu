#include "backend/cuda/prelude.h"
#include "runtime/kernel_math.h"

// lookup, add, rms_norm, mul: 8 x 12 rows of 16 in 2 passes
// 1 block of 256: 2 lanes per row, 4 elements at once
// embed.0.lookup, embed.0.add, head.0.norm.0.rms_norm, head.0.norm.0.mul
extern "C" __global__ void __launch_bounds__(256, 2) fused_lookup_add_rms_norm_mul(const int64_t* __restrict__ tokens, const float* __restrict__ token, const float* __restrict__ position, float* __restrict__ add, const float* __restrict__ gain, float* __restrict__ rms_norm, float* __restrict__ mul) {
  const int32_t row = (int32_t)blockIdx.x * 128 + threadIdx.x / 2;
  const int32_t lane = threadIdx.x % 2;
  if (row >= 96) return;
  const int32_t i1 = row % 12;
  const int32_t i0 = row / 12;
#line 9 "tests/cuda/testdata/forms.pipe"  // lookup
  const int64_t tokens_i = tokens[i0 * 12 + i1];
  float sum_square_lane = 0.0f;
  for (int32_t j0 = lane * 4; j0 < 16; j0 += 8) {
    const piper_tile<float, 4> lookup_piece = piper_read<4>(token + (piper_within(tokens_i, 256) * 16 + j0));
    const piper_tile<float, 4> position_j_piece = piper_read<4>(position + (i1 * 16 + j0));
    piper_tile<float, 4> add_out_piece;
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float lookup = lookup_piece.at[u];
#line 9 "tests/cuda/testdata/forms.pipe"  // add
      const float position_j = position_j_piece.at[u];
      const float add_j = lookup + position_j;
      add_out_piece.at[u] = add_j;
#line 9 "tests/cuda/testdata/forms.pipe"  // rms_norm
      const float square = add_j * add_j;
      sum_square_lane += square;
    }
    piper_write(add + (i0 * 192 + i1 * 16 + j0), add_out_piece);
  }
  const float sum_square = piper_join_row<piper_sum, 2>(sum_square_lane, (float*)0);
  const float mean_square = sum_square * 0.0625f;
  const float variance = mean_square + 9.99999997e-07f;
  const float inverse_rms = piper_rsqrt(variance);
  for (int32_t j0 = lane * 4; j0 < 16; j0 += 8) {
    const piper_tile<float, 4> add_j_2_piece = piper_read<4>(add + (i0 * 192 + i1 * 16 + j0));
    piper_tile<float, 4> rms_norm_out_piece;
    const piper_tile<float, 4> gain_j_piece = piper_read<4>(gain + (j0));
    piper_tile<float, 4> mul_out_piece;
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float add_j_2 = add_j_2_piece.at[u];
      const float rms_norm_j = add_j_2 * inverse_rms;
      rms_norm_out_piece.at[u] = rms_norm_j;
#line 9 "tests/cuda/testdata/forms.pipe"  // mul
      const float gain_j = gain_j_piece.at[u];
      const float mul_j = rms_norm_j * gain_j;
      mul_out_piece.at[u] = mul_j;
    }
    piper_write(rms_norm + (i0 * 192 + i1 * 16 + j0), rms_norm_out_piece);
    piper_write(mul + (i0 * 192 + i1 * 16 + j0), mul_out_piece);
  }
}

// cross_entropy, sum: 96 rows of 256 in 2 passes
// 12 blocks of 256: 32 lanes per row, 4 elements at once
// cross_entropy, sum
extern "C" __global__ void __launch_bounds__(256, 2) fused_cross_entropy_sum(const int64_t* __restrict__ targets, const float* __restrict__ contract, double* __restrict__ cross_entropy) {
  const int32_t row = (int32_t)blockIdx.x * 8 + threadIdx.x / 32;
  const int32_t lane = threadIdx.x % 32;
  const int32_t i = row;
#line 9 "tests/cuda/testdata/forms.pipe"  // cross_entropy
  const int64_t targets_i = targets[i];
  const float picked = contract[piper_within(targets_i, 256) + i * 256];
  float largest_lane = -piper_infinity(0.0f);
  for (int32_t j0 = lane * 4; j0 < 256; j0 += 128) {
    const piper_tile<float, 4> contract_j_piece = piper_read<4>(contract + (i * 256 + j0));
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float contract_j = contract_j_piece.at[u];
      largest_lane = piper_max(largest_lane, contract_j);
    }
  }
  const float largest = piper_join_row<piper_largest, 32>(largest_lane, (float*)0);
  float sum_exp_lane = 0.0f;
  for (int32_t j0 = lane * 4; j0 < 256; j0 += 128) {
    const piper_tile<float, 4> contract_j_2_piece = piper_read<4>(contract + (i * 256 + j0));
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float contract_j_2 = contract_j_2_piece.at[u];
      const float shifted = contract_j_2 - largest;
      const float e = piper_exp(shifted);
      sum_exp_lane += e;
    }
  }
  const float sum_exp = piper_join_row<piper_sum, 32>(sum_exp_lane, (float*)0);
  const float log_sum = piper_log(sum_exp);
  const float log_sum_exp = largest + log_sum;
  const float cross_entropy_i = log_sum_exp - picked;
#line 9 "tests/cuda/testdata/forms.pipe"  // sum
  const double cross_entropy_i_2 = (double)cross_entropy_i;
  if (lane == 0) {
    cross_entropy[i] = cross_entropy_i_2;
  }
}

// sum (total): 1 row of 96
// 1 block of 32: 32 lanes per row, 2 elements at once
// sum
extern "C" __global__ void __launch_bounds__(32, 16) fused_sum_total(const double* __restrict__ cross_entropy, float* __restrict__ sum) {
  const int32_t row = (int32_t)blockIdx.x * 1 + threadIdx.x / 32;
  const int32_t lane = threadIdx.x % 32;
  double sum_i_lane = 0.0;
  for (int32_t j0 = lane * 2; j0 < 96; j0 += 64) {
    const piper_tile<double, 2> cross_entropy_j_piece = piper_read<2>(cross_entropy + (j0));
#pragma unroll
    for (int32_t u = 0; u < 2; ++u) {
      const int32_t j = j0 + u;
#line 9 "tests/cuda/testdata/forms.pipe"  // sum
      const double cross_entropy_j = cross_entropy_j_piece.at[u];
      sum_i_lane += cross_entropy_j;
    }
  }
  const double sum_i = piper_join_row<piper_sum, 32>(sum_i_lane, (double*)0);
  const float sum_i_2 = (float)sum_i;
  if (lane == 0) {
    sum[0] = sum_i_2;
  }
}

// cross_entropy_grad: 96 rows of 256 in 3 passes
// 12 blocks of 256: 32 lanes per row, 4 elements at once
// d.head.0.contract.cross_entropy_grad
extern "C" __global__ void __launch_bounds__(256, 4) fused_cross_entropy_grad(const int64_t* __restrict__ targets, const float* __restrict__ contract, float* __restrict__ d_contract) {
  const int32_t row = (int32_t)blockIdx.x * 8 + threadIdx.x / 32;
  const int32_t lane = threadIdx.x % 32;
  const int32_t i = row;
#line 9 "tests/cuda/testdata/forms.pipe"  // cross_entropy_grad
  const int64_t targets_i = targets[i];
  float largest_lane = -piper_infinity(0.0f);
  for (int32_t j0 = lane * 4; j0 < 256; j0 += 128) {
    const piper_tile<float, 4> contract_j_piece = piper_read<4>(contract + (i * 256 + j0));
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float contract_j = contract_j_piece.at[u];
      largest_lane = piper_max(largest_lane, contract_j);
    }
  }
  const float largest = piper_join_row<piper_largest, 32>(largest_lane, (float*)0);
  float sum_exp_lane = 0.0f;
  for (int32_t j0 = lane * 4; j0 < 256; j0 += 128) {
    const piper_tile<float, 4> contract_j_2_piece = piper_read<4>(contract + (i * 256 + j0));
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float contract_j_2 = contract_j_2_piece.at[u];
      const float shifted = contract_j_2 - largest;
      const float e = piper_exp(shifted);
      sum_exp_lane += e;
    }
  }
  const float sum_exp = piper_join_row<piper_sum, 32>(sum_exp_lane, (float*)0);
  const float scale = 1.0f / sum_exp;
  for (int32_t j0 = lane * 4; j0 < 256; j0 += 128) {
    const piper_tile<float, 4> contract_j_3_piece = piper_read<4>(contract + (i * 256 + j0));
    piper_tile<float, 4> d_contract_out_piece;
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float contract_j_3 = contract_j_3_piece.at[u];
      const float shifted_j = contract_j_3 - largest;
      const float e_j = piper_exp(shifted_j);
      const float probability = e_j * scale;
      const float one_hot = (int32_t)j == (int32_t)targets_i ? 1.0f : 0.0f;
      const float difference = probability - one_hot;
      const float d_contract_j = difference * 0.010416667f;
      d_contract_out_piece.at[u] = d_contract_j;
    }
    piper_write(d_contract + (i * 256 + j0), d_contract_out_piece);
  }
}

// mul, rms_norm_grad: 96 rows of 16
// 1 block of 256: 2 lanes per row, 4 elements at once
// d.head.0.norm.0.rms_norm.mul, d.embed.0.add.rms_norm_grad
extern "C" __global__ void __launch_bounds__(256, 4) fused_mul_rms_norm_grad(const float* __restrict__ add, const float* __restrict__ d_mul, const float* __restrict__ gain, float* __restrict__ inverse_rms, float* __restrict__ factor) {
  const int32_t row = (int32_t)blockIdx.x * 128 + threadIdx.x / 2;
  const int32_t lane = threadIdx.x % 2;
  if (row >= 96) return;
  const int32_t i = row;
  float sum_square_lane = 0.0f;
  float dot_lane = 0.0f;
  for (int32_t j0 = lane * 4; j0 < 16; j0 += 8) {
    const piper_tile<float, 4> add_j_piece = piper_read<4>(add + (i * 16 + j0));
    const piper_tile<float, 4> d_mul_j_piece = piper_read<4>(d_mul + (i * 16 + j0));
    const piper_tile<float, 4> gain_j_piece = piper_read<4>(gain + (j0));
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
#line 9 "tests/cuda/testdata/forms.pipe"  // rms_norm_grad
      const float add_j = add_j_piece.at[u];
      const float square = add_j * add_j;
      sum_square_lane += square;
#line 9 "tests/cuda/testdata/forms.pipe"  // mul
      const float d_mul_j = d_mul_j_piece.at[u];
      const float gain_j = gain_j_piece.at[u];
      const float d_rms_norm = d_mul_j * gain_j;
#line 9 "tests/cuda/testdata/forms.pipe"  // rms_norm_grad
      const float product = add_j * d_rms_norm;
      dot_lane += product;
    }
  }
  const float sum_square = piper_join_row<piper_sum, 2>(sum_square_lane, (float*)0);
  const float dot = piper_join_row<piper_sum, 2>(dot_lane, (float*)0);
  const float mean_square = sum_square * 0.0625f;
  const float variance = mean_square + 9.99999997e-07f;
  const float inverse_rms_i = piper_rsqrt(variance);
  if (lane == 0) {
    inverse_rms[i] = inverse_rms_i;
  }
  const float mean_dot = dot * 0.0625f;
  const float square_i = inverse_rms_i * inverse_rms_i;
  const float cube = square_i * inverse_rms_i;
  const float factor_i = mean_dot * cube;
  if (lane == 0) {
    factor[i] = factor_i;
  }
}

// lookup_grad (order): 96 rows of 1
// 1 block of 128: it sorts the positions by index
// d.embed.0.token.lookup_grad
extern "C" __global__ void __launch_bounds__(128, 8) fused_lookup_grad_order(const int64_t* __restrict__ tokens, int64_t* __restrict__ order) {
  piper_order<128, 1>(96, order, [&](const int64_t q) {
    const int32_t i = q;
#line 9 "tests/cuda/testdata/forms.pipe"  // lookup_grad
    const int64_t tokens_i = tokens[i];
    return piper_within(tokens_i, 256);
  });
}

// mul, rms_norm_grad, lookup_grad (scatter): 96 rows of 16
// 96 blocks of 32: a block per run of 128 equal indices at most, 4 elements at once
// d.head.0.norm.0.rms_norm.mul, d.embed.0.add.rms_norm_grad, d.embed.0.token.lookup_grad
extern "C" __global__ void __launch_bounds__(32, 16) fused_mul_rms_norm_grad_lookup_grad_scatter(const float* __restrict__ inverse_rms, const float* __restrict__ factor, const int64_t* __restrict__ tokens, const float* __restrict__ d_mul, const float* __restrict__ gain, const float* __restrict__ add, float* __restrict__ d_token, const uint32_t d_token_adds, const int64_t* __restrict__ order) {
  const int64_t* const place = order + 96;
  const int32_t slot = blockIdx.x, nth = (int32_t)place[slot];
  if (nth % 128 != 0) return;
  const int32_t count = piper_run<int32_t>(place, 96, slot, 128);
  const auto index_of = [&](const int64_t q) {
    const int32_t i = q;
#line 9 "tests/cuda/testdata/forms.pipe"  // lookup_grad
    const int64_t tokens_i = tokens[i];
    return piper_within(tokens_i, 256);
  };
  const int64_t own = index_of(order[slot]);
  for (int32_t j0 = threadIdx.x * 4; j0 < 16; j0 += 128) {
    float added[4] = {};
#pragma unroll 4
    for (int32_t k = 0; k < count; ++k) {
      const int32_t at = (int32_t)order[slot + k];
      const int32_t i = at;
#line 9 "tests/cuda/testdata/forms.pipe"  // rms_norm_grad
      const float inverse_rms_i = inverse_rms[i];
      const float factor_i = factor[i];
      const piper_tile<float, 4> d_mul_j_piece = piper_read<4>(d_mul + (i * 16 + j0));
      const piper_tile<float, 4> gain_j_piece = piper_read<4>(gain + (j0));
      const piper_tile<float, 4> add_j_piece = piper_read<4>(add + (i * 16 + j0));
#pragma unroll
      for (int32_t u = 0; u < 4; ++u) {
        const int32_t j = j0 + u;
#line 9 "tests/cuda/testdata/forms.pipe"  // mul
        const float d_mul_j = d_mul_j_piece.at[u];
        const float gain_j = gain_j_piece.at[u];
        const float d_rms_norm = d_mul_j * gain_j;
#line 9 "tests/cuda/testdata/forms.pipe"  // rms_norm_grad
        const float scaled = d_rms_norm * inverse_rms_i;
        const float add_j = add_j_piece.at[u];
        const float along = add_j * factor_i;
        const float d_add = scaled - along;
#line 9 "tests/cuda/testdata/forms.pipe"  // lookup_grad
        added[u] += d_add;
      }
    }
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      d_token[own * 16 + j] = d_token_adds ? d_token[own * 16 + j] + added[u] : added[u];
    }
  }
}

// mul, mul, sum (sum): 6 x 2 x 8 rows of 16
// 1 block of 128: a thread per sum
// d.head.0.norm.0.rms_norm.mul, d.head.0.norm.0.gain.mul, d.head.0.norm.0.gain.sum
extern "C" __global__ void __launch_bounds__(128, 8) fused_mul_sum_sum(const float* __restrict__ d_mul, const float* __restrict__ rms_norm, float* __restrict__ parts_of_d_gain) {
  const int32_t at = ((int32_t)blockIdx.x * 128 + threadIdx.x);
  if (at >= 96) return;
  const int32_t j = (at % 16);
  const int32_t i0 = (at / 16);
  float parts_of_d_gain_out = 0.0f;
  for (int32_t i1 = 0; i1 < 2; ++i1) {
#pragma unroll 4
    for (int32_t i2 = 0; i2 < 8; ++i2) {
#line 9 "tests/cuda/testdata/forms.pipe"  // mul
      const float d_gain = d_mul[i0 * 32 + i1 * 16 + i2 * 192 + j] * rms_norm[i0 * 32 + i1 * 16 + i2 * 192 + j];
#line 9 "tests/cuda/testdata/forms.pipe"  // sum
      parts_of_d_gain_out += d_gain;
    }
  }
  parts_of_d_gain[i0 * 16 + j] = parts_of_d_gain_out;
}

// sum (join): 6 rows of 16
// 1 block of 32: a thread per sum
// d.head.0.norm.0.gain.sum
extern "C" __global__ void __launch_bounds__(32, 32) fused_sum_join(const float* __restrict__ parts_of_d_gain, float* __restrict__ d_gain, const uint32_t d_gain_adds) {
  const int32_t at = ((int32_t)blockIdx.x * 32 + threadIdx.x);
  if (at >= 16) return;
  const int32_t j = at;
  float d_gain_out = d_gain_adds ? d_gain[j] : 0.0f;
#pragma unroll 4
  for (int32_t i = 0; i < 6; ++i) {
#line 9 "tests/cuda/testdata/forms.pipe"  // sum
    d_gain_out += parts_of_d_gain[i * 16 + j];
  }
  d_gain[j] = d_gain_out;
}

// mul, rms_norm_grad, sum (sum): 12 x 8 rows of 16
// 1 block of 256: a thread per sum
// d.head.0.norm.0.rms_norm.mul, d.embed.0.add.rms_norm_grad, d.embed.0.position.sum
extern "C" __global__ void __launch_bounds__(256, 4) fused_mul_rms_norm_grad_sum_sum(const float* __restrict__ inverse_rms, const float* __restrict__ factor, const float* __restrict__ d_mul, const float* __restrict__ gain, const float* __restrict__ add, float* __restrict__ d_position, const uint32_t d_position_adds) {
  const int32_t at = ((int32_t)blockIdx.x * 256 + threadIdx.x);
  if (at >= 192) return;
  const int32_t j = (at % 16);
  const int32_t i0 = (at / 16);
  float d_position_out = d_position_adds ? d_position[i0 * 16 + j] : 0.0f;
#pragma unroll 4
  for (int32_t i1 = 0; i1 < 8; ++i1) {
#line 9 "tests/cuda/testdata/forms.pipe"  // rms_norm_grad
    const float inverse_rms_i = inverse_rms[i0 + i1 * 12];
    const float factor_i = factor[i0 + i1 * 12];
#line 9 "tests/cuda/testdata/forms.pipe"  // mul
    const float d_rms_norm = d_mul[i0 * 16 + i1 * 192 + j] * gain[j];
#line 9 "tests/cuda/testdata/forms.pipe"  // rms_norm_grad
    const float scaled = d_rms_norm * inverse_rms_i;
    const float along = add[i0 * 16 + i1 * 192 + j] * factor_i;
    const float d_add = scaled - along;
#line 9 "tests/cuda/testdata/forms.pipe"  // sum
    d_position_out += d_add;
  }
  d_position[i0 * 16 + j] = d_position_out;
}

// cast, square, sum: 1 row of 4096
// 1 block of 512: 512 lanes per row, 4 elements at once
// sum_squares.cast, sum_squares.square, square_0
extern "C" __global__ void __launch_bounds__(512, 1) fused_cast_square_sum(const float* __restrict__ gradient_0, double* __restrict__ square_0) {
  __shared__ double square_0_i_partial[16];
  const int32_t row = blockIdx.x;
  const int32_t lane = threadIdx.x;
  double square_0_i_lane = 0.0;
  for (int32_t j0 = lane * 4; j0 < 4096; j0 += 2048) {
    const piper_tile<float, 4> gradient_0_j_piece = piper_read<4>(gradient_0 + (j0));
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float gradient_0_j = gradient_0_j_piece.at[u];
      const double cast = (double)gradient_0_j;
      const double square = cast * cast;
      square_0_i_lane += square;
    }
  }
  const double square_0_i = piper_join_row<piper_sum, 512>(square_0_i_lane, square_0_i_partial);
  if (lane == 0) {
    square_0[0] = square_0_i;
  }
}

// cast, square, sum: 1 row of 192
// 1 block of 32: 32 lanes per row, 4 elements at once
// sum_squares.cast.1, sum_squares.square.1, square_1
extern "C" __global__ void __launch_bounds__(32, 16) fused_cast_square_sum_2(const float* __restrict__ gradient_1, double* __restrict__ square_1) {
  const int32_t row = (int32_t)blockIdx.x * 1 + threadIdx.x / 32;
  const int32_t lane = threadIdx.x % 32;
  double square_1_i_lane = 0.0;
  for (int32_t j0 = lane * 4; j0 < 192; j0 += 128) {
    const piper_tile<float, 4> gradient_1_j_piece = piper_read<4>(gradient_1 + (j0));
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float gradient_1_j = gradient_1_j_piece.at[u];
      const double cast = (double)gradient_1_j;
      const double square = cast * cast;
      square_1_i_lane += square;
    }
  }
  const double square_1_i = piper_join_row<piper_sum, 32>(square_1_i_lane, (double*)0);
  if (lane == 0) {
    square_1[0] = square_1_i;
  }
}

// cast, square, sum: 1 row of 16
// 1 block of 2: 2 lanes per row, 4 elements at once
// sum_squares.cast.3, sum_squares.square.3, square_3
extern "C" __global__ void __launch_bounds__(2, 256) fused_cast_square_sum_3(const float* __restrict__ gradient_3, double* __restrict__ square_3) {
  const int32_t row = (int32_t)blockIdx.x * 1 + threadIdx.x / 2;
  const int32_t lane = threadIdx.x % 2;
  double square_3_i_lane = 0.0;
  for (int32_t j0 = lane * 4; j0 < 16; j0 += 8) {
    const piper_tile<float, 4> gradient_3_j_piece = piper_read<4>(gradient_3 + (j0));
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float gradient_3_j = gradient_3_j_piece.at[u];
      const double cast = (double)gradient_3_j;
      const double square = cast * cast;
      square_3_i_lane += square;
    }
  }
  const double square_3_i = piper_join_row<piper_sum, 2>(square_3_i_lane, (double*)0);
  if (lane == 0) {
    square_3[0] = square_3_i;
  }
}

// add, add, add, sqrt, offset, div, minimum: 1 row of 1
// 1 block of 32: a thread per element
// norm.add, norm.add.1, norm.add.2, norm, norm.offset, norm.div, factor
extern "C" __global__ void __launch_bounds__(32, 16) fused_add_sqrt_offset_div(const double* __restrict__ square_0, const double* __restrict__ square_1, const double* __restrict__ square_2, const double* __restrict__ square_3, double* __restrict__ norm, double* __restrict__ factor) {
  const int32_t at = ((int32_t)blockIdx.x * 32 + threadIdx.x);
  if (at >= 1) return;
  const int32_t j = at;
  const double square_0_i = square_0[0];
  const double square_1_i = square_1[0];
  const double add = square_0_i + square_1_i;
  const double square_2_i = square_2[0];
  const double add_i = add + square_2_i;
  const double square_3_i = square_3[0];
  const double add_i_2 = add_i + square_3_i;
  const double norm_i = piper_sqrt(add_i_2);
  norm[0] = norm_i;
  const double offset = norm_i + 9.9999999999999995e-07;
  const double div = 1.0 / offset;
  const double factor_i = piper_min(1.0, div);
  factor[0] = factor_i;
}

// cast, mul, scale, scale, add, square, scale, scale, add, div, cast, sqrt, cast, sqrt, div, offset, mul, div, sub: 1 row of 8400
// 9 blocks of 256: a thread per 4 elements
// update.cast, clipped, update.scale, update.scale.1, updated.moment1, update.square, update.scale.2, update.scale.3, updated.moment2, update.div, step, update.sqrt, ...
extern "C" __global__ void __launch_bounds__(256, 2) fused_cast_mul_scale_add(const double* __restrict__ factor, const double* __restrict__ learning_rate, const double* __restrict__ bias1, const double* __restrict__ bias2, float* __restrict__ moment1, const float* __restrict__ gradient, float* __restrict__ moment2, float* __restrict__ parameter) {
  const int32_t at = ((int32_t)blockIdx.x * 256 + threadIdx.x) * 4;
  if (at >= 8400) return;
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
  const piper_tile<float, 4> moment1_j_piece = piper_read<4>(moment1 + (j0));
  const piper_tile<float, 4> gradient_j_piece = piper_read<4>(gradient + (j0));
  piper_tile<float, 4> moment1_out_piece;
  const piper_tile<float, 4> moment2_j_piece = piper_read<4>(moment2 + (j0));
  piper_tile<float, 4> moment2_out_piece;
  const piper_tile<float, 4> parameter_j_piece = piper_read<4>(parameter + (j0));
  piper_tile<float, 4> parameter_out_piece;
#pragma unroll
  for (int32_t u = 0; u < 4; ++u) {
    const int32_t j = j0 + u;
    const float moment1_j = moment1_j_piece.at[u];
    const float scale = moment1_j * 0.899999976f;
    const float gradient_j = gradient_j_piece.at[u];
    const float clipped = gradient_j * cast;
    const float scale_j = clipped * 0.100000001f;
    const float moment1_j_2 = scale + scale_j;
    moment1_out_piece.at[u] = moment1_j_2;
    const float moment2_j = moment2_j_piece.at[u];
    const float scale_j_2 = moment2_j * 0.999000013f;
    const float square = clipped * clipped;
    const float scale_j_3 = square * 0.00100000005f;
    const float moment2_j_2 = scale_j_2 + scale_j_3;
    moment2_out_piece.at[u] = moment2_j_2;
    const float parameter_j = parameter_j_piece.at[u];
    const float mul = moment1_j_2 * step;
    const float sqrt_j = piper_sqrt(moment2_j_2);
    const float div_j = sqrt_j / root_bias2;
    const float denominator = div_j + 9.99999994e-09f;
    const float div_j_2 = mul / denominator;
    const float parameter_j_2 = parameter_j - div_j_2;
    parameter_out_piece.at[u] = parameter_j_2;
  }
  piper_write(moment1 + (j0), moment1_out_piece);
  piper_write(moment2 + (j0), moment2_out_piece);
  piper_write(parameter + (j0), parameter_out_piece);
}
