#include <algorithm>

#include "frontend/tools/commands.h"
#include "frontend/tools/explain_schedule.h"
#include "frontend/tools/session.h"
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
  const std::string& word = arguments.positional[0];
  const auto code = parse_code(word);
  if (!code) {
    const std::vector<std::string> schedules = service::Compilation(console.files).library_schedules();
    if (std::find(schedules.begin(), schedules.end(), word) != schedules.end()) return explain_schedule(console, arguments, word);
    const auto meant = nearest(word, schedules);
    console.err << "piper: `" << word << "` is no code and no schedule of the standard library; "
                << (meant ? "did you mean `" + *meant + "`?" : "`piper explain` lists all codes") << "\n";
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
