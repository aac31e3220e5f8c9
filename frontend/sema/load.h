#pragma once
// Loads a program's files: the entry and, transitively, the files that it uses.
//
// Guarantees: each file is parsed once and is one module; the entry is the first; `Module::uses`
// has no cycle, the use that would close one is reported and left out.
// The files of `beside`, names of the library, are modules that no file uses.

#include "frontend/sema/program.h"

namespace piper::sema {

void load_modules(FileId entry, const source::FileSystem& file_system, Context& context,
                  DiagnosticSink& sink, Program& program, std::size_t shown_errors,
                  std::span<const std::string> beside = {});

}  // namespace piper::sema
