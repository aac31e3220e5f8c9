#include "ir/text/print_text.h"

#include <charconv>
#include <cmath>

#include "ir/context.h"

namespace piper {

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_name_char(char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '.'; }

std::string text_of(auto print) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(os);
  os.flush();
  return text;
}

}  // namespace

void print_name(llvm::raw_ostream& os, std::string_view name) {
  bool plain = !name.empty() && is_letter(name.front()) && name.back() != '.';
  for (const char c : name) plain = plain && is_name_char(c);
  if (plain && name != "locations") {
    os << name;
  } else {
    print_string(os, name);
  }
}

std::string name_text(std::string_view name) {
  return text_of([&](llvm::raw_ostream& os) { print_name(os, name); });
}

void print_string(llvm::raw_ostream& os, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  os << '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      os << '\\' << c;
    } else if (c == '\n') {
      os << "\\n";
    } else if (byte < 0x20 || byte == 0x7F) {
      os << "\\x" << kHex[byte >> 4] << kHex[byte & 15];
    } else {
      os << c;
    }
  }
  os << '"';
}

std::string quoted_text(std::string_view text) {
  return text_of([&](llvm::raw_ostream& os) { print_string(os, text); });
}

void print_number(llvm::raw_ostream& os, double value) {
  char buffer[40];
  const auto [end, error] =
      std::to_chars(buffer, buffer + sizeof buffer, std::isnan(value) ? std::fabs(value) : value);
  os << std::string_view(buffer, end);
}

std::string number_text(double value) {
  return text_of([&](llvm::raw_ostream& os) { print_number(os, value); });
}

void print_layout(llvm::raw_ostream& os, LayoutId layout, const Context& context) {
  if (!layout.replicated())
    os << '<' << print(context.layouts[layout], context.symbols, name_text) << '>';
}

std::string layout_text(LayoutId layout, const Context& context) {
  return text_of([&](llvm::raw_ostream& os) { print_layout(os, layout, context); });
}

void print_device_set(llvm::raw_ostream& os, const DeviceSet& set, const Mesh& mesh,
                      const SymbolTable& symbols) {
  print_name(os, symbols.text(mesh.name));
  os << '[';
  bool first = true;
  for (std::size_t i = 0; i < set.at.size() && i < mesh.axes.size(); ++i) {
    if (set.at[i] == DeviceSet::kWhole) continue;
    if (!first) os << ", ";
    first = false;
    print_name(os, symbols.text(mesh.axes[i].name));
    os << ": " << set.at[i];
  }
  os << ']';
}

}  // namespace piper
