#pragma once
// The words that stand to choose on the command line, for whoever completes them: shells, and the man page.
//
//   choices_of(option);           // --level: built, split, ...; none where any text may stand
//   choices_of(Command::show, 0); // its first word: ast, graph, ...

#include <string_view>
#include <vector>

#include "frontend/tools/arguments.h"

namespace piper::tools {

std::vector<std::string_view> choices_of(const OptionRow& option);
std::vector<std::string_view> choices_of(Command command, std::size_t place);

/// What a word of a command is when it is none of a few.
enum class WordKind : std::uint8_t { other, input, program, schedule_or_code };
WordKind word_kind(Command command);

bool takes(const OptionRow& option, Command command);

}  // namespace piper::tools
