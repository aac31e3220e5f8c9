#include "frontend/tools/program_view.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>

#include "backend/device_program/device_program.h"
#include "runtime/device/product_choice.h"

namespace piper::tools {

namespace {

/// Millions of operations, rounded: what a product weighs beside others.
double mflop(const PiperGemm& call) { return 2e-6 * static_cast<double>(call.batch) * static_cast<double>(call.m) * static_cast<double>(call.n) * static_cast<double>(call.k); }

/// `8 of 128 x 32 x 128 tn f32`: rows, columns, terms of each sum; which of the two is stored transposed.
std::string shape_text(const PiperGemm& call) {
  std::string text = call.batch == 1 ? "" : std::to_string(call.batch) + " of ";
  text += std::to_string(call.m) + " x " + std::to_string(call.n) + " x " + std::to_string(call.k);
  return text + (call.transpose_a != 0 ? " t" : " n") + (call.transpose_b != 0 ? "t" : "n") + (call.dtype == PIPER_F64 ? " f64" : " f32");
}

}  // namespace

std::string program_text(const dag::Dag& dag) {
  const backend::ProgramSet programs = backend::make_programs(dag);
  std::string text;
  for (const backend::DeviceProgram& role : programs.roles) text += (text.empty() ? "" : "\n") + backend::print(role, programs.bodies);
  return text;
}

std::string kernel_table(const dag::Dag& dag) {
  const backend::ProgramSet programs = backend::make_programs(dag);
  std::size_t width = 4;
  for (const backend::KernelBody& body : programs.bodies) width = std::max(width, body.name.size());
  const auto row = [&](std::string name, const std::string& kernels, const std::string& calls, const std::string& bytes) {
    name.resize(width + 2, ' ');
    const auto right = [](const std::string& text, std::size_t columns) { return std::string(columns > text.size() ? columns - text.size() : 0, ' ') + text; };
    return name + right(kernels, 8) + right(calls, 15) + right(bytes, 15) + "\n";
  };
  std::string text = row("body", "kernels", "library calls", "bytes moved");
  for (const backend::KernelBody& body : programs.bodies) {
    const backend::KernelStats stats = backend::kernel_stats(body);
    text += row(body.name, std::to_string(stats.kernels), std::to_string(stats.library_calls), std::to_string(stats.bytes));
  }
  return text;
}

std::string product_table(const dag::Dag& dag, runtime::Math math) {
  struct Product {
    PiperGemm call;
    std::string shape;
    int places = 0;
  };
  std::map<std::string, Product> by_shape;
  for (const backend::KernelBody& body : backend::make_programs(dag).bodies) {
    for (const backend::KernelStep& step : body.steps) {
      const auto* const call = std::get_if<backend::LibraryCall>(&step);
      if (call == nullptr || call->kind != PIPER_CALL_GEMM) continue;
      const std::string shape = shape_text(call->gemm);
      Product& product = by_shape.try_emplace(shape, Product{call->gemm, shape}).first->second;
      ++product.places;
    }
  }
  if (by_shape.empty()) return "";
  std::vector<Product> products;
  std::size_t width = std::string("product").size();
  for (auto& [shape, product] : by_shape) {
    width = std::max(width, shape.size());
    products.push_back(product);
  }
  std::stable_sort(products.begin(), products.end(), [](const Product& a, const Product& b) { return mflop(a.call) > mflop(b.call); });
  const runtime::Processor processor = runtime::this_processor();
  const int columns = static_cast<int>(width);
  char line[256];
  std::snprintf(line, sizeof line, "%-*s  %7s %13s  %s\n", columns, "product", "places", "Mflop", "library");
  std::string text = line;
  for (const Product& product : products) {
    const char* const library = math == runtime::Math::builtin ? "builtin" : runtime::name_of(runtime::choose_product(product.call, math, processor));
    std::snprintf(line, sizeof line, "%-*s  %7d %13.3f  %s\n", columns, product.shape.c_str(), product.places, mflop(product.call), library);
    text += line;
  }
  return text;
}

}  // namespace piper::tools
