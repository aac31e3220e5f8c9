#include "backend/cuda/prelude.h"
#include "runtime/kernel_math.h"

// add, layer_norm: 8 rows of 64 in 3 passes
// 1 block of 64: 8 lanes per row, 4 elements at once
// stem.0.add, layer.0.layer_norm
extern "C" __global__ void __launch_bounds__(64) fused_add_layer_norm(const float* __restrict__ contract, const float* __restrict__ bias, float* __restrict__ add, float* __restrict__ layer_norm) {
  const int32_t row = (int32_t)blockIdx.x * 8 + threadIdx.x / 8;
  const int32_t lane = threadIdx.x % 8;
  const int32_t i = row;
  float sum_lane = 0.0f;
  for (int32_t j0 = lane * 4; j0 < 64; j0 += 32) {
    const piper_piece<float, 4> contract_j_piece = piper_read<4>(contract + (i * 64 + j0));
    const piper_piece<float, 4> bias_j_piece = piper_read<4>(bias + (j0));
    piper_piece<float, 4> effect_piece;
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
#line 8 "examples/mlp/mlp.pipe"  // add
      const float contract_j = contract_j_piece.at[u];
      const float bias_j = bias_j_piece.at[u];
      const float add_j = contract_j + bias_j;
      effect_piece.at[u] = add_j;
#line 8 "examples/mlp/mlp.pipe"  // layer_norm
      sum_lane += add_j;
    }
    piper_write(add + (i * 64 + j0), effect_piece);
  }
  const float sum = piper_join_row<piper_sum, 8>(sum_lane, (float*)0);
  const float mean = sum * 0.015625f;
  float sum_square_lane = 0.0f;
  for (int32_t j0 = lane * 4; j0 < 64; j0 += 32) {
    const piper_piece<float, 4> add_j_2_piece = piper_read<4>(add + (i * 64 + j0));
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float add_j_2 = add_j_2_piece.at[u];
      const float centered = add_j_2 - mean;
      const float square = centered * centered;
      sum_square_lane += square;
    }
  }
  const float sum_square = piper_join_row<piper_sum, 8>(sum_square_lane, (float*)0);
  const float mean_square = sum_square * 0.015625f;
  const float variance = mean_square + 9.99999975e-06f;
  const float inverse_rms = piper_rsqrt(variance);
  for (int32_t j0 = lane * 4; j0 < 64; j0 += 32) {
    const piper_piece<float, 4> add_j_3_piece = piper_read<4>(add + (i * 64 + j0));
    piper_piece<float, 4> effect_j_piece;
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float add_j_3 = add_j_3_piece.at[u];
      const float centered_j = add_j_3 - mean;
      const float layer_norm_j = centered_j * inverse_rms;
      effect_j_piece.at[u] = layer_norm_j;
    }
    piper_write(layer_norm + (i * 64 + j0), effect_j_piece);
  }
}

// add, gelu: 8 rows of 128
// 1 block of 256: a thread per 4 elements
// layer.0.add, layer.0.gelu
extern "C" __global__ void __launch_bounds__(256) fused_add_gelu(const float* __restrict__ contract, const float* __restrict__ inner_bias, float* __restrict__ add, float* __restrict__ gelu) {
  const int32_t at = ((int32_t)blockIdx.x * 256 + threadIdx.x) * 4;
  if (at >= 1024) return;
  const int32_t j0 = at % 128;
  const int32_t i = at / 128;
  const piper_piece<float, 4> contract_j_piece = piper_read<4>(contract + (i * 128 + j0));
  const piper_piece<float, 4> inner_bias_j_piece = piper_read<4>(inner_bias + (j0));
  piper_piece<float, 4> effect_piece;
  piper_piece<float, 4> effect_j_piece;
#pragma unroll
  for (int32_t u = 0; u < 4; ++u) {
    const int32_t j = j0 + u;
#line 8 "examples/mlp/mlp.pipe"  // add
    const float contract_j = contract_j_piece.at[u];
    const float inner_bias_j = inner_bias_j_piece.at[u];
    const float add_j = contract_j + inner_bias_j;
    effect_piece.at[u] = add_j;
#line 8 "examples/mlp/mlp.pipe"  // gelu
    const float gelu_j = piper_gelu(add_j);
    effect_j_piece.at[u] = gelu_j;
  }
  piper_write(add + (i * 128 + j0), effect_piece);
  piper_write(gelu + (i * 128 + j0), effect_j_piece);
}

