#include "backend/cuda/nvrtc.h"

#include <cctype>
#include <cstdlib>
#include <sstream>
#include <string_view>

#include "backend/cuda/print_kernel.h"
#include "embedded/cuda_headers.h"
#include "runtime/shared_library.h"

namespace piper::backend::cuda {

struct Nvrtc::Functions {
#define NVRTC_FUNCTION(result, symbol, parameters) result(*symbol) parameters = nullptr;
#include "backend/cuda/nvrtc_functions.def"
#undef NVRTC_FUNCTION

  /// The name of a function that the library lacks, or null.
  const char* find(void* library) {
    runtime::LibraryFunctions of(library);
#define NVRTC_FUNCTION(result, symbol, parameters) of.get(symbol, #symbol);
#include "backend/cuda/nvrtc_functions.def"
#undef NVRTC_FUNCTION
    return of.missing();
  }
};

std::shared_ptr<const Nvrtc> Nvrtc::open(const Environment& environment, std::string& reason) {
  auto made = std::make_shared<Nvrtc>();
  auto functions = std::make_shared<Functions>();
  // NVRTC looks for its builtins by name alone, so they are opened here first.
  open_library(environment, "libnvrtc-builtins.so", {}, made->path_, reason);
  const auto fits = [&](void* library) { return functions->find(library); };
  if (open_library(environment, "libnvrtc.so", fits, made->path_, reason) == nullptr)
    return nullptr;
  functions->nvrtcVersion(&made->major_, &made->minor_);
  made->functions_ = std::move(functions);
  return made;
}

std::string headers_text() {
  std::string text;
  for (const embedded::File& header : embedded::cuda_headers())
    text += std::string(header.path) + "\n" + std::string(header.text);
  return text;
}

std::string runtime_kernels_source() {
  return "#include \"backend/cuda/prelude.h\"\n#include \"runtime/kernel_math.h\"\n#include \"runtime/cuda/device_kernels.h\"\n";
}

std::map<std::string, KernelResources> parse_resources(const std::string& log) {
  std::map<std::string, KernelResources> kernels;
  std::istringstream lines(log);
  std::string line, kernel;
  const auto number_before = [&](const char* words) -> std::uint32_t {
    const std::size_t end = line.find(words);
    if (end == std::string::npos || end == 0) return 0;
    std::size_t begin = end;
    while (begin > 0 && std::isdigit(static_cast<unsigned char>(line[begin - 1])) != 0) --begin;
    return static_cast<std::uint32_t>(
        std::strtoul(line.substr(begin, end - begin).c_str(), nullptr, 10));
  };
  while (std::getline(lines, line)) {
    constexpr std::string_view kEntry = "Compiling entry function '";
    if (const std::size_t at = line.find(kEntry); at != std::string::npos) {
      const std::size_t begin = at + kEntry.size();
      kernel = line.substr(begin, line.find('\'', begin) - begin);
      kernels[kernel] = {};
    }
    if (kernel.empty()) continue;
    KernelResources& of = kernels[kernel];
    if (line.find("bytes stack frame") != std::string::npos) {
      of.stack_bytes = number_before(" bytes stack frame");
      of.spill_bytes = number_before(" bytes spill stores");
    }
    if (line.find("Used ") != std::string::npos) {
      of.registers = number_before(" registers");
      of.shared_bytes = number_before(" bytes smem");
    }
  }
  return kernels;
}

Compiled Nvrtc::compile(const std::string& source, const std::string& architecture) const {
  const Functions& call = *functions_;
  Compiled made;
  std::vector<std::string> texts;
  std::vector<const char*> text_pointers, name_pointers;
  for (const embedded::File& header : embedded::cuda_headers()) texts.emplace_back(header.text);
  for (const std::string& text : texts) text_pointers.push_back(text.c_str());
  std::vector<std::string> names;
  for (const embedded::File& header : embedded::cuda_headers()) names.emplace_back(header.path);
  for (const std::string& name : names) name_pointers.push_back(name.c_str());
  void* program = nullptr;
  if (const int result = call.nvrtcCreateProgram(&program, source.c_str(), "kernels.cu",
                                                 static_cast<int>(names.size()),
                                                 text_pointers.data(), name_pointers.data());
      result != 0) {
    made.log = call.nvrtcGetErrorString(result);
    return made;
  }
  const std::string target = "--gpu-architecture=" + architecture;
  std::vector<const char*> options = {target.c_str(), "--ptxas-options=-v"};
  for (const char* flag : kFlags) options.push_back(flag);
  const int result =
      call.nvrtcCompileProgram(program, static_cast<int>(options.size()), options.data());
  std::size_t size = 0;
  if (call.nvrtcGetProgramLogSize(program, &size) == 0 && size > 1) {
    made.log.resize(size);
    call.nvrtcGetProgramLog(program, made.log.data());
    made.log.resize(size - 1);
  }
  if (result != 0) {
    made.log += std::string(made.log.empty() ? "" : "\n") + call.nvrtcGetErrorString(result);
  } else if (call.nvrtcGetCUBINSize(program, &size) == 0 && size > 0) {
    made.cubin.resize(size);
    made.ok = call.nvrtcGetCUBIN(program, made.cubin.data()) == 0;
    made.kernels = parse_resources(made.log);
  }
  call.nvrtcDestroyProgram(&program);
  return made;
}

}  // namespace piper::backend::cuda
