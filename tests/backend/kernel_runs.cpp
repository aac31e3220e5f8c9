#include "tests/backend/kernel_runs.h"

#include <dlfcn.h>

#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "backend/dtypes.h"
#include "backend/kernel/emit_bodies.h"
#include "backend/kernel/evaluate.h"
#include "runtime/kernel_math.h"
#include "tests/backend/device_bodies.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace piper::test {

using tensor::DType;
using tensor::ValueId;

namespace {

template <typename T, typename Sum = T>
void gemm(const PiperGemm& g, const void* pa, const void* pb, void* pc, bool accumulate) {
  const T* a = static_cast<const T*>(pa);
  const T* b = static_cast<const T*>(pb);
  Sum* c = static_cast<Sum*>(pc);
  for (std::int64_t s = 0; s < g.batch; ++s) {
    for (std::int64_t i = 0; i < g.m; ++i) {
      for (std::int64_t j = 0; j < g.n; ++j) {
        double sum = 0;
        for (std::int64_t k = 0; k < g.k; ++k) {
          const T x = g.transpose_a ? a[(s * g.k + k) * g.m + i] : a[(s * g.m + i) * g.k + k];
          const T y = g.transpose_b ? b[(s * g.n + j) * g.k + k] : b[(s * g.k + k) * g.n + j];
          sum += static_cast<double>(x) * static_cast<double>(y);
        }
        Sum& to = c[(s * g.m + i) * g.n + j];
        to = accumulate ? to + static_cast<Sum>(sum) : static_cast<Sum>(sum);
      }
    }
  }
}

/// Softmax weights of one query, recomputed wherever they are needed.
template <typename T>
std::vector<double> weights(const PiperAttend& a, const T* q, const T* k, std::int64_t b,
                            std::int64_t h, std::int64_t s, double* lse) {
  const std::int64_t g = h / (a.heads / a.kv_heads), keys = a.causal ? s + 1 : a.keys;
  std::vector<double> p(static_cast<std::size_t>(keys));
  double most = -INFINITY, sum = 0;
  for (std::int64_t t = 0; t < keys; ++t) {
    double dot = 0;
    for (std::int64_t w = 0; w < a.width; ++w) {
      dot += static_cast<double>(q[((b * a.seq + s) * a.heads + h) * a.width + w]) *
             static_cast<double>(k[((b * a.keys + t) * a.kv_heads + g) * a.width + w]);
    }
    p[static_cast<std::size_t>(t)] = dot * a.scale;
    most = std::max(most, dot * a.scale);
  }
  for (double& x : p) sum += x = std::exp(x - most);
  for (double& x : p) x /= sum;
  *lse = most + std::log(sum);
  return p;
}

template <typename T, typename Sum = T>
void attend(const PiperAttend& a, const void* pq, const void* pk, const void* pv, void* pout,
            void* plse) {
  const T *q = static_cast<const T*>(pq), *k = static_cast<const T*>(pk),
          *v = static_cast<const T*>(pv);
  T* out = static_cast<T*>(pout);
  Sum* lse = static_cast<Sum*>(plse);
  for (std::int64_t b = 0; b < a.batch; ++b) {
    for (std::int64_t h = 0; h < a.heads; ++h) {
      const std::int64_t g = h / (a.heads / a.kv_heads);
      for (std::int64_t s = 0; s < a.seq; ++s) {
        double log_sum = 0;
        const auto p = weights(a, q, k, b, h, s, &log_sum);
        lse[(b * a.heads + h) * a.seq + s] = static_cast<Sum>(log_sum);
        for (std::int64_t u = 0; u < a.value_width; ++u) {
          double sum = 0;
          for (std::size_t t = 0; t < p.size(); ++t)
            sum += p[t] * static_cast<double>(
                              v[((b * a.keys + static_cast<std::int64_t>(t)) * a.kv_heads + g) *
                                    a.value_width +
                                u]);
          out[((b * a.seq + s) * a.heads + h) * a.value_width + u] = static_cast<T>(sum);
        }
      }
    }
  }
}

template <typename T>
void attend_grad(const PiperAttend& a, const void* pq, const void* pk, const void* pv,
                 const void* pdout, void* pdq, void* pdk, void* pdv) {
  const T *q = static_cast<const T*>(pq), *k = static_cast<const T*>(pk),
          *v = static_cast<const T*>(pv), *dout = static_cast<const T*>(pdout);
  std::vector<double> dq(static_cast<std::size_t>(a.batch * a.seq * a.heads * a.width)),
      dk(static_cast<std::size_t>(a.batch * a.keys * a.kv_heads * a.width)),
      dv(static_cast<std::size_t>(a.batch * a.keys * a.kv_heads * a.value_width));
  for (std::int64_t b = 0; b < a.batch; ++b) {
    for (std::int64_t h = 0; h < a.heads; ++h) {
      const std::int64_t g = h / (a.heads / a.kv_heads);
      for (std::int64_t s = 0; s < a.seq; ++s) {
        double lse = 0;
        const auto p = weights(a, q, k, b, h, s, &lse);
        std::vector<double> dp(p.size());
        double dot = 0;
        for (std::size_t t = 0; t < p.size(); ++t) {
          for (std::int64_t u = 0; u < a.value_width; ++u) {
            const auto at = static_cast<std::size_t>(
                ((b * a.keys + static_cast<std::int64_t>(t)) * a.kv_heads + g) * a.value_width + u);
            const double d =
                static_cast<double>(dout[((b * a.seq + s) * a.heads + h) * a.value_width + u]);
            dp[t] += d * static_cast<double>(v[at]);
            dv[at] += d * p[t];
          }
          dot += dp[t] * p[t];
        }
        for (std::size_t t = 0; t < p.size(); ++t) {
          const double ds = p[t] * (dp[t] - dot) * a.scale;
          for (std::int64_t w = 0; w < a.width; ++w) {
            const auto at_q =
                static_cast<std::size_t>(((b * a.seq + s) * a.heads + h) * a.width + w);
            const auto at_k = static_cast<std::size_t>(
                ((b * a.keys + static_cast<std::int64_t>(t)) * a.kv_heads + g) * a.width + w);
            dq[at_q] += ds * static_cast<double>(k[at_k]);
            dk[at_k] += ds * static_cast<double>(q[at_q]);
          }
        }
      }
    }
  }
  for (std::size_t i = 0; i < dq.size(); ++i) static_cast<T*>(pdq)[i] = static_cast<T>(dq[i]);
  for (std::size_t i = 0; i < dk.size(); ++i) static_cast<T*>(pdk)[i] = static_cast<T>(dk[i]);
  for (std::size_t i = 0; i < dv.size(); ++i) static_cast<T*>(pdv)[i] = static_cast<T>(dv[i]);
}

void write(unsigned char* to, const Array& array) {
  for (std::size_t i = 0; i < array.data.size(); ++i) {
    switch (array.type.dtype) {
      case DType::f64: reinterpret_cast<double*>(to)[i] = array.data[i]; break;
      case DType::f32: reinterpret_cast<float*>(to)[i] = static_cast<float>(array.data[i]); break;
      case DType::i64:
        reinterpret_cast<std::int64_t*>(to)[i] = static_cast<std::int64_t>(array.data[i]);
        break;
      case DType::bf16:
        reinterpret_cast<piper_bf16*>(to)[i] = static_cast<float>(array.data[i]);
        break;
    }
  }
}

double number(const unsigned char* from, DType dtype, std::size_t i) {
  if (dtype == DType::f64) return reinterpret_cast<const double*>(from)[i];
  if (dtype == DType::f32) return reinterpret_cast<const float*>(from)[i];
  if (dtype == DType::bf16) return reinterpret_cast<const piper_bf16*>(from)[i];
  return static_cast<double>(reinterpret_cast<const std::int64_t*>(from)[i]);
}

/// The contents of gradient accumulators before a call.
double before(std::size_t i) { return 0.25 * static_cast<double>(i % 5) - 0.5; }

struct TestRank {
  explicit TestRank(unsigned char* arena) {
    rank.arena = arena;
    rank.seed = KernelRuns::kSeed;
    rank.global_step = KernelRuns::kStep;
    rank.intervals = &KernelRuns::kOwnSamples;
  }
  PiperRank rank{};
};

/// `Sum`: of the result of a product and of the sums of softmax.
template <typename T, typename Sum>
void library(const PiperCall& call) {
  const PiperCallShape& shape = *call.shape;
  const void* const* const in = call.in;
  void* const* const out = call.out;
  switch (static_cast<PiperCallKind>(shape.kind)) {
    case PIPER_CALL_GEMM:
      return gemm<T, Sum>(shape.of.gemm, in[0], in[1], out[0], call.end == PIPER_END_ADDS);
    case PIPER_CALL_ATTEND:
      return attend<T, Sum>(shape.of.attend, in[0], in[1], in[2], out[0], out[1]);
    case PIPER_CALL_ATTEND_GRAD:
      return attend_grad<T>(shape.of.attend, in[0], in[1], in[2], in[5], out[0], out[1], out[2]);
  }
}

}  // namespace

