#pragma once
// The machine code of kernels, as nvdisasm of the pinned wheel prints it.
//
//   const auto code = disassemble(compiled.cubin, reason);   // code["fused_gelu"].wide_loads

#include <cstdint>
#include <map>
#include <string>

namespace piper::test {

/// Instructions of a kernel.
struct MachineCode {
  std::uint32_t loads = 0, stores = 0;            // of global memory
  std::uint32_t wide_loads = 0, wide_stores = 0;  // those of 16 bytes
  std::uint32_t local = 0;                        // accesses of memory of a thread
};

/// By the names of kernels; empty, with the reason, if there is no nvdisasm.
std::map<std::string, MachineCode> disassemble(const std::string& cubin, std::string& reason);

}  // namespace piper::test
