#pragma once
// Arithmetic of kernels: branch-free elementary functions for float and double; at its end it
// includes the random numbers (kernel_random.h).
//
// Guarantees: the same bits from every compiler that keeps IEEE arithmetic and does not contract
// multiply and add (g++ -ffp-contract=off, NVRTC --fmad=false), scalar or vectorised; NaN goes
// through, infinities and subnormals behave as in C's <math.h>. Errors: double about 2 ulp, float
// about 2 ulp (erf of float: 4e-7 absolute; sin and cos are NaN beyond |x| = 2^27); those of
// `piper_bf16_` stand at their section. No other includes; loops over these functions vectorise.
//
//   for (int i = 0; i < n; ++i) y[i] = piper_exp(x[i]);

#ifdef __CUDACC__
#define PIPER_MATH [[maybe_unused]] __device__ static __forceinline__
#define PIPER_MEMBER __device__ __forceinline__
#else
#define PIPER_MATH [[maybe_unused]] static inline __attribute__((always_inline))
#define PIPER_MEMBER [[gnu::always_inline]] inline
#endif

typedef unsigned int piper_u32;
typedef unsigned long long piper_u64;

#ifdef __CUDACC__
PIPER_MATH piper_u32 piper_bits(float x) { return __float_as_uint(x); }
PIPER_MATH piper_u64 piper_bits(double x) { return (piper_u64)__double_as_longlong(x); }
PIPER_MATH float piper_from_bits(piper_u32 bits) { return __uint_as_float(bits); }
PIPER_MATH double piper_from_bits(piper_u64 bits) { return __longlong_as_double((long long)bits); }
PIPER_MATH float piper_sqrt(float x) { return __fsqrt_rn(x); }
PIPER_MATH double piper_sqrt(double x) { return __dsqrt_rn(x); }
#else
PIPER_MATH piper_u32 piper_bits(float x) { return __builtin_bit_cast(piper_u32, x); }
PIPER_MATH piper_u64 piper_bits(double x) { return __builtin_bit_cast(piper_u64, x); }
PIPER_MATH float piper_from_bits(piper_u32 bits) { return __builtin_bit_cast(float, bits); }
PIPER_MATH double piper_from_bits(piper_u64 bits) { return __builtin_bit_cast(double, bits); }
PIPER_MATH float piper_sqrt(float x) { return __builtin_sqrtf(x); }
PIPER_MATH double piper_sqrt(double x) { return __builtin_sqrt(x); }
#endif

PIPER_MATH float piper_infinity(float) { return piper_from_bits(0x7f800000u); }
PIPER_MATH double piper_infinity(double) { return piper_from_bits(0x7ff0000000000000ull); }
PIPER_MATH float piper_abs(float x) { return piper_from_bits(piper_bits(x) & 0x7fffffffu); }
PIPER_MATH double piper_abs(double x) {
  return piper_from_bits(piper_bits(x) & 0x7fffffffffffffffull);
}
// The piece that holds `position`: the first of `pieces` ascending ends above it, else the last.
template <class Index>
PIPER_MATH int piper_bisect(const Index* ends, int pieces, Index position) {
  int first = 0, last = pieces - 1;
  while (first < last) {
    const int middle = (first + last) / 2;
    if (position < ends[middle]) last = middle;
    else first = middle + 1;
  }
  return first;
}
// |x| with the sign of `sign`.
PIPER_MATH float piper_copysign(float x, float sign) {
  return piper_from_bits((piper_bits(x) & 0x7fffffffu) | (piper_bits(sign) & 0x80000000u));
}
PIPER_MATH double piper_copysign(double x, double sign) {
  return piper_from_bits((piper_bits(x) & 0x7fffffffffffffffull) |
                         (piper_bits(sign) & 0x8000000000000000ull));
}

// ---- bf16: the upper 16 bits of a float; rounded to the nearest, ties to even; every NaN becomes
// the same one ----

