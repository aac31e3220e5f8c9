#pragma once
// The matrix products of a plan, and how fast this machine is at each.
//
//   auto rows = products_of(programs, options.math);
//   measure(rows, library_calls);
//   out << product_table(rows);

#include <optional>
#include <string>
#include <vector>

#include "backend/device_program/device_program.h"
#include "llvm/Support/JSON.h"
#include "runtime/device/library_calls.h"
#include "runtime/options.h"

namespace piper::tools {

struct ProductRow {
  PiperGemm call;
  int places = 0;                // of the bodies with this product
  const char* library = "";      // the library used on this machine
  std::optional<double> gflops;  // 10^9 operations per second on one thread
};

/// The shapes of all bodies, the most work first.
std::vector<ProductRow> products_of(const backend::ProgramSet& programs, runtime::Math math);

/// Multiplies in each shape for some 20 ms. Products that take more than 10^10 operations or 1 GiB
/// stay without a rate.
void measure(std::vector<ProductRow>& rows, const runtime::LibraryCalls& library);

/// Empty without rows.
std::string product_table(const std::vector<ProductRow>& rows);
llvm::json::Array product_json(const std::vector<ProductRow>& rows);

}  // namespace piper::tools
