#pragma once
// Directives and settings as text, one line each; `ir/directive/parse.h` reads them back.
//
//   place stage[0], stage[3] on cluster[pp: 0] #4

#include <string>

#include "ir/directive/directive.h"
#include "ir/text/location_text.h"
#include "llvm/Support/raw_ostream.h"

namespace piper::directive {

/// The tables that directives refer to.
struct Surroundings {
  const Context& context;
  const Mesh& mesh;
  const DeviceSetTable& device_sets;
  LocationText* locations = nullptr;  // null: none are printed
};

void print(const Directive& directive, llvm::raw_ostream& os, const Surroundings& surroundings,
           unsigned indent = 0);
std::string print(const Directive& directive, const Surroundings& surroundings);
/// `gpt[0]`-free text of a selector as written: `BW stage[0] mb[0, 1].reduce`.
void print(const Selector& selector, llvm::raw_ostream& os, const SymbolTable& symbols);
/// ` with window: 2, what: optimizer`; nothing for a line without settings.
void print_settings(const Directive& directive, llvm::raw_ostream& os);
void print(const Settings& settings, llvm::raw_ostream& os, const Context& context,
           LocationText* locations = nullptr);

}  // namespace piper::directive