PIPER_MATH piper_u32 piper_bf16_bits(float x) {
#if defined(__CUDACC__) && __CUDA_ARCH__ >= 800
  unsigned short rounded;  // one instruction for two numbers
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(rounded) : "f"(x));
  return rounded;
#else
  const piper_u32 bits = piper_bits(x);
  const piper_u32 rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  return (bits & 0x7fffffffu) > 0x7f800000u ? 0x7fffu : rounded >> 16;
#endif
}
// The nearest bf16 number.
PIPER_MATH float piper_round_bf16(float x) { return piper_from_bits(piper_bf16_bits(x) << 16); }

// One bf16 number in memory. Arithmetic is that of float.
struct piper_bf16 {
  unsigned short bits;
  piper_bf16() = default;
  PIPER_MEMBER piper_bf16(float x) : bits((unsigned short)piper_bf16_bits(x)) {}
  PIPER_MEMBER operator float() const { return piper_from_bits((piper_u32)bits << 16); }
};

template <class T> PIPER_MATH T piper_max(T a, T b) { return a >= b ? a : b; }
template <class T> PIPER_MATH T piper_min(T a, T b) { return a <= b ? a : b; }
template <class T> PIPER_MATH T piper_rsqrt(T x) { return T(1) / piper_sqrt(x); }

// ---- exp: x = n ln 2 + r, |r| <= ln 2 / 2; 2^n in two factors so that subnormal and infinite
// results come out ----

PIPER_MATH double piper_exp(double x) {
  x = x < -750.0 ? -750.0 : x;
  x = x > 710.0 ? 710.0 : x;
  const double magic = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
  const double shifted = x * 1.44269504088896338700 + magic;
  const double n = shifted - magic;
  const double r = (x - n * 6.93147180369123816490e-01) - n * 1.90821492927058770002e-10;
  double p = 1.6059043836821613e-10;
  p = p * r + 2.0876756987868099e-09;
  p = p * r + 2.5052108385441719e-08;
  p = p * r + 2.7557319223985891e-07;
  p = p * r + 2.7557319223985893e-06;
  p = p * r + 2.4801587301587302e-05;
  p = p * r + 1.9841269841269841e-04;
  p = p * r + 1.3888888888888889e-03;
  p = p * r + 8.3333333333333332e-03;
  p = p * r + 4.1666666666666664e-02;
  p = p * r + 1.6666666666666666e-01;
  p = p * r + 0.5;
  p = (p * (r * r) + r) + 1.0;
  const piper_u64 m = (piper_bits(shifted) - piper_bits(magic)) + 2100u;  // n + 2100 > 0
  const piper_u64 half = m >> 1;
  return p * piper_from_bits((half - 27u) << 52) * piper_from_bits((m - half - 27u) << 52);
}

PIPER_MATH float piper_exp(float x) {
  x = x < -106.0f ? -106.0f : x;
  x = x > 89.0f ? 89.0f : x;
  const float magic = 12582912.0f;  // 1.5 * 2^23
  const float shifted = x * 1.44269504088896341f + magic;
  const float n = shifted - magic;
  const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * (r * r) + r) + 1.0f;
  const piper_u32 m = (piper_bits(shifted) - piper_bits(magic)) + 300u;
  const piper_u32 half = m >> 1;
  return p * piper_from_bits((half - 23u) << 23) * piper_from_bits((m - half - 23u) << 23);
}

// ---- log: x = 2^k (1 + f), sqrt(1/2) < 1 + f < sqrt(2); log(1 + f) by s = f / (2 + f) (the method
// of FreeBSD's msun) ----