TestApi::TestApi() {
  api.abi_version = PIPER_ABI_VERSION;
  api.call = [](PiperRank*, std::uint32_t, const PiperCall* call) {
    const PiperCallShape& shape = *call->shape;
    const std::uint32_t dtype =
        shape.kind == PIPER_CALL_GEMM ? shape.of.gemm.dtype : shape.of.attend.dtype;
    switch (dtype) {
      case PIPER_F64: library<double, double>(*call); break;
      case PIPER_BF16: library<piper_bf16, float>(*call); break;
      default: library<float, float>(*call); break;
    }
    return 0;
  };
  api.fail = [](PiperRank*, std::uint32_t action, const PiperSourceLocation*, const char* message,
                std::int64_t value) {
    failures.push_back(std::to_string(action) + ": " + message + ": " + std::to_string(value));
    return 1;
  };
}

dag::Body make_body(tensor::Graph graph, const std::vector<ValueId>& outputs,
                    std::string_view name) {
  dag::Body body{graph.context().symbol(name), std::move(graph), {}, {}};
  for (std::size_t v = 0; v < body.graph.values().size(); ++v) {
    if (body.graph.values()[v].def.valid()) continue;
    dag::BodyPort port;
    port.value = ValueId::at(v);
    body.inputs.push_back(port);
  }
  for (ValueId value : outputs) {
    dag::BodyPort port;
    port.value = value;
    body.outputs.push_back(port);
  }
  return body;
}