// add, add, layer_norm: 8 rows of 64 in 3 passes
// 1 block of 64: 8 lanes per row, 4 elements at once
// layer.0.add.1, layer.0.add.2, layer.1.layer_norm
extern "C" __global__ void __launch_bounds__(64) fused_add_layer_norm_2(const float* __restrict__ add, const float* __restrict__ contract, const float* __restrict__ bias, float* __restrict__ add_2, float* __restrict__ layer_norm) {
  const int32_t row = (int32_t)blockIdx.x * 8 + threadIdx.x / 8;
  const int32_t lane = threadIdx.x % 8;
  const int32_t i = row;
  float sum_lane = 0.0f;
  for (int32_t j0 = lane * 4; j0 < 64; j0 += 32) {
    const piper_piece<float, 4> add_j_piece = piper_read<4>(add + (i * 64 + j0));
    const piper_piece<float, 4> contract_j_piece = piper_read<4>(contract + (i * 64 + j0));
    const piper_piece<float, 4> bias_j_piece = piper_read<4>(bias + (j0));
    piper_piece<float, 4> effect_piece;
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
#line 8 "examples/mlp/mlp.pipe"  // add
      const float add_j = add_j_piece.at[u];
      const float contract_j = contract_j_piece.at[u];
      const float bias_j = bias_j_piece.at[u];
      const float add_j_2 = contract_j + bias_j;
      const float add_j_3 = add_j + add_j_2;
      effect_piece.at[u] = add_j_3;
#line 8 "examples/mlp/mlp.pipe"  // layer_norm
      sum_lane += add_j_3;
    }
    piper_write(add_2 + (i * 64 + j0), effect_piece);
  }
  const float sum = piper_join_row<piper_sum, 8>(sum_lane, (float*)0);
  const float mean = sum * 0.015625f;
  float sum_square_lane = 0.0f;
  for (int32_t j0 = lane * 4; j0 < 64; j0 += 32) {
    const piper_piece<float, 4> add_j_4_piece = piper_read<4>(add_2 + (i * 64 + j0));
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float add_j_4 = add_j_4_piece.at[u];
      const float centered = add_j_4 - mean;
      const float square = centered * centered;
      sum_square_lane += square;
    }
  }
  const float sum_square = piper_join_row<piper_sum, 8>(sum_square_lane, (float*)0);
  const float mean_square = sum_square * 0.015625f;
  const float variance = mean_square + 9.99999975e-06f;
  const float inverse_rms = piper_rsqrt(variance);
  for (int32_t j0 = lane * 4; j0 < 64; j0 += 32) {
    const piper_piece<float, 4> add_j_5_piece = piper_read<4>(add_2 + (i * 64 + j0));
    piper_piece<float, 4> effect_j_piece;
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float add_j_5 = add_j_5_piece.at[u];
      const float centered_j = add_j_5 - mean;
      const float layer_norm_j = centered_j * inverse_rms;
      effect_j_piece.at[u] = layer_norm_j;
    }
    piper_write(layer_norm + (i * 64 + j0), effect_j_piece);
  }
}

// add, add: 8 rows of 64
// 1 block of 128: a thread per 4 elements
// layer.1.add.1, layer.1.add.2
extern "C" __global__ void __launch_bounds__(128) fused_add(const float* __restrict__ add, const float* __restrict__ contract, const float* __restrict__ bias, float* __restrict__ add_2) {
  const int32_t at = ((int32_t)blockIdx.x * 128 + threadIdx.x) * 4;
  if (at >= 512) return;
  const int32_t j0 = at % 64;
  const int32_t i = at / 64;
  const piper_piece<float, 4> add_j_piece = piper_read<4>(add + (i * 64 + j0));
  const piper_piece<float, 4> contract_j_piece = piper_read<4>(contract + (i * 64 + j0));
  const piper_piece<float, 4> bias_j_piece = piper_read<4>(bias + (j0));
  piper_piece<float, 4> effect_piece;
#pragma unroll
  for (int32_t u = 0; u < 4; ++u) {
    const int32_t j = j0 + u;
#line 8 "examples/mlp/mlp.pipe"  // add
    const float add_j = add_j_piece.at[u];
    const float contract_j = contract_j_piece.at[u];
    const float bias_j = bias_j_piece.at[u];
    const float add_j_2 = contract_j + bias_j;
    const float add_j_3 = add_j + add_j_2;
    effect_piece.at[u] = add_j_3;
  }
  piper_write(add_2 + (i * 64 + j0), effect_piece);
}

// gelu_grad: 1 row of 1024
// 1 block of 256: a thread per 4 elements
// d.layer.1.add.gelu_grad
extern "C" __global__ void __launch_bounds__(256) fused_gelu_grad(const float* __restrict__ add, const float* __restrict__ d_gelu, float* __restrict__ d_add) {
  const int32_t at = ((int32_t)blockIdx.x * 256 + threadIdx.x) * 4;
  if (at >= 1024) return;
  const int32_t j0 = at;
  const piper_piece<float, 4> add_j_piece = piper_read<4>(add + (j0));
  const piper_piece<float, 4> d_gelu_j_piece = piper_read<4>(d_gelu + (j0));
  piper_piece<float, 4> effect_piece;
#pragma unroll
  for (int32_t u = 0; u < 4; ++u) {
    const int32_t j = j0 + u;
#line 8 "examples/mlp/mlp.pipe"  // gelu_grad
    const float add_j = add_j_piece.at[u];
    const float d_gelu_j = d_gelu_j_piece.at[u];
    const float d_add_j = piper_gelu_grad(add_j, d_gelu_j);
    effect_piece.at[u] = d_add_j;
  }
  piper_write(d_add + (j0), effect_piece);
}

