#pragma once
// Random numbers of kernels: Philox 4x32-10, a function of (seed, purpose, step, sample, name,
// element). kernel_math.h includes it at its end, and has the types and functions that it uses;
// its guarantees hold here too.
//
//   const piper_random_key key = piper_stream_key(seed, PIPER_RANDOM_DROPOUT, step, sample, name_hash);
//   y[i] = piper_dropout(x[i], 0.1, key, i);

enum { PIPER_RANDOM_INIT = 0, PIPER_RANDOM_DROPOUT = 1, PIPER_RANDOM_DATA = 2 };

typedef struct piper_philox {
  piper_u32 word[4];
} piper_philox;

typedef struct piper_random_key {
  piper_u32 low, high;
} piper_random_key;

PIPER_MATH piper_philox piper_philox_4x32(piper_u32 c0, piper_u32 c1, piper_u32 c2, piper_u32 c3,
                                          piper_random_key key) {
  for (int round = 0; round < 10; ++round) {
    const piper_u64 a = (piper_u64)0xD2511F53u * c0;
    const piper_u64 b = (piper_u64)0xCD9E8D57u * c2;
    c0 = (piper_u32)(b >> 32) ^ c1 ^ key.low;
    c2 = (piper_u32)(a >> 32) ^ c3 ^ key.high;
    c1 = (piper_u32)b;
    c3 = (piper_u32)a;
    key.low += 0x9E3779B9u;
    key.high += 0xBB67AE85u;
  }
  piper_philox result = {{c0, c1, c2, c3}};
  return result;
}

// FNV-1a, 64 bits.
PIPER_MATH piper_u64 piper_name_hash(const char* name, piper_u64 length) {
  piper_u64 hash = 0xcbf29ce484222325ull;
  for (piper_u64 i = 0; i < length; ++i) hash = (hash ^ (unsigned char)name[i]) * 0x100000001b3ull;
  return hash;
}

// The key of one stream of elements.
PIPER_MATH piper_random_key piper_stream_key(piper_u64 seed, piper_u32 purpose, piper_u64 step,
                                             piper_u64 sample, piper_u64 name_hash) {
  const piper_random_key root = {(piper_u32)seed, (piper_u32)(seed >> 32)};
  const piper_philox a = piper_philox_4x32((piper_u32)name_hash, (piper_u32)(name_hash >> 32),
                                           purpose, (piper_u32)(step >> 32), root);
  const piper_random_key middle = {a.word[0], a.word[1]};
  const piper_philox b =
      piper_philox_4x32((piper_u32)step, (piper_u32)sample, (piper_u32)(sample >> 32), 0u, middle);
  const piper_random_key key = {b.word[0], b.word[1]};
  return key;
}

// Four elements share a draw.
PIPER_MATH piper_u32 piper_random_u32(piper_random_key key, piper_u64 element) {
  const piper_philox four =
      piper_philox_4x32((piper_u32)(element >> 2), (piper_u32)(element >> 34), 0u, 0u, key);
  const piper_u32 low = (element & 1u) != 0 ? four.word[1] : four.word[0],
                  high = (element & 1u) != 0 ? four.word[3] : four.word[2];
  return (element & 2u) != 0 ? high : low;
}
// The random numbers of `count` neighbours; `count` and `first` are multiples of 4.
template <int count>
PIPER_MATH void piper_random_u32s(piper_random_key key, piper_u64 first, piper_u32* to) {
  for (int e = 0; e < count; e += 4) {
    const piper_u64 number = (first >> 2) + (piper_u64)(e / 4);
    const piper_philox four =
        piper_philox_4x32((piper_u32)number, (piper_u32)(number >> 32), 0u, 0u, key);
    for (int w = 0; w < 4; ++w) to[e + w] = four.word[w];
  }
}
PIPER_MATH piper_u64 piper_random_u64(piper_random_key key, piper_u64 element) {
  const piper_philox p =
      piper_philox_4x32((piper_u32)element, (piper_u32)(element >> 32), 0u, 0u, key);
  return (piper_u64)p.word[0] | ((piper_u64)p.word[1] << 32);
}
// [0, 1) with 53 bits.
PIPER_MATH double piper_random_uniform(piper_random_key key, piper_u64 element) {
  return (double)(piper_random_u64(key, element) >> 11) * 1.11022302462515654042e-16;
}
// Mean 0, variance 1 (Box and Muller), in double whatever the parameter's type, so that types agree
// up to rounding.
PIPER_MATH double piper_random_normal(piper_random_key key, piper_u64 element) {
  const piper_philox p =
      piper_philox_4x32((piper_u32)element, (piper_u32)(element >> 32), 0u, 0u, key);
  const piper_u64 first = (piper_u64)p.word[0] | ((piper_u64)p.word[1] << 32);
  const piper_u64 second = (piper_u64)p.word[2] | ((piper_u64)p.word[3] << 32);
  const double u = ((double)(first >> 11) + 1.0) * 1.11022302462515654042e-16;    // (0, 1]
  const double turn = (double)(second >> 11) * 1.11022302462515654042e-16 - 0.5;  // [-1/2, 1/2)
  // cos(2 pi turn) = sin(2 pi (1/4 - |turn|)), its argument in [-pi/2, pi/2]
  const double a = 6.28318530717958647693 * (0.25 - piper_abs(turn));
  const double z = a * a;
  double s = 8.2206352466243297e-18 - z * 1.9572941063391263e-20;
  s = 2.8114572543455206e-15 - z * s;
  s = 7.6471637318198164e-13 - z * s;
  s = 1.6059043836821613e-10 - z * s;
  s = 2.5052108385441720e-08 - z * s;
  s = 2.7557319223985893e-06 - z * s;
  s = 1.9841269841269841e-04 - z * s;
  s = 8.3333333333333332e-03 - z * s;
  s = 1.6666666666666666e-01 - z * s;
  const double sine = a - a * z * s;
  return piper_sqrt(-2.0 * piper_log(u)) * sine;
}

// The first value of an element of a parameter. `kind`: a PiperInitKind (runtime/abi.h).
PIPER_MATH double piper_first_value(piper_u32 kind, double scale, piper_random_key key,
                                    piper_u64 element) {
  switch (kind) {
    case 0: return scale * piper_random_normal(key, element);
    case 1: return scale * (2.0 * piper_random_uniform(key, element) - 1.0);
    case 3: return 1.0;
    case 4: return scale;
    default: return 0.0;
  }
}

// Dropout of one element: kept with probability 1 - rate and scaled by 1 / (1 - rate). `drawn`: its
// random number.
template <class T> PIPER_MATH T piper_kept(T x, double rate, piper_u32 drawn) {
  const double threshold = rate * 4294967296.0;
  return (double)drawn >= threshold ? x * T(1.0 / (1.0 - rate)) : T(0);
}
template <class T>
PIPER_MATH T piper_dropout(T x, double rate, piper_random_key key, piper_u64 element) {
  return piper_kept(x, rate, piper_random_u32(key, element));
}
