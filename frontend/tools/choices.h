#pragma once
// The choices of words on the command line, for completion in shells and for the man page.
//
//   choices_of(option);           // --level: built, split, ...; none if any text is legal
//   choices_of(Command::show, 0); // its first word: ast, graph, ...

#include <string_view>
#include <vector>

#include "frontend/tools/arguments.h"

namespace piper::tools {

std::vector<std::string_view> choices_of(const OptionRow& option);
std::vector<std::string_view> choices_of(Command command, std::size_t place);

/// The kind of a word of a command without a list of choices.
enum class WordKind : std::uint8_t { other, input, program, schedule_or_code };
WordKind word_kind(Command command);

bool takes(const OptionRow& option, Command command);

}  // namespace piper::tools