void KernelRuns::add(std::string what, dag::Body body, std::vector<Array> inputs,
                     std::vector<std::uint8_t> accumulate, double tolerance,
                     const std::vector<int>& in_place, DropoutMask keeps) {
  Case c;
  c.what = std::move(what);
  c.body = std::make_unique<dag::Body>(std::move(body));
  c.body->name = c.body->graph.context().symbol("case" + std::to_string(cases_.size()) + ".F");
  c.inputs = std::move(inputs);
  c.accumulate = std::move(accumulate);
  c.accumulate.resize(c.body->outputs.size());
  c.tolerance = tolerance;
  c.in_place = in_place;
  c.keeps = std::move(keeps);
  c.kernels = backend::build_kernels(*c.body, target_, in_place);
  const auto place = [&](std::int64_t bytes) {
    c.offsets.push_back(c.arena_bytes);
    // At least one guard byte.
    c.arena_bytes += (static_cast<std::uint64_t>(bytes) + 127) / 64 * 64;
  };
  for (const auto& port : c.body->inputs) place(c.body->graph.type(port.value).bytes());
  for (std::size_t o = 0; o < c.body->outputs.size(); ++o) {
    if (o < in_place.size() && in_place[o] >= 0) {
      c.offsets.push_back(c.offsets[static_cast<std::size_t>(in_place[o])]);
    } else {
      place(c.body->graph.type(c.body->outputs[o].value).bytes());
    }
  }
  if (c.kernels.scratch_bytes > 0) place(c.kernels.scratch_bytes);
  cases_.push_back(std::move(c));
}

