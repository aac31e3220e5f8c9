#include <algorithm>

#include "frontend/tools/commands.h"
#include "frontend/tools/session.h"
#include "frontend/tools/simulation.h"
#include "frontend/views/code_page.h"
#include "frontend/views/schedule_page.h"
#include "ir/diagnostics/diagnostics.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace piper::tools {
namespace {

int explain_schedule(Console& console, const Arguments& arguments, const std::string& name) {
  Session session(console, arguments);
  const auto costs = read_simulation_costs(session);
  if (!costs) return session.finish();
  const auto page = views::schedule_page(console.files, name, arguments.overrides, *costs,
                                         session.sink(), session.compilation());
  if (!page) return session.finish();
  if (arguments.format == "json") {
    llvm::json::Object object{{"schema", 1},
                              {"schedule", name},
                              {"page", page->prose},
                              {"grid", page->grid},
                              {"schedules", views::comparison_json(page->all)}};
    llvm::json::Object given;
    for (const lower::Override& size : page->sizes) given[size.name] = size.value;
    object["sizes"] = std::move(given);
    std::string text;
    llvm::raw_string_ostream(text) << llvm::json::Value(std::move(object)) << "\n";
    session.write(text);
    return session.finish();
  }
  std::string draw = "piper show grid " + name;
  for (const lower::Override& size : page->sizes) draw += " -D " + size.name + "=" + size.value;
  session.write(views::schedule_page_text(*page, draw));
  return session.finish();
}

}  // namespace

int run_explain(Console& console, const Arguments& arguments) {
  const bool json = arguments.format == "json";
  if (arguments.positional.empty()) {
    llvm::json::Array codes;
    for (const CodeInfo& info : all_codes()) {
      if (json) {
        codes.push_back(
            llvm::json::Object{{"code", code_text(info.code)},
                               {"name", llvm::StringRef(info.name)},
                               {"severity", llvm::StringRef(severity_name(info.severity))}});
      } else {
        console.out << code_text(info.code) << "  " << info.name << "\n";
      }
    }
    if (json) {
      std::string text;
      llvm::raw_string_ostream(text)
          << llvm::json::Value(llvm::json::Object{{"schema", 1}, {"codes", std::move(codes)}});
      console.out << text << "\n";
    }
    return kClean;
  }
  std::string word = arguments.positional[0];
  for (std::size_t i = 1; i < arguments.positional.size(); ++i)
    word += " " + arguments.positional[i];
  const auto code = parse_code(word);
  if (!code) {
    service::Compilation library(console.files);
    if (const auto schedule = library.library_schedule_called(word))
      return explain_schedule(console, arguments, *schedule);
    const auto meant = nearest(word, library.library_schedules());
    console.err << "piper: `" << word << "` is no code and no schedule of the standard library; "
                << (meant ? "did you mean `" + *meant + "`?" : "`piper explain` lists all codes")
                << "\n";
    return kUsage;
  }
  if (json) {
    std::string text;
    llvm::raw_string_ostream(text) << llvm::json::Value(llvm::json::Object{
        {"schema", 1}, {"code", code_text(*code)}, {"page", views::code_page(*code)}});
    console.out << text << "\n";
  } else {
    console.out << views::code_page(*code);
  }
  return kClean;
}

}  // namespace piper::tools