// layer_norm_grad, add: 8 rows of 64 in 3 passes
// 1 block of 64: 8 lanes per row, 4 elements at once
// d.layer.0.add.2.layer_norm_grad, d.layer.0.add.2.add
extern "C" __global__ void __launch_bounds__(64) fused_layer_norm_grad_add(const float* __restrict__ d_layer_norm, const float* __restrict__ add, const float* __restrict__ d_add, float* __restrict__ d_add_2) {
  const int32_t row = (int32_t)blockIdx.x * 8 + threadIdx.x / 8;
  const int32_t lane = threadIdx.x % 8;
  const int32_t i = row;
  float sum_dy_lane = 0.0f;
  float sum_lane = 0.0f;
  for (int32_t j0 = lane * 4; j0 < 64; j0 += 32) {
    const piper_piece<float, 4> d_layer_norm_j_piece = piper_read<4>(d_layer_norm + (i * 64 + j0));
    const piper_piece<float, 4> add_j_piece = piper_read<4>(add + (i * 64 + j0));
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
#line 8 "examples/mlp/mlp.pipe"  // layer_norm_grad
      const float d_layer_norm_j = d_layer_norm_j_piece.at[u];
      sum_dy_lane += d_layer_norm_j;
      const float add_j = add_j_piece.at[u];
      sum_lane += add_j;
    }
  }
  const float sum_dy = piper_join_row<piper_sum, 8>(sum_dy_lane, (float*)0);
  const float sum = piper_join_row<piper_sum, 8>(sum_lane, (float*)0);
  const float mean_dy = sum_dy * 0.015625f;
  const float mean = sum * 0.015625f;
  float dot_lane = 0.0f;
  float sum_square_lane = 0.0f;
  for (int32_t j0 = lane * 4; j0 < 64; j0 += 32) {
    const piper_piece<float, 4> add_j_2_piece = piper_read<4>(add + (i * 64 + j0));
    const piper_piece<float, 4> d_layer_norm_j_2_piece = piper_read<4>(d_layer_norm + (i * 64 + j0));
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float add_j_2 = add_j_2_piece.at[u];
      const float centered = add_j_2 - mean;
      const float d_layer_norm_j_2 = d_layer_norm_j_2_piece.at[u];
      const float product = centered * d_layer_norm_j_2;
      dot_lane += product;
      const float square = centered * centered;
      sum_square_lane += square;
    }
  }
  const float dot = piper_join_row<piper_sum, 8>(dot_lane, (float*)0);
  const float sum_square = piper_join_row<piper_sum, 8>(sum_square_lane, (float*)0);
  const float mean_dot = dot * 0.015625f;
  const float mean_square = sum_square * 0.015625f;
  const float variance = mean_square + 9.99999975e-06f;
  const float inverse_rms = piper_rsqrt(variance);
  const float square_i = inverse_rms * inverse_rms;
  const float factor = mean_dot * square_i;
  for (int32_t j0 = lane * 4; j0 < 64; j0 += 32) {
    const piper_piece<float, 4> d_add_j_piece = piper_read<4>(d_add + (i * 64 + j0));
    const piper_piece<float, 4> d_layer_norm_j_3_piece = piper_read<4>(d_layer_norm + (i * 64 + j0));
    const piper_piece<float, 4> add_j_3_piece = piper_read<4>(add + (i * 64 + j0));
    piper_piece<float, 4> effect_piece;
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
#line 8 "examples/mlp/mlp.pipe"  // add
      const float d_add_j = d_add_j_piece.at[u];
#line 8 "examples/mlp/mlp.pipe"  // layer_norm_grad
      const float d_layer_norm_j_3 = d_layer_norm_j_3_piece.at[u];
      const float centered_dy = d_layer_norm_j_3 - mean_dy;
      const float add_j_3 = add_j_3_piece.at[u];
      const float centered_j = add_j_3 - mean;
      const float along = centered_j * factor;
      const float rest = centered_dy - along;
      const float d_add_j_2 = rest * inverse_rms;
#line 8 "examples/mlp/mlp.pipe"  // add
      const float d_add_j_3 = d_add_j + d_add_j_2;
      effect_piece.at[u] = d_add_j_3;
    }
    piper_write(d_add_2 + (i * 64 + j0), effect_piece);
  }
}

