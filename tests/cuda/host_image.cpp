// Objects that HostDriver loads: kernels in CUDA C++, built with the host's compiler.

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <string>

#include "tests/cuda/host_driver.h"
#include "tests/support/process.h"

namespace piper::test {

namespace {

std::string build(const std::string& text, const std::string& name, const std::string& folder) {
  const std::string source = folder + "/" + name + ".cpp", object = folder + "/" + name + ".so";
  std::ofstream(source) << text;
  ProcessOptions options;
  options.limit = std::chrono::minutes(5);
  // A GPU faults where a piece of memory is read or written at once and does not lie at a multiple
  // of its size; so do these kernels.
  const auto built = run_process(
      {"/bin/sh", "-c",
       "g++ -std=c++20 -O1 -ffp-contract=off -fsanitize=alignment -fsanitize-undefined-trap-on-error -w -shared -fPIC -I. -o " +
           object + " " + source},
      options);
  EXPECT_EQ(built.exit_code, 0) << built.err.substr(0, 4000);
  return object;
}

std::string host_kernel(const std::string& name, bool meets) {
  return "HOST_KERNEL(" + name + ", " + (meets ? "1" : "0") + ")\n";
}

}  // namespace

std::string build_host_image(const backend::cuda::KernelSet& kernels, const std::string& folder) {
  std::string text = "#include \"tests/cuda/host_shim.h\"\n" + kernels.source() +
                     "\n#include \"tests/cuda/host_call.h\"\n";
  for (const auto& entry : kernels.list()) text += host_kernel(entry.name, entry.launch.meets);
  return build(text, "kernels", folder);
}

std::string build_own_host_image(const std::string& folder) {
  std::string text =
      "#include \"tests/cuda/host_shim.h\"\n#include \"backend/cuda/prelude.h\"\n#include \"runtime/kernel_math.h\"\n#include \"runtime/cuda/device_kernels.h\"\n"
      "#include \"tests/cuda/host_call.h\"\n";
  text += host_kernel("piper_advance", false) + host_kernel("piper_move", false) +
          host_kernel("piper_check", true) + host_kernel("piper_count", true);
  for (const std::string dtype : {"f64", "f32", "i64", "bf16"})
    text +=
        host_kernel("piper_initialise_" + dtype, false) + host_kernel("piper_sum_" + dtype, false);
  for (const std::string dtype : {"f64", "f32", "bf16"}) {
    for (const std::string kernel : {"piper_attend_", "piper_attend_dq_", "piper_attend_dkv_"})
      text += host_kernel(kernel + dtype, true);
  }
  return build(text, "own_kernels", folder);
}

}  // namespace piper::test