std::vector<unsigned char> KernelRuns::fresh_arena(const Case& c) const {
  // Unwritten numbers are visibly wrong.
  std::vector<unsigned char> arena(c.arena_bytes + 64, 0xA5);
  for (std::size_t i = 0; i < c.inputs.size(); ++i) write(arena.data() + c.offsets[i], c.inputs[i]);
  for (std::size_t o = 0; o < c.body->outputs.size(); ++o) {
    if (c.accumulate[o] == 0) continue;
    Array old{c.body->graph.type(c.body->outputs[o].value), {}};
    for (std::int64_t i = 0; i < old.type.elements(); ++i)
      old.data.push_back(before(static_cast<std::size_t>(i)));
    write(arena.data() + c.offsets[c.inputs.size() + o], old);
  }
  return arena;
}

std::vector<unsigned char> KernelRuns::evaluated(const Case& c) const {
  std::vector<unsigned char> arena = fresh_arena(c);
  evaluate(c, c.kernels, arena.data());
  return arena;
}

void KernelRuns::evaluate(const Case& c, const backend::KernelBody& kernels,
                          unsigned char* arena) const {
  const TestApi api;
  TestRank rank(arena);
  std::vector<void*> operands;
  for (std::uint64_t offset : c.offsets) operands.push_back(arena + offset);
  backend::BodyCall call;
  call.api = &api.api;
  call.rank = &rank.rank;
  call.action = 7;
  call.operands = operands;
  call.accumulate = c.accumulate;
  call.firsts = {&kFirstSample, 1};
  EXPECT_EQ(backend::evaluate(kernels, call), 0) << c.what;
}

void KernelRuns::compare_with_reference(const Case& c,
                                        const std::vector<unsigned char>& arena) const {
  Evaluator reference(c.body->graph, c.keeps);
  for (std::size_t i = 0; i < c.inputs.size(); ++i)
    reference.set(c.body->inputs[i].value, c.inputs[i]);
  reference.run();
  for (std::size_t o = 0; o < c.body->outputs.size(); ++o) {
    const Array& expected = reference.get(c.body->outputs[o].value);
    for (std::size_t i = 0; i < expected.data.size(); ++i) {
      const double should = expected.data[i] + (c.accumulate[o] != 0 ? before(i) : 0);
      const double found =
          number(arena.data() + c.offsets[c.inputs.size() + o], expected.type.dtype, i);
      const double difference = std::fabs(found - should);
      if (difference <= c.tolerance * std::max(1.0, std::fabs(should)) || found == should ||
          (std::isnan(found) && std::isnan(should)))
        continue;
      ADD_FAILURE() << c.what << ": output " << o << " element " << i << " is " << found
                    << ", the reference says " << should << "\n"
                    << backend::print(c.kernels);
      return;
    }
  }
}

std::string KernelRuns::text() const {
  backend::CppBodies bodies;
  std::string calls;
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    const Case& c = cases_[i];
    const std::string name = bodies.add(c.kernels);
    backend::BodyOperands operands;
    operands.offsets = c.offsets;
    operands.accumulate = c.accumulate;
    operands.intervals = {&kSamples, 1};
    calls += "extern \"C\" int run" + std::to_string(i) +
             "(const PiperApi* api, PiperRank* rank) {\n  static const " + name +
             "_at at = " + backend::CppBodies::operands(c.kernels, c.kernels, operands) +
             ";\n  return " + name + "(api, rank, 7, &at);\n}\n";
  }
  return "#include \"runtime/abi.h\"\n#include \"runtime/kernel_math.h\"\n" + bodies.text() + calls;
}

KernelRuns::Run KernelRuns::generated(void* library) const {
  return [=](std::size_t i, const Case& c, std::vector<unsigned char>& arena) {
    const TestApi api;
    TestRank rank(arena.data());
    auto* run = reinterpret_cast<int (*)(const PiperApi*, PiperRank*)>(
        dlsym(library, ("run" + std::to_string(i)).c_str()));
    ASSERT_NE(run, nullptr);
    EXPECT_EQ(run(&api.api, &rank.rank), 0) << c.what;
  };
}