// layer_norm_grad: 8 rows of 64 in 3 passes
// 1 block of 64: 8 lanes per row, 4 elements at once
// d.stem.0.add.layer_norm_grad
extern "C" __global__ void __launch_bounds__(64) fused_layer_norm_grad(const float* __restrict__ d_layer_norm, const float* __restrict__ add, float* __restrict__ d_add) {
  const int32_t row = (int32_t)blockIdx.x * 8 + threadIdx.x / 8;
  const int32_t lane = threadIdx.x % 8;
  const int32_t i = row;
  float sum_dy_lane = 0.0f;
  float sum_lane = 0.0f;
  for (int32_t j0 = lane * 4; j0 < 64; j0 += 32) {
    const piper_piece<float, 4> d_layer_norm_j_piece = piper_read<4>(d_layer_norm + (i * 64 + j0));
    const piper_piece<float, 4> add_j_piece = piper_read<4>(add + (i * 64 + j0));
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
#line 8 "examples/mlp/mlp.pipe"  // layer_norm_grad
      const float d_layer_norm_j = d_layer_norm_j_piece.at[u];
      sum_dy_lane += d_layer_norm_j;
      const float add_j = add_j_piece.at[u];
      sum_lane += add_j;
    }
  }
  const float sum_dy = piper_join_row<piper_sum, 8>(sum_dy_lane, (float*)0);
  const float sum = piper_join_row<piper_sum, 8>(sum_lane, (float*)0);
  const float mean_dy = sum_dy * 0.015625f;
  const float mean = sum * 0.015625f;
  float dot_lane = 0.0f;
  float sum_square_lane = 0.0f;
  for (int32_t j0 = lane * 4; j0 < 64; j0 += 32) {
    const piper_piece<float, 4> add_j_2_piece = piper_read<4>(add + (i * 64 + j0));
    const piper_piece<float, 4> d_layer_norm_j_2_piece = piper_read<4>(d_layer_norm + (i * 64 + j0));
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float add_j_2 = add_j_2_piece.at[u];
      const float centered = add_j_2 - mean;
      const float d_layer_norm_j_2 = d_layer_norm_j_2_piece.at[u];
      const float product = centered * d_layer_norm_j_2;
      dot_lane += product;
      const float square = centered * centered;
      sum_square_lane += square;
    }
  }
  const float dot = piper_join_row<piper_sum, 8>(dot_lane, (float*)0);
  const float sum_square = piper_join_row<piper_sum, 8>(sum_square_lane, (float*)0);
  const float mean_dot = dot * 0.015625f;
  const float mean_square = sum_square * 0.015625f;
  const float variance = mean_square + 9.99999975e-06f;
  const float inverse_rms = piper_rsqrt(variance);
  const float square_i = inverse_rms * inverse_rms;
  const float factor = mean_dot * square_i;
  for (int32_t j0 = lane * 4; j0 < 64; j0 += 32) {
    const piper_piece<float, 4> d_layer_norm_j_3_piece = piper_read<4>(d_layer_norm + (i * 64 + j0));
    const piper_piece<float, 4> add_j_3_piece = piper_read<4>(add + (i * 64 + j0));
    piper_piece<float, 4> effect_piece;
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float d_layer_norm_j_3 = d_layer_norm_j_3_piece.at[u];
      const float centered_dy = d_layer_norm_j_3 - mean_dy;
      const float add_j_3 = add_j_3_piece.at[u];
      const float centered_j = add_j_3 - mean;
      const float along = centered_j * factor;
      const float rest = centered_dy - along;
      const float d_add_j = rest * inverse_rms;
      effect_piece.at[u] = d_add_j;
    }
    piper_write(d_add + (i * 64 + j0), effect_piece);
  }
}

// sum (sum): 8 rows of 64
// 1 block of 64: a thread per sum
// d.layer.1.bias.sum
extern "C" __global__ void __launch_bounds__(64) fused_sum_sum(const float* __restrict__ d_add, float* __restrict__ d_bias, const uint32_t d_bias_adds) {
  const int32_t at = ((int32_t)blockIdx.x * 64 + threadIdx.x);
  if (at >= 64) return;
  const int32_t j = at;
  float effect = d_bias_adds ? d_bias[j] : 0.0f;
#pragma unroll 4
  for (int32_t i = 0; i < 8; ++i) {
#line 8 "examples/mlp/mlp.pipe"  // sum
    effect += d_add[i * 64 + j];
  }
  d_bias[j] = effect;
}

// sum (sum): 8 rows of 128
// 1 block of 128: a thread per sum
// d.layer.1.inner_bias.sum
extern "C" __global__ void __launch_bounds__(128) fused_sum_sum_2(const float* __restrict__ d_add, float* __restrict__ d_inner_bias, const uint32_t d_inner_bias_adds) {
  const int32_t at = ((int32_t)blockIdx.x * 128 + threadIdx.x);
  if (at >= 128) return;
  const int32_t j = at;
  float effect = d_inner_bias_adds ? d_inner_bias[j] : 0.0f;
#pragma unroll 4
  for (int32_t i = 0; i < 8; ++i) {
#line 8 "examples/mlp/mlp.pipe"  // sum
    effect += d_add[i * 128 + j];
  }
  d_inner_bias[j] = effect;
}

// sum, add: 1 row of 512
// 1 block of 128: a thread per 4 elements
// d.layer.0.bias.sum, d.stem.0.add.add
extern "C" __global__ void __launch_bounds__(128) fused_sum_add(const float* __restrict__ d_add, const float* __restrict__ d_add_2, float* __restrict__ d_add_3) {
  const int32_t at = ((int32_t)blockIdx.x * 128 + threadIdx.x) * 4;
  if (at >= 512) return;
  const int32_t j0 = at;
  const piper_piece<float, 4> d_add_j_piece = piper_read<4>(d_add + (j0));
  const piper_piece<float, 4> d_add_j_2_piece = piper_read<4>(d_add_2 + (j0));
  piper_piece<float, 4> effect_piece;
#pragma unroll
  for (int32_t u = 0; u < 4; ++u) {
    const int32_t j = j0 + u;
#line 8 "examples/mlp/mlp.pipe"  // sum
    const float d_add_j = d_add_j_piece.at[u];
#line 8 "examples/mlp/mlp.pipe"  // add
    const float d_add_j_2 = d_add_j_2_piece.at[u];
    const float d_add_j_3 = d_add_j + d_add_j_2;
    effect_piece.at[u] = d_add_j_3;
  }
  piper_write(d_add_3 + (j0), effect_piece);
}