PIPER_MATH double piper_log(double x) {
  const bool subnormal = x < 2.2250738585072014e-308;
  const double y = subnormal ? x * 18014398509481984.0 : x;
  const piper_u64 bits = piper_bits(y);
  const piper_u64 shifted = bits - 0x3fe6a09e00000000ull;
  const piper_u64 exponent =
      ((shifted + 0x8000000000000000ull) >> 52) - 0x800u;  // arithmetic shift
  const double magic = 6755399441055744.0;
  const double k =
      (piper_from_bits(exponent + piper_bits(magic)) - magic) - (subnormal ? 54.0 : 0.0);
  const double f = piper_from_bits(bits - (exponent << 52)) - 1.0;
  const double half_square = 0.5 * f * f;
  const double s = f / (2.0 + f);
  const double z = s * s;
  double p = 1.479819860511658591e-01;
  p = p * z + 1.531383769920937332e-01;
  p = p * z + 1.818357216161805012e-01;
  p = p * z + 2.222219843214978396e-01;
  p = p * z + 2.857142874366239149e-01;
  p = p * z + 3.999999999940941908e-01;
  p = p * z + 6.666666666666735130e-01;
  const double result =
      k * 6.93147180369123816490e-01 -
      ((half_square - (s * (half_square + p * z) + k * 1.90821492927058770002e-10)) - f);
  const double infinity = piper_infinity(x);
  const double outside = x == 0.0 ? -infinity : (x == infinity ? infinity : x - x);  // NaN for NaN
  const double negative = x < 0.0 ? piper_from_bits(0x7ff8000000000000ull) : outside;
  return (x > 0.0) & (x < infinity) ? result : negative;
}

PIPER_MATH float piper_log(float x) {
  const bool subnormal = x < 1.17549435e-38f;
  const float y = subnormal ? x * 33554432.0f : x;
  const piper_u32 bits = piper_bits(y);
  const piper_u32 shifted = bits - 0x3f3504f3u;
  const int exponent = (int)shifted >> 23;
  const float k = (float)exponent - (subnormal ? 25.0f : 0.0f);
  const float f = piper_from_bits(bits - ((piper_u32)exponent << 23)) - 1.0f;
  const float half_square = 0.5f * f * f;
  const float s = f / (2.0f + f);
  const float z = s * s;
  float p = 0.24279078841f;
  p = p * z + 0.28498786688f;
  p = p * z + 0.40000972152f;
  p = p * z + 0.66666662693f;
  const float result = k * 6.9313812256e-01f -
                       ((half_square - (s * (half_square + p * z) + k * 9.0580006145e-06f)) - f);
  const float infinity = piper_infinity(x);
  const float outside = x == 0.0f ? -infinity : (x == infinity ? infinity : x - x);
  const float negative = x < 0.0f ? piper_from_bits(0x7fc00000u) : outside;
  return (x > 0.0f) & (x < infinity) ? result : negative;
}

// log(1 + x) for x >= 0: the quotient corrects the rounding of 1 + x.
template <class T> PIPER_MATH T piper_log1p(T x) {
  const T sum = T(1) + x;
  const T rounded = sum - T(1);
  const T result = piper_log(sum) * (x / (rounded == T(0) ? T(1) : rounded));
  return rounded == T(0) ? x : (sum == piper_infinity(x) ? sum : result);
}

// ---- sin, cos: x = n pi / 2 + r, |r| <= pi / 4; pi / 2 in parts whose products with n are exact
// up to n = 2^27 ------

