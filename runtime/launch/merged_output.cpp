#include "runtime/launch/merged_output.h"

#include <utility>

namespace piper::runtime {

namespace {

// A longer line is printed in parts: a process cannot fill this memory.
constexpr std::size_t kMaxLine = std::size_t{1} << 20;
// Different lines that are known; all report a failure within far fewer.
constexpr std::size_t kMaxLines = 4096;

}  // namespace

MergedOutput::MergedOutput(std::vector<std::string> names, Write write) : write_(std::move(write)) {
  for (std::string& name : names) printers_.push_back({.name = std::move(name)});
}

void MergedOutput::add(std::size_t process, std::string_view text) {
  Printer& printer = printers_[process];
  printer.begun += text;
  std::size_t begin = 0;
  for (std::size_t end = 0; (end = printer.begun.find('\n', begin)) != std::string::npos;
       begin = end + 1)
    print_line(process, printer.begun.substr(begin, end - begin));
  printer.begun.erase(0, begin);
  if (printer.begun.size() > kMaxLine) end(process);
}

void MergedOutput::end(std::size_t process) {
  std::string last = std::exchange(printers_[process].begun, {});
  if (!last.empty()) print_line(process, std::move(last));
}

void MergedOutput::print_line(std::size_t process, std::string line) {
  Printer& printer = printers_[process];
  if (printed_.size() == kMaxLines) {
    printed_.clear();
    for (Printer& known : printers_) known.lines.clear();
  }
  const std::size_t count = ++printer.lines[line];
  std::size_t& printed = printed_[line];
  if (count <= printed) return;
  printed = count;
  write_(printer.name + line + "\n");
}

}  // namespace piper::runtime
