#include "backend/cuda/libraries.h"
#include "frontend/tools/commands.h"
#include "ir/byte_text.h"
#include "ir/diagnostics/counted.h"
#include "llvm/Support/JSON.h"

namespace piper::tools {

namespace {

using backend::cuda::Found;

std::string row(const Found& found) {
  std::string text = found.name;
  text.resize(20, ' ');
  if (found.path.empty()) return text + "not found: " + found.reason + "\n" + std::string(20, ' ') + found.install + "\n";
  return text + (found.version.empty() ? "" : found.version + "  ") + found.path + "\n";
}

llvm::json::Object json(const Found& found) {
  if (found.path.empty()) return llvm::json::Object{{"name", found.name}, {"found", false}, {"reason", found.reason}, {"install", found.install}};
  return llvm::json::Object{{"name", found.name}, {"found", true}, {"version", found.version}, {"path", found.path}};
}

}  // namespace

int run_doctor(Console& console, const Arguments& arguments) {
  const backend::cuda::Devices devices = backend::cuda::find_devices();
  const std::vector<Found> libraries = backend::cuda::find_libraries(console.environment);
  if (arguments.format == "json") {
    llvm::json::Array found, gpus;
    found.push_back(json(devices.driver));
    for (const Found& each : libraries) found.push_back(json(each));
    for (const backend::cuda::Gpu& gpu : devices.gpus) {
      gpus.push_back(llvm::json::Object{{"name", gpu.name}, {"capability", gpu.capability}, {"bytes", static_cast<std::int64_t>(gpu.bytes)}, {"peers", llvm::json::Array(gpu.peers)}});
    }
    std::string text;
    llvm::raw_string_ostream(text) << llvm::json::Value(llvm::json::Object{{"schema", 1}, {"libraries", std::move(found)}, {"gpus", std::move(gpus)}});
    console.out << text << "\n";
    return kClean;
  }
  console.out << row(devices.driver);
  for (std::size_t i = 0; i < devices.gpus.size(); ++i) {
    const backend::cuda::Gpu& gpu = devices.gpus[i];
    console.out << "  GPU " << i << "             " << gpu.name << ", " << gpu.capability << ", " << bytes_text(gpu.bytes);
    for (std::size_t p = 0; p < gpu.peers.size(); ++p) console.out << (p == 0 ? ", reaches GPU " : ", ") << gpu.peers[p];
    console.out << "\n";
  }
  for (const Found& each : libraries) console.out << row(each);
  return kClean;
}

}  // namespace piper::tools
