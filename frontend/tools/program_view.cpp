#include "frontend/tools/program_view.h"

#include <algorithm>

namespace piper::tools {

std::string program_text(const dag::Dag& dag) {
  const backend::ProgramSet programs = backend::make_programs(dag);
  std::string text;
  for (const backend::DeviceProgram& role : programs.roles)
    text += (text.empty() ? "" : "\n") + backend::print(role, programs.bodies);
  return text;
}

std::string kernel_table(const backend::ProgramSet& programs) {
  std::size_t width = 4;
  for (const backend::KernelBody& body : programs.bodies) width = std::max(width, body.name.size());
  const auto row = [&](std::string name, const std::string& kernels, const std::string& calls,
                       const std::string& bytes) {
    name.resize(width + 2, ' ');
    const auto right = [](const std::string& text, std::size_t columns) {
      return std::string(columns > text.size() ? columns - text.size() : 0, ' ') + text;
    };
    return name + right(kernels, 8) + right(calls, 15) + right(bytes, 15) + "\n";
  };
  std::string text = row("body", "kernels", "library calls", "bytes moved");
  for (const backend::KernelBody& body : programs.bodies) {
    const backend::KernelStats stats = backend::kernel_stats(body);
    text += row(body.name, std::to_string(stats.kernels), std::to_string(stats.library_calls),
                std::to_string(stats.bytes));
  }
  return text;
}

}  // namespace piper::tools
