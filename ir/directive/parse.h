#pragma once
// Reads directives and settings from the text that `ir/directive/print.h` writes. Errors are
// reported through the reader.

#include "ir/directive/directive.h"
#include "ir/text/text_reader.h"

namespace piper::directive {

/// Whether the word begins a directive or continues one, so that a region of that name needs
/// quotes.
bool is_directive_word(std::string_view word);
/// Whether the token at the reader begins a directive.
bool at_directive(const TextReader& reader);
Directive parse_directive(TextReader& reader, const Mesh& mesh, DeviceSetTable& device_sets);
/// Reads a train after the word `train`.
Settings parse_settings(TextReader& reader);
/// `copy: 2`.
NamedExtent parse_extent(TextReader& reader);

}  // namespace piper::directive
