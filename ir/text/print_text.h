#pragma once
// Writes the parts of `.pir` text that `TextReader` reads; `print` of `ir/tensor/type.h` writes types.

#include <string>
#include <string_view>

#include "ir/context.h"
#include "ir/mesh.h"
#include "llvm/Support/raw_ostream.h"

namespace piper {

/// The text of a name: quoted unless it consists of letters, digits, `_` and `.`. `locations` is
/// quoted too, because the word before a `{` begins the table of locations.
void print_name(llvm::raw_ostream& os, std::string_view name);
std::string name_text(std::string_view name);
void print_string(llvm::raw_ostream& os, std::string_view text);
std::string quoted_text(std::string_view text);
/// The shortest text that reads back as the same number.
void print_number(llvm::raw_ostream& os, double value);
std::string number_text(double value);
/// `<dp: batch, tp: +>`; empty for a replicated value.
void print_layout(llvm::raw_ostream& os, LayoutId layout, const Context& context);
std::string layout_text(LayoutId layout, const Context& context);
void print_device_set(llvm::raw_ostream& os, const DeviceSet& set, const Mesh& mesh,
                      const SymbolTable& symbols);

}  // namespace piper