// sum, sum (sum): 8 rows of 64
// 1 block of 64: a thread per sum
// d.layer.0.bias.sum, d.stem.0.bias.sum
extern "C" __global__ void __launch_bounds__(64) fused_sum_sum_3(const float* __restrict__ d_add, const float* __restrict__ d_add_2, float* __restrict__ d_bias, const uint32_t d_bias_adds, float* __restrict__ d_bias_2, const uint32_t d_bias_2_adds) {
  const int32_t at = ((int32_t)blockIdx.x * 64 + threadIdx.x);
  if (at >= 64) return;
  const int32_t j = at;
  float effect = d_bias_adds ? d_bias[j] : 0.0f;
  float effect_j = d_bias_2_adds ? d_bias_2[j] : 0.0f;
#pragma unroll 4
  for (int32_t i = 0; i < 8; ++i) {
#line 8 "examples/mlp/mlp.pipe"  // sum
    effect += d_add[i * 64 + j];
    effect_j += d_add_2[i * 64 + j];
  }
  d_bias[j] = effect;
  d_bias_2[j] = effect_j;
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

// cast, square, sum: 1 row of 64
// 1 block of 8: 8 lanes per row, 4 elements at once
// sum_squares.cast.1, sum_squares.square.1, square_1
extern "C" __global__ void __launch_bounds__(8) fused_cast_square_sum_2(const float* __restrict__ gradient_1, double* __restrict__ square_1) {
  const int32_t row = (int32_t)blockIdx.x * 1 + threadIdx.x / 8;
  const int32_t lane = threadIdx.x % 8;
  double square_1_i_lane = 0.0;
  for (int32_t j0 = lane * 4; j0 < 64; j0 += 32) {
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
  const double square_1_i = piper_join_row<piper_sum, 8>(square_1_i_lane, (double*)0);
  if (lane == 0) {
    square_1[0] = square_1_i;
  }
}

// cast, square, sum: 1 row of 8192
// 1 block of 1024: 1024 lanes per row, 4 elements at once
// sum_squares.cast.2, sum_squares.square.2, square_2
extern "C" __global__ void __launch_bounds__(1024) fused_cast_square_sum_3(const float* __restrict__ gradient_2, double* __restrict__ square_2) {
  __shared__ double square_2_i_partial[32];
  const int32_t row = blockIdx.x;
  const int32_t lane = threadIdx.x;
  double square_2_i_lane = 0.0;
  for (int32_t j0 = lane * 4; j0 < 8192; j0 += 4096) {
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
  const double square_2_i = piper_join_row<piper_sum, 1024>(square_2_i_lane, square_2_i_partial);
  if (lane == 0) {
    square_2[0] = square_2_i;
  }
}

// cast, square, sum: 1 row of 128
// 1 block of 16: 16 lanes per row, 4 elements at once
// sum_squares.cast.3, sum_squares.square.3, square_3
extern "C" __global__ void __launch_bounds__(16) fused_cast_square_sum_4(const float* __restrict__ gradient_3, double* __restrict__ square_3) {
  const int32_t row = (int32_t)blockIdx.x * 1 + threadIdx.x / 16;
  const int32_t lane = threadIdx.x % 16;
  double square_3_i_lane = 0.0;
  for (int32_t j0 = lane * 4; j0 < 128; j0 += 64) {
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
  const double square_3_i = piper_join_row<piper_sum, 16>(square_3_i_lane, (double*)0);
  if (lane == 0) {
    square_3[0] = square_3_i;
  }
}

// add, add, add, add, add, add, add, add, add, add, add, add, add, add, add, add, add, add, sqrt, offset, div, minimum: 1 row of 1
// 1 block of 32: a thread per element
// norm.add, norm.add.1, norm.add.2, norm.add.3, norm.add.4, norm.add.5, norm.add.6, norm.add.7, norm.add.8, norm.add.9, norm.add.10, norm.add.11, ...
extern "C" __global__ void __launch_bounds__(32) fused_add_sqrt_offset_div(const double* __restrict__ square_0, const double* __restrict__ square_1, const double* __restrict__ square_2, const double* __restrict__ square_3, const double* __restrict__ square_4, const double* __restrict__ square_5, const double* __restrict__ square_6, const double* __restrict__ square_7, const double* __restrict__ square_8, const double* __restrict__ square_9, const double* __restrict__ square_10, const double* __restrict__ square_11, const double* __restrict__ square_12, const double* __restrict__ square_13, const double* __restrict__ square_14, const double* __restrict__ square_15, const double* __restrict__ square_16, const double* __restrict__ square_17, const double* __restrict__ square_18, double* __restrict__ norm, double* __restrict__ factor) {
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
  const double square_4_i = square_4[0];
  const double add_i_3 = add_i_2 + square_4_i;
  const double square_5_i = square_5[0];
  const double add_i_4 = add_i_3 + square_5_i;
  const double square_6_i = square_6[0];
  const double add_i_5 = add_i_4 + square_6_i;
  const double square_7_i = square_7[0];
  const double add_i_6 = add_i_5 + square_7_i;
  const double square_8_i = square_8[0];
  const double add_i_7 = add_i_6 + square_8_i;
  const double square_9_i = square_9[0];
  const double add_i_8 = add_i_7 + square_9_i;
  const double square_10_i = square_10[0];
  const double add_i_9 = add_i_8 + square_10_i;
  const double square_11_i = square_11[0];
  const double add_i_10 = add_i_9 + square_11_i;
  const double square_12_i = square_12[0];
  const double add_i_11 = add_i_10 + square_12_i;
  const double square_13_i = square_13[0];
  const double add_i_12 = add_i_11 + square_13_i;
  const double square_14_i = square_14[0];
  const double add_i_13 = add_i_12 + square_14_i;
  const double square_15_i = square_15[0];
  const double add_i_14 = add_i_13 + square_15_i;
  const double square_16_i = square_16[0];
  const double add_i_15 = add_i_14 + square_16_i;
  const double square_17_i = square_17[0];
  const double add_i_16 = add_i_15 + square_17_i;
  const double square_18_i = square_18[0];
  const double add_i_17 = add_i_16 + square_18_i;
  const double norm_i = piper_sqrt(add_i_17);
  norm[0] = norm_i;
  const double offset = norm_i + 9.9999999999999995e-07;
  const double div = 1.0 / offset;
  const double factor_i = piper_min(1.0, div);
  factor[0] = factor_i;
}

// cast, mul, cast, scale, add, mul, sub: 1 row of 35264
// 35 blocks of 256: a thread per 4 elements
// update.cast, clipped, step, update.scale, updated.momentum, update.mul, updated.parameter
extern "C" __global__ void __launch_bounds__(256) fused_cast_mul_cast_scale(const double* __restrict__ factor, const double* __restrict__ learning_rate, float* __restrict__ momentum, const float* __restrict__ gradient, float* __restrict__ parameter) {
  const int32_t at = ((int32_t)blockIdx.x * 256 + threadIdx.x) * 4;
  if (at >= 35264) return;
  const int32_t j0 = at;
  const double factor_i = factor[0];
  const float cast = (float)factor_i;
  const double learning_rate_i = learning_rate[0];
  const float step = (float)learning_rate_i;
  const piper_piece<float, 4> momentum_j_piece = piper_read<4>(momentum + (j0));
  const piper_piece<float, 4> gradient_j_piece = piper_read<4>(gradient + (j0));
  piper_piece<float, 4> effect_piece;
  const piper_piece<float, 4> parameter_j_piece = piper_read<4>(parameter + (j0));
  piper_piece<float, 4> effect_j_piece;
#pragma unroll
  for (int32_t u = 0; u < 4; ++u) {
    const int32_t j = j0 + u;
    const float momentum_j = momentum_j_piece.at[u];
    const float scale = momentum_j * 0.899999976f;
    const float gradient_j = gradient_j_piece.at[u];
    const float clipped = gradient_j * cast;
    const float momentum_j_2 = scale + clipped;
    effect_piece.at[u] = momentum_j_2;
    const float parameter_j = parameter_j_piece.at[u];
    const float mul = momentum_j_2 * step;
    const float parameter_j_2 = parameter_j - mul;
    effect_j_piece.at[u] = parameter_j_2;
  }
  piper_write(momentum + (j0), effect_piece);
  piper_write(parameter + (j0), effect_j_piece);
}

// layer_norm: 8 rows of 64 in 3 passes
// 1 block of 64: 8 lanes per row, 4 elements at once
// layer.2.layer_norm
extern "C" __global__ void __launch_bounds__(64) fused_layer_norm(const float* __restrict__ add, float* __restrict__ layer_norm) {
  const int32_t row = (int32_t)blockIdx.x * 8 + threadIdx.x / 8;
  const int32_t lane = threadIdx.x % 8;
  const int32_t i = row;
  float sum_lane = 0.0f;
  for (int32_t j0 = lane * 4; j0 < 64; j0 += 32) {
    const piper_piece<float, 4> add_j_piece = piper_read<4>(add + (i * 64 + j0));
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
#line 8 "examples/mlp/mlp.pipe"  // layer_norm
      const float add_j = add_j_piece.at[u];
      sum_lane += add_j;
    }
  }
  const float sum = piper_join_row<piper_sum, 8>(sum_lane, (float*)0);
  const float mean = sum * 0.015625f;
  float sum_square_lane = 0.0f;
  for (int32_t j0 = lane * 4; j0 < 64; j0 += 32) {
    const piper_piece<float, 4> add_j_2_piece = piper_read<4>(add + (i * 64 + j0));
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float add_j_2 = add_j_2_piece.at[u];
      const float centered = add_j_2 - mean;
      const float square = centered * centered;
      sum_square_lane += square;
    }
  }
  const float sum_square = piper_join_row<piper_sum, 8>(sum_square_lane, (float*)0);
  const float mean_square = sum_square * 0.015625f;
  const float variance = mean_square + 9.99999975e-06f;
  const float inverse_rms = piper_rsqrt(variance);
  for (int32_t j0 = lane * 4; j0 < 64; j0 += 32) {
    const piper_piece<float, 4> add_j_3_piece = piper_read<4>(add + (i * 64 + j0));
    piper_piece<float, 4> effect_piece;
#pragma unroll
    for (int32_t u = 0; u < 4; ++u) {
      const int32_t j = j0 + u;
      const float add_j_3 = add_j_3_piece.at[u];
      const float centered_j = add_j_3 - mean;
      const float layer_norm_j = centered_j * inverse_rms;
      effect_piece.at[u] = layer_norm_j;
    }
    piper_write(layer_norm + (i * 64 + j0), effect_piece);
  }
}

// cross_entropy, sum: 8 rows of 10 in 2 passes
// 1 block of 16: 2 lanes per row, 2 elements at once
// cross_entropy, sum
extern "C" __global__ void __launch_bounds__(16) fused_cross_entropy_sum(const int64_t* __restrict__ label, const float* __restrict__ contract, double* __restrict__ cross_entropy) {
  const int32_t row = (int32_t)blockIdx.x * 8 + threadIdx.x / 2;
  const int32_t lane = threadIdx.x % 2;
  const int32_t i = row;
#line 8 "examples/mlp/mlp.pipe"  // cross_entropy
  const int64_t label_i = label[i];
  const float picked = contract[piper_within(label_i, 10) + i * 10];
  float largest_lane = -piper_infinity(0.0f);
  for (int32_t j0 = lane * 2; j0 < 10; j0 += 4) {
    const piper_piece<float, 2> contract_j_piece = piper_read<2>(contract + (i * 10 + j0));
#pragma unroll
    for (int32_t u = 0; u < 2; ++u) {
      const int32_t j = j0 + u;
      const float contract_j = contract_j_piece.at[u];
      largest_lane = piper_max(largest_lane, contract_j);
    }
  }
  const float largest = piper_join_row<piper_largest, 2>(largest_lane, (float*)0);
  float sum_exp_lane = 0.0f;
  for (int32_t j0 = lane * 2; j0 < 10; j0 += 4) {
    const piper_piece<float, 2> contract_j_2_piece = piper_read<2>(contract + (i * 10 + j0));
#pragma unroll
    for (int32_t u = 0; u < 2; ++u) {
      const int32_t j = j0 + u;
      const float contract_j_2 = contract_j_2_piece.at[u];
      const float shifted = contract_j_2 - largest;
      const float e = piper_exp(shifted);
      sum_exp_lane += e;
    }
  }
  const float sum_exp = piper_join_row<piper_sum, 2>(sum_exp_lane, (float*)0);
  const float log_sum = piper_log(sum_exp);
  const float log_sum_exp = largest + log_sum;
  const float cross_entropy_i = log_sum_exp - picked;
#line 8 "examples/mlp/mlp.pipe"  // sum
  const double cross_entropy_i_2 = (double)cross_entropy_i;
  if (lane == 0) {
    cross_entropy[i] = cross_entropy_i_2;
  }
}

// total: 8 rows of 10
// 1 block of 64: 8 lanes per row
extern "C" __global__ void __launch_bounds__(64) fused__total(const double* __restrict__ cross_entropy, double* __restrict__ sums) {
  const int32_t row = (int32_t)blockIdx.x * 8 + threadIdx.x / 8;
  const int32_t lane = threadIdx.x % 8;
  const int32_t i = row;
  const double cross_entropy_i = cross_entropy[i];
  double sum_lane = 0.0;
  for (int32_t j = lane; j < 10; j += 8) {
    sum_lane += cross_entropy_i;
  }
  const double sum = piper_join_row<piper_sum, 8>(sum_lane, (double*)0);
  if (lane == 0) {
    sums[i] = sum;
  }
}

// sum (join): 1 row of 8
// 1 block of 2: 2 lanes per row, 2 elements at once
// sum
extern "C" __global__ void __launch_bounds__(2) fused_sum_join(const double* __restrict__ sums, float* __restrict__ sum) {
  const int32_t row = (int32_t)blockIdx.x * 1 + threadIdx.x / 2;
  const int32_t lane = threadIdx.x % 2;
  double sum_i_lane = 0.0;
  for (int32_t j0 = lane * 2; j0 < 8; j0 += 4) {
    const piper_piece<double, 2> sums_j_piece = piper_read<2>(sums + (j0));
#pragma unroll
    for (int32_t u = 0; u < 2; ++u) {
      const int32_t j = j0 + u;
      const double sums_j = sums_j_piece.at[u];
#line 8 "examples/mlp/mlp.pipe"  // sum
      sum_i_lane += sums_j;
    }
  }
  const double sum_i = piper_join_row<piper_sum, 2>(sum_i_lane, (double*)0);
  const float sum_i_2 = (float)sum_i;
  if (lane == 0) {
    sum[0] = sum_i_2;
  }
}

// cross_entropy_grad: 8 rows of 10 in 3 passes
// 1 block of 16: 2 lanes per row, 2 elements at once
// d.classify.0.contract.cross_entropy_grad
extern "C" __global__ void __launch_bounds__(16) fused_cross_entropy_grad(const int64_t* __restrict__ label, const float* __restrict__ contract, float* __restrict__ d_contract) {
  const int32_t row = (int32_t)blockIdx.x * 8 + threadIdx.x / 2;
  const int32_t lane = threadIdx.x % 2;
  const int32_t i = row;
#line 8 "examples/mlp/mlp.pipe"  // cross_entropy_grad
  const int64_t label_i = label[i];
  float largest_lane = -piper_infinity(0.0f);
  for (int32_t j0 = lane * 2; j0 < 10; j0 += 4) {
    const piper_piece<float, 2> contract_j_piece = piper_read<2>(contract + (i * 10 + j0));
#pragma unroll
    for (int32_t u = 0; u < 2; ++u) {
      const int32_t j = j0 + u;
      const float contract_j = contract_j_piece.at[u];
      largest_lane = piper_max(largest_lane, contract_j);
    }
  }
  const float largest = piper_join_row<piper_largest, 2>(largest_lane, (float*)0);
  float sum_exp_lane = 0.0f;
  for (int32_t j0 = lane * 2; j0 < 10; j0 += 4) {
    const piper_piece<float, 2> contract_j_2_piece = piper_read<2>(contract + (i * 10 + j0));
#pragma unroll
    for (int32_t u = 0; u < 2; ++u) {
      const int32_t j = j0 + u;
      const float contract_j_2 = contract_j_2_piece.at[u];
      const float shifted = contract_j_2 - largest;
      const float e = piper_exp(shifted);
      sum_exp_lane += e;
    }
  }
  const float sum_exp = piper_join_row<piper_sum, 2>(sum_exp_lane, (float*)0);
  const float scale = 1.0f / sum_exp;
  for (int32_t j0 = lane * 2; j0 < 10; j0 += 4) {
    const piper_piece<float, 2> contract_j_3_piece = piper_read<2>(contract + (i * 10 + j0));
    piper_piece<float, 2> effect_piece;
#pragma unroll
    for (int32_t u = 0; u < 2; ++u) {
      const int32_t j = j0 + u;
      const float contract_j_3 = contract_j_3_piece.at[u];
      const float shifted_j = contract_j_3 - largest;
      const float e_j = piper_exp(shifted_j);
      const float probability = e_j * scale;
      const float one_hot = (int32_t)j == (int32_t)label_i ? 1.0f : 0.0f;
      const float difference = probability - one_hot;
      const float d_contract_j = difference * 0.015625f;
      effect_piece.at[u] = d_contract_j;
    }
    piper_write(d_contract + (i * 10 + j0), effect_piece);
  }
}

// cast, square, sum: 1 row of 640
// 1 block of 128: 128 lanes per row, 4 elements at once
// sum_squares.cast.8, sum_squares.square.8, square_8
extern "C" __global__ void __launch_bounds__(128) fused_cast_square_sum_5(const float* __restrict__ gradient_8, double* __restrict__ square_8) {
  __shared__ double square_8_i_partial[4];
  const int32_t row = blockIdx.x;
  const int32_t lane = threadIdx.x;
  double square_8_i_lane = 0.0;
  for (int32_t j0 = lane * 4; j0 < 640; j0 += 512) {
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
  const double square_8_i = piper_join_row<piper_sum, 128>(square_8_i_lane, square_8_i_partial);
  if (lane == 0) {
    square_8[0] = square_8_i;
  }
}

// cast, mul, cast, scale, add, mul, sub: 1 row of 33792
// 33 blocks of 256: a thread per 4 elements
// update.cast, clipped, step, update.scale, updated.momentum, update.mul, updated.parameter
extern "C" __global__ void __launch_bounds__(256) fused_cast_mul_cast_scale_2(const double* __restrict__ factor, const double* __restrict__ learning_rate, float* __restrict__ momentum, const float* __restrict__ gradient, float* __restrict__ parameter) {
  const int32_t at = ((int32_t)blockIdx.x * 256 + threadIdx.x) * 4;
  if (at >= 33792) return;
  const int32_t j0 = at;
  const double factor_i = factor[0];
  const float cast = (float)factor_i;
  const double learning_rate_i = learning_rate[0];
  const float step = (float)learning_rate_i;
  const piper_piece<float, 4> momentum_j_piece = piper_read<4>(momentum + (j0));
  const piper_piece<float, 4> gradient_j_piece = piper_read<4>(gradient + (j0));
  piper_piece<float, 4> effect_piece;
  const piper_piece<float, 4> parameter_j_piece = piper_read<4>(parameter + (j0));
  piper_piece<float, 4> effect_j_piece;
#pragma unroll
  for (int32_t u = 0; u < 4; ++u) {
    const int32_t j = j0 + u;
    const float momentum_j = momentum_j_piece.at[u];
    const float scale = momentum_j * 0.899999976f;
    const float gradient_j = gradient_j_piece.at[u];
    const float clipped = gradient_j * cast;
    const float momentum_j_2 = scale + clipped;
    effect_piece.at[u] = momentum_j_2;
    const float parameter_j = parameter_j_piece.at[u];
    const float mul = momentum_j_2 * step;
    const float parameter_j_2 = parameter_j - mul;
    effect_j_piece.at[u] = parameter_j_2;
  }
  piper_write(momentum + (j0), effect_piece);
  piper_write(parameter + (j0), effect_j_piece);
}
