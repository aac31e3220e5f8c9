#include "frontend/tools/product_view.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>

#include "backend/dtypes.h"
#include "runtime/device/product_choice.h"

namespace piper::tools {
namespace {

constexpr double kMaxOperations = 1e10;
constexpr double kMaxBytes = 1 << 30;
constexpr double kSeconds = 0.02;

double operations(const PiperGemm& call) {
  return 2 * static_cast<double>(call.batch) * static_cast<double>(call.m) *
         static_cast<double>(call.n) * static_cast<double>(call.k);
}

/// `nn`, `nt`, `tn`, `tt`: which of the two is stored transposed.
std::string form_of(const PiperGemm& call) {
  return std::string(call.transpose_a != 0 ? "t" : "n") + (call.transpose_b != 0 ? "t" : "n");
}
std::string dtype_of(const PiperGemm& call) {
  return std::string(tensor::dtype_name(backend::row_of(call.dtype).dtype));
}

/// `8 of 128 x 32 x 128 tn f32`: rows, columns, terms of each sum.
std::string shape_text(const PiperGemm& call) {
  const std::string batch = call.batch == 1 ? "" : std::to_string(call.batch) + " of ";
  return batch + std::to_string(call.m) + " x " + std::to_string(call.n) + " x " +
         std::to_string(call.k) + " " + form_of(call) + " " + dtype_of(call);
}

/// The rate for types of operands and sums.
template <typename T, typename Sum>
std::optional<double> rate_of(const PiperGemm& call, const runtime::LibraryCalls& library) {
  const double elements =
      static_cast<double>(call.batch) * (static_cast<double>(call.m) * static_cast<double>(call.k) +
                                         static_cast<double>(call.k) * static_cast<double>(call.n) +
                                         static_cast<double>(call.m) * static_cast<double>(call.n));
  if (operations(call) > kMaxOperations || elements * sizeof(Sum) > kMaxBytes) return std::nullopt;
  const auto matrix = [&](std::int64_t rows, std::int64_t columns) {
    return std::vector<T>(static_cast<std::size_t>(call.batch * rows * columns), T(1));
  };
  const std::vector<T> a = matrix(call.m, call.k), b = matrix(call.k, call.n);
  std::vector<Sum> c(static_cast<std::size_t>(call.batch * call.m * call.n));
  const PiperCallShape shape{.kind = PIPER_CALL_GEMM, .number = 0, .of = {.gemm = call}};
  const void* const in[] = {a.data(), b.data()};
  void* const out[] = {c.data()};
  const PiperCall request{.shape = &shape,
                          .in = in,
                          .out = out,
                          .workspace = nullptr,
                          .workspace_bytes = 0,
                          .end = PIPER_END_WRITES};
  runtime::LibraryReport report;
  const auto multiply = [&] { return library.call(&request, &report) == runtime::kLibraryDone; };
  if (!multiply()) return std::nullopt;  // the first one prepares the shape
  const auto start = std::chrono::steady_clock::now();
  double seconds = 0;
  int times = 0;
  while (seconds < kSeconds) {
    if (!multiply()) return std::nullopt;
    ++times;
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  return 1e-9 * operations(call) * times / seconds;
}

std::optional<double> rate(const PiperGemm& call, const runtime::LibraryCalls& library) {
  switch (static_cast<PiperDType>(call.dtype)) {
    case PIPER_F64: return rate_of<double, double>(call, library);
    case PIPER_F32: return rate_of<float, float>(call, library);
    case PIPER_BF16: return rate_of<piper_bf16, float>(call, library);
    case PIPER_I64: break;  // of integers there are no products
  }
  return std::nullopt;
}

}  // namespace

std::vector<ProductRow> products_of(const backend::ProgramSet& programs, runtime::Math math) {
  const runtime::Processor processor = runtime::this_processor();
  std::map<std::string, ProductRow> by_shape;
  for (const backend::KernelBody& body : programs.bodies) {
    for (const backend::KernelStep& step : body.steps) {
      const auto* const call = std::get_if<backend::LibraryCall>(&step);
      if (call == nullptr || call->shape.kind != PIPER_CALL_GEMM) continue;
      const PiperGemm& gemm = call->shape.of.gemm;
      ProductRow& row =
          by_shape.try_emplace(shape_text(gemm), ProductRow{.call = gemm, .gflops = {}})
              .first->second;
      row.library = math == runtime::Math::builtin
                        ? "builtin"
                        : runtime::name_of(runtime::choose_product(row.call, math, processor));
      ++row.places;
    }
  }
  std::vector<ProductRow> rows;
  for (const auto& [shape, row] : by_shape) rows.push_back(row);
  std::stable_sort(rows.begin(), rows.end(), [](const ProductRow& a, const ProductRow& b) {
    return operations(a.call) > operations(b.call);
  });
  return rows;
}

void measure(std::vector<ProductRow>& rows, const runtime::LibraryCalls& library) {
  library.begin_thread(1);
  for (ProductRow& row : rows) row.gflops = rate(row.call, library);
}

std::string product_table(const std::vector<ProductRow>& rows) {
  if (rows.empty()) return "";
  std::size_t width = std::string("product").size();
  for (const ProductRow& row : rows) width = std::max(width, shape_text(row.call).size());
  const int columns = static_cast<int>(width);
  char line[256];
  std::snprintf(line, sizeof line, "%-*s  %7s %13s  %-7s  %8s\n", columns, "product", "places",
                "Mflop", "library", "GFLOP/s");
  std::string text = line;
  for (const ProductRow& row : rows) {
    char measured[32] = "-";
    if (row.gflops) std::snprintf(measured, sizeof measured, "%.1f", *row.gflops);
    std::snprintf(line, sizeof line, "%-*s  %7d %13.3f  %-7s  %8s\n", columns,
                  shape_text(row.call).c_str(), row.places, 1e-6 * operations(row.call),
                  row.library, measured);
    text += line;
  }
  return text;
}

llvm::json::Array product_json(const std::vector<ProductRow>& rows) {
  llvm::json::Array products;
  for (const ProductRow& row : rows) {
    llvm::json::Object product{{"batch", row.call.batch},   {"m", row.call.m},
                               {"n", row.call.n},           {"k", row.call.k},
                               {"form", form_of(row.call)}, {"dtype", dtype_of(row.call)},
                               {"places", row.places},      {"library", row.library}};
    if (row.gflops) product["gflops"] = *row.gflops;
    products.push_back(std::move(product));
  }
  return products;
}

}  // namespace piper::tools
