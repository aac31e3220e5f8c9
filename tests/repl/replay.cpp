#include "tests/repl/replay.h"

#include <sstream>
#include <vector>

#include "frontend/repl/repl.h"
#include "tests/repl/layered_files.h"

namespace piper::test {

Replayed replay_session(std::string_view text, std::map<std::string, std::string> files) {
  Replayed result;
  std::string* file = nullptr;
  std::vector<std::string> typed;
  std::istringstream lines{std::string(text)};
  const std::string prompt = repl::kPrompt, more = repl::kMore;
  for (std::string line; std::getline(lines, line);) {
    const bool first = line.starts_with(prompt.substr(0, prompt.size() - 1));
    if (first || line.starts_with(more.substr(0, more.size() - 1))) {
      typed.push_back(line.size() < prompt.size() ? "" : line.substr(prompt.size()));
      continue;
    }
    if (!typed.empty()) continue;  // output of an earlier run
    result.text += line + "\n";
    if (line.starts_with("=== ")) {
      file = &files[line.substr(4)];
      file->clear();
    } else if (file != nullptr) {
      *file += line + "\n";
    }
  }
  const LayeredFiles layered(files);
  std::ostringstream out;
  repl::Host host{.out = out, .files = layered};
  repl::Interrupt interrupt;
  repl::Session session(host, interrupt);
  repl::Lines gathered;
  for (const std::string& line : typed) {
    out << (gathered.open() ? more : prompt) << line << "\n";
    const auto entry = gathered.add(line);
    if (!entry) continue;
    ++result.entries;
    if (!session.execute(*entry)) ++result.failed;
  }
  if (gathered.open()) {
    session.report_half_entry(gathered.take());
    ++result.failed;
  }
  result.text += std::move(out).str();
  return result;
}

}  // namespace piper::test
