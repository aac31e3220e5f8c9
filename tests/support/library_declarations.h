#pragma once
// The schedules and models of the standard library, as its files declare them: tests that loop over
// these cover a new file without a line of C++.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/sema/program.h"
#include "frontend/source/source_manager.h"

namespace piper::test {

struct LibraryParam {
  std::string name;
  bool axis = false;
};

struct LibraryDeclaration {
  std::string module;                // `std.schedules.zbv`
  std::string name;                  // `zbv`
  std::vector<LibraryParam> params;  // those without a default
};

/// The functions of that sort that have the name of their file.
inline std::vector<LibraryDeclaration> library_declarations(ast::FunctionSort sort) {
  std::vector<LibraryDeclaration> found;
  for (const std::string& module : sema::library_modules()) {
    Context context;
    DiagnosticSink sink(context.locations);
    const auto file = sema::open_library(module, context.locations.files());
    const sema::Program program = sema::analyse(*file, source::MemoryFileSystem(), context, sink);
    for (const sema::Function& function : program.functions) {
      if (function.sort() != sort ||
          "." + std::string(function.name()) != module.substr(module.rfind('.')))
        continue;
      LibraryDeclaration declaration{module, std::string(function.name()), {}};
      for (std::size_t i = 0; i < function.params.size(); ++i) {
        const auto& param = function.syntax->params[i];
        if (param.default_value == nullptr)
          declaration.params.push_back(
              {std::string(param.name.name), function.params[i].kind == sema::TypeKind::axis});
      }
      found.push_back(std::move(declaration));
    }
  }
  return found;
}

inline std::vector<LibraryDeclaration> library_schedules() {
  return library_declarations(ast::FunctionSort::schedule);
}
inline std::vector<LibraryDeclaration> library_models() {
  return library_declarations(ast::FunctionSort::model);
}

/// Replaces the list of the library in a message, so that a new file changes no golden.
inline std::string without_library(std::string text) {
  std::string schedules, modules;
  for (const LibraryDeclaration& schedule : library_schedules())
    schedules += (schedules.empty() ? "`" : ", `") + schedule.name + "`";
  for (const std::string& module : sema::library_modules()) {
    if (module.starts_with("std.schedules."))
      modules += (modules.empty() ? "`" : ", `") + module + "`";
  }
  for (const auto& [list, shown] : {std::pair{schedules, "(all schedules of the library)"},
                                    {modules, "(all files of std.schedules)"}}) {
    if (const std::size_t at = text.find(list); at != std::string::npos)
      text.replace(at, list.size(), shown);
  }
  return text;
}

}  // namespace piper::test
