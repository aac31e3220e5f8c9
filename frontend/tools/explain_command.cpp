#include "frontend/tools/commands.h"
#include "ir/diagnostics/diagnostics.h"
#include "llvm/Support/JSON.h"

namespace piper::tools {

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
    llvm::raw_string_ostream(text) << llvm::json::Value(llvm::json::Object{{"schema", 1}, {"code", code_text(*code)}, {"page", llvm::StringRef(page(*code))}});
    console.out << text << "\n";
  } else {
    console.out << page(*code);
  }
  return kClean;
}

}  // namespace piper::tools
