#include "frontend/tools/commands.h"
#include "ir/diagnostics/diagnostics.h"
#include "llvm/Support/JSON.h"

namespace piper::tools {
namespace {

/// A page as it is read: comments in it are for the tests of its examples.
std::string shown_page(Code code) {
  std::string text(page(code));
  for (std::size_t begin; (begin = text.find("<!-- ")) != std::string::npos;) {
    const std::size_t end = text.find("-->\n", begin);
    text.erase(begin, end == std::string::npos ? end : end + 4 - begin);
  }
  return text;
}

}  // namespace

int run_explain(Console& console, const Arguments& arguments) {
  const bool json = arguments.format == "json";
  if (arguments.positional.empty()) {
    llvm::json::Array codes;
    for (const CodeInfo& info : all_codes()) {
      if (json) {
        codes.push_back(llvm::json::Object{{"code", code_text(info.code)}, {"name", llvm::StringRef(info.name)}, {"severity", llvm::StringRef(severity_name(info.severity))}});
      } else {
        console.out << code_text(info.code) << "  " << info.name << "\n";
      }
    }
    if (json) {
      std::string text;
      llvm::raw_string_ostream(text) << llvm::json::Value(llvm::json::Object{{"schema", 1}, {"codes", std::move(codes)}});
      console.out << text << "\n";
    }
    return kClean;
  }
  const auto code = parse_code(arguments.positional[0]);
  if (!code) {
    console.err << "piper: `" << arguments.positional[0] << "` is no code; `piper explain` lists them all\n";
    return kUsage;
  }
  if (json) {
    std::string text;
    llvm::raw_string_ostream(text) << llvm::json::Value(llvm::json::Object{{"schema", 1}, {"code", code_text(*code)}, {"page", shown_page(*code)}});
    console.out << text << "\n";
  } else {
    console.out << shown_page(*code);
  }
  return kClean;
}

}  // namespace piper::tools