// Returns r; the quarter is n mod 4. Beyond 2^27 the result is NaN, as for infinities, because the
// remainder of the angle is not computed.
PIPER_MATH double piper_quarter_turns(double x, piper_u64* quarter) {
  const double magic = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer
  const double shifted = x * 6.36619772367581382433e-01 + magic;
  const double n = shifted - magic;
  const double high = (x - n * 1.5707963109016418) - n * 1.5893254712295857e-08;
  const double r = (high - n * 6.123233932053594e-17) - n * 6.36831716351095e-25;
  *quarter = piper_bits(shifted) & 3u;
  return piper_abs(x) <= 134217728.0 ? r : piper_from_bits(0x7ff8000000000000ull);
}
// FreeBSD's polynomials for |r| <= pi / 4.
PIPER_MATH double piper_sin_of_quarter(double r) {
  const double z = r * r;
  double p = 1.58969099521155010221e-10;
  p = p * z + -2.50507602534068634195e-08;
  p = p * z + 2.75573137070700676789e-06;
  p = p * z + -1.98412698298579493134e-04;
  p = p * z + 8.33333333332248946124e-03;
  p = p * z + -1.66666666666666324348e-01;
  return r + r * z * p;
}
PIPER_MATH double piper_cos_of_quarter(double r) {
  const double z = r * r;
  double p = -1.13596475577881948265e-11;
  p = p * z + 2.08757232129817482790e-09;
  p = p * z + -2.75573143513906633035e-07;
  p = p * z + 2.48015872894767294178e-05;
  p = p * z + -1.38888888888741095749e-03;
  p = p * z + 4.16666666666666019037e-02;
  const double half = 0.5 * z;
  const double w = 1.0 - half;
  return w + (((1.0 - w) - half) + z * z * p);
}
PIPER_MATH double piper_sin(double x) {
  piper_u64 quarter;
  const double r = piper_quarter_turns(x, &quarter);
  const double s = piper_sin_of_quarter(r), c = piper_cos_of_quarter(r);
  const double y = (quarter & 1u) != 0 ? c : s;
  return x == 0.0 ? x : ((quarter & 2u) != 0 ? -y : y);
}
PIPER_MATH double piper_cos(double x) {
  piper_u64 quarter;
  const double r = piper_quarter_turns(x, &quarter);
  const double s = piper_sin_of_quarter(r), c = piper_cos_of_quarter(r);
  const double y = (quarter & 1u) != 0 ? s : c;
  return ((quarter + 1u) & 2u) != 0 ? -y : y;
}
PIPER_MATH float piper_sin(float x) { return (float)piper_sin((double)x); }
PIPER_MATH float piper_cos(float x) { return (float)piper_cos((double)x); }

// ---- sigmoid, tanh, erf
// ----------------------------------------------------------------------------------------

template <class T> PIPER_MATH T piper_sigmoid(T x) { return T(1) / (T(1) + piper_exp(-x)); }
// log(1 + exp(x)) without overflow.
template <class T>
PIPER_MATH T piper_softplus(T x) {
  return (x > T(0) ? x : (x == x ? T(0) : x)) + piper_log1p(piper_exp(-piper_abs(x)));
}

PIPER_MATH double piper_tanh(double x) {
  const double z = x * x;
  const double p =
      (-9.64399179425052238628e-1 * z + -9.92877231001918586564e1) * z + -1.61468768441708447952e3;
  const double q = ((z + 1.12811678491632931402e2) * z + 2.23548839060100448583e3) * z +
                   4.84406305325125486048e3;
  const double near_zero = x + x * (z * (p / q));
  const double far = piper_copysign(1.0 - 2.0 / (piper_exp(2.0 * piper_abs(x)) + 1.0), x);
  return piper_copysign(piper_abs(x) > 0.625 ? far : near_zero, x);
}

PIPER_MATH float piper_tanh(float x) {
  const float z = x * x;
  float p = -5.70498872745e-3f;
  p = p * z + 2.06390887954e-2f;
  p = p * z + -5.37397155531e-2f;
  p = p * z + 1.33314422036e-1f;
  p = p * z + -3.33332819422e-1f;
  const float near_zero = (p * z) * x + x;
  const float far = piper_copysign(1.0f - 2.0f / (piper_exp(2.0f * piper_abs(x)) + 1.0f), x);
  return piper_copysign(piper_abs(x) > 0.625f ? far : near_zero, x);
}

