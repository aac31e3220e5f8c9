#include "frontend/repl/repl.h"

#include "frontend/parse/lexemes.h"
#include "frontend/repl/completion.h"

namespace piper::repl {
namespace {

bool is_command(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\n");
  return first != std::string_view::npos && text[first] == ':';
}

}  // namespace

std::optional<std::string> Lines::add(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  text_ += text_.empty() ? std::string(line) : "\n" + std::string(line);
  if (!is_command(text_) && parse::goes_on(text_)) return std::nullopt;
  return take();
}

Ended run_lines(Session& session, std::istream& in, Echo echo) {
  Lines lines;
  Ended ended = Ended::well;
  const auto prompt = [&] {
    if (echo == Echo::prompt && !session.ended()) session.say(lines.open() ? kMore : kPrompt);
  };
  prompt();
  for (std::string line; !session.ended() && std::getline(in, line); prompt()) {
    if (echo == Echo::line) session.say((lines.open() ? kMore : kPrompt) + line + "\n");
    if (!lines.open()) session.notice_changes();
    const auto entry = lines.add(line);
    if (!entry || session.execute(*entry)) continue;
    ended = Ended::failed;
    if (echo != Echo::prompt && session.interrupted()) return Ended::interrupted;
  }
  if (echo == Echo::prompt) session.say("\n");
  if (!lines.open()) return ended;
  session.report_half_entry(lines.take());
  return Ended::failed;
}

void run_terminal(Session& session, Terminal& terminal, const HistoryFile& history) {
  LineEditor editor(terminal);
  for (std::string& entry : history.read()) editor.remember(std::move(entry));
  std::string unkept, last;
  editor.goes_on = [](std::string_view text) { return !is_command(text) && parse::goes_on(text); };
  editor.complete = [&](std::string_view text) { return completion_of(session, text); };
  editor.has_news = [&] { return session.has_changes(); };
  editor.say = [&] { session.notice_changes(); };
  while (!session.ended()) {
    const std::optional<std::string> typed = editor.read(kPrompt, kMore);
    if (!typed) return;
    if (unkept.empty() && *typed != last && !(unkept = history.append(*typed)).empty())
      session.say(unkept + "\n");
    last = *typed;
    session.notice_changes();
    // Pasted text may have several entries.
    Lines lines;
    std::string_view rest = *typed;
    while (!rest.empty() && !session.ended()) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      const auto entry = lines.add(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (entry && !session.execute(*entry) && session.interrupted()) break;
    }
    if (lines.open()) session.report_half_entry(lines.take());
  }
}

}  // namespace piper::repl