void KernelRuns::compare_all(const Run& run) const {
  for (std::size_t i = 0; i < cases_.size(); ++i) {
    const Case& c = cases_[i];
    const auto expected = evaluated(c);
    if (c.tolerance > 0) compare_with_reference(c, expected);
    auto arena = fresh_arena(c);
    run(i, c, arena);
    // Everything but scratch: outputs equal, inputs and the bytes between untouched or equally
    // touched.
    const std::size_t compared = c.kernels.scratch_bytes > 0 ? c.offsets.back() : arena.size();
    if (std::memcmp(arena.data(), expected.data(), compared) == 0) continue;
    for (std::size_t o = 0; o < c.body->outputs.size(); ++o) {
      const tensor::Type& type = c.body->graph.type(c.body->outputs[o].value);
      for (std::int64_t e = 0; e < type.elements(); ++e) {
        const auto at = c.offsets[c.inputs.size() + o] +
                        static_cast<std::size_t>(e) * tensor::dtype_bytes(type.dtype);
        if (std::memcmp(arena.data() + at, expected.data() + at, tensor::dtype_bytes(type.dtype)) ==
            0)
          continue;
        ADD_FAILURE() << c.what << ": output " << o << " element " << e << " is "
                      << number(arena.data() + at, type.dtype, 0) << " in generated code, "
                      << number(expected.data() + at, type.dtype, 0) << " in the evaluator\n"
                      << backend::print(c.kernels);
        o = c.body->outputs.size() - 1;
        break;
      }
    }
    if (!testing::Test::HasFailure())
      ADD_FAILURE() << c.what << ": generated code and evaluator differ outside the outputs";
  }
}

void KernelRuns::check(const std::string& flags) {
  std::string reason;
  const std::unique_ptr<TestDevice> device = find_test_device(reason);
  if (!device) GTEST_SKIP() << reason;
  if (target_ == backend::Target::cpu && !device->is_host())
    GTEST_SKIP() << "a test of the CPU, which backend_test runs";
  if (target_ == backend::Target::cuda) {
    DeviceBodies bodies(*device);
    for (const Case& c : cases_) bodies.add(c.kernels);
    ASSERT_TRUE(bodies.load());
    compare_all([&](std::size_t i, const Case& c, std::vector<unsigned char>& arena) {
      const std::uint64_t draw[2] = {kSeed, kStep};
      DeviceBodies::Call call{c.offsets, c.inputs.size(), c.accumulate, draw, kFirstSample, {}};
      call.library = [&](std::uint32_t step, unsigned char* host) {
        backend::KernelBody alone = c.kernels;
        alone.steps = {c.kernels.steps[step]};
        evaluate(c, alone, host);
      };
      bodies.run(i, call, arena);
    });
    return;
  }
  const TemporaryFolder folder;
  const std::string source = folder.write("bodies.cpp", text()),
                    object = folder.path() / "bodies.so";
  ProcessOptions options;
  options.limit = std::chrono::minutes(5);
  const auto built =
      run_process({"/bin/sh", "-c",
                   std::string("g++ ") + backend::kKernelFlags + " " + flags +
                       " -Wall -Wextra -Werror -shared -fPIC -I. -o " + object + " " + source},
                  options);
  ASSERT_EQ(built.exit_code, 0) << built.err.substr(0, 4000);
  void* library = dlopen(object.c_str(), RTLD_NOW);
  ASSERT_NE(library, nullptr) << dlerror();
  compare_all(generated(library));
  dlclose(library);
}

DropoutMask keeps_as_kernels(const tensor::Type& type, double rate, std::string name) {
  return [=](Symbol, std::size_t i) {
    std::uint64_t element = 0, sample = 0, element_stride = 1, sample_stride = 1;
    for (std::size_t d = type.dims.size(); d-- > 0;) {
      const auto extent = static_cast<std::uint64_t>(type.dims[d].extent);
      auto& number = type.dims[d].sampled ? sample : element;
      auto& stride = type.dims[d].sampled ? sample_stride : element_stride;
      number += i % extent * stride;
      stride *= extent;
      i /= extent;
    }
    const std::uint64_t first = type.samples() == nullptr ? 0 : KernelRuns::kFirstSample;
    const auto key = piper_stream_key(KernelRuns::kSeed, PIPER_RANDOM_DROPOUT, KernelRuns::kStep,
                                      first + sample, piper_name_hash(name.data(), name.size()));
    return piper_dropout(1.0, rate, key, element) != 0;
  };
}

}  // namespace piper::test