// Rational approximations of Cephes: erf(x) = x T(x^2) / U(x^2) below 1, 1 - exp(-x^2) P(x) / Q(x)
// above.
PIPER_MATH double piper_erf(double x) {
  const double a = piper_abs(x);
  const double z = x * x;
  double t = 9.60497373987051638749e0;
  t = t * z + 9.00260197203842689217e1;
  t = t * z + 2.23200534594684319226e3;
  t = t * z + 7.00332514112805075473e3;
  t = t * z + 5.55923013010394962768e4;
  double u = z + 3.35617141647503099647e1;
  u = u * z + 5.21357949780152679795e2;
  u = u * z + 4.59432382970980127987e3;
  u = u * z + 2.26290000613890934246e4;
  u = u * z + 4.92673942608635921086e4;
  const double near_zero = x * (t / u);
  const double b = a > 6.5 ? 6.5 : a;  // beyond, erf rounds to 1
  double p = 2.46196981473530512524e-10;
  p = p * b + 5.64189564831068821977e-1;
  p = p * b + 7.46321056442269912687e0;
  p = p * b + 4.86371970985681366614e1;
  p = p * b + 1.96520832956077098242e2;
  p = p * b + 5.26445194995477358631e2;
  p = p * b + 9.34528527171957607540e2;
  p = p * b + 1.02755188689515710272e3;
  p = p * b + 5.57535335369399327526e2;
  double q = b + 1.32281951154744992508e1;
  q = q * b + 8.67072140885989742329e1;
  q = q * b + 3.54937778887819891062e2;
  q = q * b + 9.75708501743205489753e2;
  q = q * b + 1.82390916687909736289e3;
  q = q * b + 2.24633760818710981792e3;
  q = q * b + 1.65666309194161350182e3;
  q = q * b + 5.57535340817727675546e2;
  const double far = piper_copysign(1.0 - piper_exp(-(b * b)) * (p / q), x);
  return x != x ? x : (a > 1.0 ? far : near_zero);
}

// One rational function over the clamped argument.
PIPER_MATH float piper_erf(float x) {
  x = x < -4.0f ? -4.0f : x;
  x = x > 4.0f ? 4.0f : x;
  const float z = x * x;
  float p = -2.72614225801306e-10f;
  p = p * z + 2.77068142495902e-08f;
  p = p * z + -2.10102402082508e-06f;
  p = p * z + -5.69250639462346e-05f;
  p = p * z + -7.34990630326855e-04f;
  p = p * z + -2.95459980854025e-03f;
  p = p * z + -1.60960333262415e-02f;
  float q = -1.45660718464996e-05f;
  q = q * z + -2.13374055278905e-04f;
  q = q * z + -1.68282697438203e-03f;
  q = q * z + -7.37332916720468e-03f;
  q = q * z + -1.42647390514189e-02f;
  return x * (p / q);
}

// ---- activations and their adjoints
// ----------------------------------------------------------------------------

template <class T> PIPER_MATH T piper_relu(T x) { return x < T(0) ? T(0) : x; }
template <class T> PIPER_MATH T piper_relu_grad(T x, T dy) { return x > T(0) ? dy : T(0); }
template <class T>
PIPER_MATH T piper_gelu(T x) {
  return T(0.5) * x * (T(1) + piper_erf(x * T(0.70710678118654752440)));
}
template <class T> PIPER_MATH T piper_gelu_grad(T x, T dy) {
  const T cdf = T(0.5) * (T(1) + piper_erf(x * T(0.70710678118654752440)));
  const T density = T(0.39894228040143267794) * piper_exp(T(-0.5) * x * x);
  return dy * (cdf + x * density);
}
template <class T> PIPER_MATH T piper_silu(T x) { return x * piper_sigmoid(x); }
template <class T> PIPER_MATH T piper_silu_grad(T x, T dy) {
  const T s = piper_sigmoid(x);
  return dy * (s * (T(1) + x * (T(1) - s)));
}

