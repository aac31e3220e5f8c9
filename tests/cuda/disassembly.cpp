#include "tests/cuda/disassembly.h"

#include <filesystem>
#include <sstream>

#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace piper::test {

namespace {

/// The mnemonic of a line `/*0040*/  @!P0 LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;`, with its
/// modifiers; empty if the line is no instruction.
std::string mnemonic_of(const std::string& line) {
  const std::size_t begin = line.find("/*");
  if (begin == std::string::npos || line.find_first_not_of(" \t") != begin) return {};
  const std::size_t end = line.find("*/", begin);
  if (end == std::string::npos) return {};
  std::istringstream words(line.substr(end + 2));
  std::string word;
  words >> word;
  if (word.starts_with("@")) words >> word;
  return word;
}

void count(MachineCode& code, const std::string& mnemonic) {
  const bool wide = mnemonic.find(".128") != std::string::npos;
  if (mnemonic.starts_with("LDG")) {
    ++code.loads;
    code.wide_loads += wide;
  }
  if (mnemonic.starts_with("STG")) {
    ++code.stores;
    code.wide_stores += wide;
  }
  code.local += mnemonic.starts_with("LDL") || mnemonic.starts_with("STL");
}

}  // namespace

std::map<std::string, MachineCode> disassemble(const std::string& cubin, std::string& reason) {
  const std::string program = PIPER_TEST_WHEELS "/nvidia/cu13/bin/nvdisasm";
  if (!std::filesystem::exists(program)) {
    reason = "there is no `" + program + "`: the pinned wheel `nvidia-cuda-nvdisasm` has it";
    return {};
  }
  const TemporaryFolder folder;
  const ProcessResult ended = run_process({program, folder.write("kernels.cubin", cubin)});
  reason = ended.exit_code == 0 ? "" : "nvdisasm fails: " + ended.err.substr(0, 400);
  std::map<std::string, MachineCode> all;
  std::istringstream lines(ended.out);
  std::string line;
  MachineCode* kernel = nullptr;
  while (std::getline(lines, line)) {
    constexpr std::string_view kBegin = ".text.";
    if (line.starts_with(kBegin) && line.ends_with(":"))
      kernel = &all[line.substr(kBegin.size(), line.size() - kBegin.size() - 1)];
    if (kernel != nullptr) count(*kernel, mnemonic_of(line));
  }
  return all;
}

}  // namespace piper::test