// ---- shorter ones for operations on bf16
// ------------------------------------------------------------------------

// For 16-bit numbers the functions above would make a GPU wait for arithmetic instead of memory.
// The ones below are polynomials in fused multiply-adds, which IEEE defines, so the bits are the
// same on every processor here, too. Their relative errors are at most 2^-16 for results of at
// least 2^-100; the absolute errors of gelu and its adjoint also reach 1.5e-6 max(1, |x|) and 4e-6
// |dy|.

#ifdef __CUDACC__
PIPER_MATH float piper_fma(float a, float b, float c) { return __fmaf_rn(a, b, c); }
// NaN stays NaN.
PIPER_MATH float piper_clamp(float x, float low, float high) {
  float above, inside;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(above) : "f"(x), "f"(low));
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(inside) : "f"(above), "f"(high));
  return inside;
}
#else
PIPER_MATH float piper_fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
PIPER_MATH float piper_clamp(float x, float low, float high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}
#endif

// 2^n 2^r, |r| <= 1/2, as 2^(n - 1) times a polynomial for 2 2^r: n reaches 128, and below -125 the
// first factor is 0.
PIPER_MATH float piper_bf16_exp(float x) {
  x = piper_clamp(x, -87.5f, 89.0f);
  // 1.5 * 2^23 + 126: the last bits of the sum are the exponent of 2^(n - 1).
  const float magic = 12583038.0f;
  const float shifted = piper_fma(x, 1.44269504f, magic);
  const float r = piper_fma(x, 1.44269504f, magic - shifted);
  float p = 1.91656128e-2f;
  p = piper_fma(p, r, 1.11812852e-1f);
  p = piper_fma(p, r, 4.80481982e-1f);
  p = piper_fma(p, r, 1.38624835f);
  p = piper_fma(p, r, 2.0f);
  return p * piper_from_bits(piper_bits(shifted) << 23);
}

// Improves an estimate of 1 / d: its error e becomes e^3.
PIPER_MATH float piper_bf16_inverse(float d, float estimate) {
  const float e = piper_fma(-d, estimate, 1.0f);
  return piper_fma(estimate, piper_fma(e, e, e), estimate);
}
// 1 / d, 1 <= d <= 2
PIPER_MATH float piper_bf16_inverse(float d) {
  return piper_bf16_inverse(d, piper_fma(piper_fma(0.323231906f, d, -1.45454459f), d, 2.12121129f));
}

// 1 / (1 + exp(-|x|)) and its difference to 1, each without cancellation.
struct piper_bf16_shares {
  float high, low;
};
PIPER_MATH piper_bf16_shares piper_bf16_split(float x) {
  const float e = piper_bf16_exp(-piper_abs(x));
  const float high = piper_bf16_inverse(1.0f + e);
  return {high, e * high};
}
PIPER_MATH float piper_bf16_sigmoid(float x) {
  const piper_bf16_shares of = piper_bf16_split(x);
  return x < 0.0f ? of.low : of.high;
}
PIPER_MATH float piper_bf16_silu(float x) { return x * piper_bf16_sigmoid(x); }
PIPER_MATH float piper_bf16_silu_grad(float x, float dy) {
  const piper_bf16_shares of = piper_bf16_split(x);
  return dy * piper_fma(x, of.low * of.high, x < 0.0f ? of.low : of.high);
}

// log(1 + e) = e p(e)
PIPER_MATH float piper_bf16_softplus(float x) {
  const float e = piper_bf16_exp(-piper_abs(x));
  float p = -2.38692816e-2f;
  p = piper_fma(p, e, 1.01222962e-1f);
  p = piper_fma(p, e, -2.10049689e-1f);
  p = piper_fma(p, e, 3.25207263e-1f);
  p = piper_fma(p, e, -4.99361485e-1f);
  p = piper_fma(p, e, 9.99991596e-1f);
  return piper_fma(p, e, x > 0.0f ? x : 0.0f);
}

// Beyond 4 the result rounds to 1.
PIPER_MATH float piper_bf16_tanh(float x) {
  x = piper_clamp(x, -4.0f, 4.0f);
  const float z = x * x;
  const float p = piper_fma(piper_fma(7.70083071e-4f, z, 1.05319402e-1f), z, 9.99986474e-1f);
  const float q = piper_fma(piper_fma(1.37488550e-2f, z, 4.38551715e-1f), z, 1.0f);
  const float rough = piper_bf16_inverse(q, piper_from_bits(0x7ef311c3u - piper_bits(q)));
  return x * p * piper_fma(rough, piper_fma(-q, rough, 1.0f), rough);
}

// The normal distribution is 1/2 + x p(x^2) up to 5; beyond that the sum grows, and is clamped to
// [0, 1]. t is in [-1, 1].
PIPER_MATH float piper_bf16_gelu(float x) {
  const float t = piper_fma(x * x, 0.08f, -1.0f);
  float p = 0.000608722155f;
  p = piper_fma(p, t, -0.0016132663f);
  p = piper_fma(p, t, 0.0017228137f);
  p = piper_fma(p, t, -0.00268557202f);
  p = piper_fma(p, t, 0.00641049584f);
  p = piper_fma(p, t, -0.0111643421f);
  p = piper_fma(p, t, 0.0164021812f);
  p = piper_fma(p, t, -0.0232686512f);
  p = piper_fma(p, t, 0.0314421691f);
  p = piper_fma(p, t, -0.0404426083f);
  p = piper_fma(p, t, 0.0515205227f);
  p = piper_fma(p, t, -0.0702962801f);
  p = piper_fma(p, t, 0.141363785f);
  return x * (piper_clamp(x * p, -0.5f, 0.5f) + 0.5f);
}
// The slope, which is 0 or 1 from 5.2 on, has the same form.
PIPER_MATH float piper_bf16_gelu_grad(float x, float dy) {
  x = piper_clamp(x, -5.2f, 5.2f);
  const float t = piper_fma(x * x, 0.0739644989f, -1.0f);
  float p = -0.0106099127f;
  p = piper_fma(p, t, 0.0220912918f);
  p = piper_fma(p, t, -0.00764047913f);
  p = piper_fma(p, t, 0.00831448752f);
  p = piper_fma(p, t, -0.0495098196f);
  p = piper_fma(p, t, 0.0723359883f);
  p = piper_fma(p, t, -0.0688596964f);
  p = piper_fma(p, t, 0.074244529f);
  p = piper_fma(p, t, -0.0796793848f);
  p = piper_fma(p, t, 0.0730832741f);
  p = piper_fma(p, t, -0.063695915f);
  p = piper_fma(p, t, 0.0605373494f);
  p = piper_fma(p, t, -0.0708708689f);
  p = piper_fma(p, t, 0.136413008f);
  return dy * piper_fma(x, p, 0.5f);
}

// ---- joining the 16 partial results of a row: lane l with l + 8, then 4, 2, 1
// ---------------------------------------

template <class T> PIPER_MATH T piper_join_sum(const T* lanes) {
  T a[8], b[4];
  for (int l = 0; l < 8; ++l) a[l] = lanes[l] + lanes[l + 8];
  for (int l = 0; l < 4; ++l) b[l] = a[l] + a[l + 4];
  return (b[0] + b[2]) + (b[1] + b[3]);
}
template <class T> PIPER_MATH T piper_join_max(const T* lanes) {
  T a[8], b[4];
  for (int l = 0; l < 8; ++l) a[l] = piper_max(lanes[l], lanes[l + 8]);
  for (int l = 0; l < 4; ++l) b[l] = piper_max(a[l], a[l + 4]);
  return piper_max(piper_max(b[0], b[2]), piper_max(b[1], b[3]));
}

#include "runtime/kernel_random.h"
