// Commands about the session itself: files, sizes, costs, help.

#include <algorithm>
#include <filesystem>

#include "frontend/repl/command_functions.h"
#include "frontend/repl/commands.h"
#include "frontend/repl/session.h"
#include "frontend/service/nearest.h"
#include "frontend/source/write_file.h"
#include "frontend/views/code_page.h"
#include "frontend/views/schedule_page.h"

namespace piper::repl {

bool load(Session& session, const Words& words) {
  if (!session.load(words.first())) return false;
  const std::vector<std::string> own = session.own_subjects();
  session.say("`" + words.first() + "` is loaded" +
              (own.empty() ? "" : ", with " + quoted_list(own)) + "\n");
  return session.redraw(false);
}

bool reload(Session& session, const Words&) {
  if (!session.sources().has_file())
    return session.fail(Code::bad_command_words, "`:load FILE` does", "no file was loaded");
  const std::string path = session.sources().file();
  if (!session.load(path)) return false;
  session.say("`" + path + "` is loaded again\n");
  return session.redraw(false);
}

bool model(Session& session, const Words& words) {
  if (!words.plain.empty() && !session.set_model(words.first())) return false;
  const std::string name = session.subject_of_values();
  session.say(name.empty() ? "expressions are by themselves\n"
                           : "labels and sizes in expressions are those of `" + name + "`\n");
  return true;
}

bool check(Session& session, const Words& words) {
  if (!words.plain.empty()) {
    const std::optional<Chosen> chosen = session.choose(words.first());
    if (!chosen) return false;
    bool good =
        session.during(*chosen, [&](service::Compilation& compilation, DiagnosticSink& sink) {
          compilation.set_overrides(chosen->values);
          if (auto subject = compilation.subject(chosen->name, false, sink))
            compilation.check(*subject, {}, sink);
        });
    if (good) session.say(chosen->title() + ": checked\n");
    return good;
  }
  const auto answer = session.document()->check(&session.interrupt());
  if (!session.finish(answer.status, answer.diagnostics, *session.document())) return false;
  for (const service::CheckedSchedule& schedule : *answer.value)
    session.say("schedule " + schedule.name + (schedule.sizes.empty() ? "" : " " + schedule.sizes) +
                ": checked\n");
  for (const std::string& name : session.own_subjects()) {
    const bool reported = std::any_of(
        answer.value->begin(), answer.value->end(),
        [&](const service::CheckedSchedule& schedule) { return schedule.name == name; });
    if (!reported) session.say(name + ": checked\n");
  }
  return true;
}

namespace {

/// Common part of `:cost` and `:rates`: `costs` are changed, printed and drawn, or restored.
template <typename Costs, typename Read, typename Text>
bool change_costs(Session& session, const Words& words, Costs& costs, const std::string& usage,
                  const Read& read, const Text& text_of) {
  Costs changed = costs;
  if (words.first() == "reset") {
    changed = {};
  } else if (!words.plain.empty()) {
    return session.fail(Code::bad_command_words, "write `" + usage + "`", "`{}` is no cost",
                        words.first());
  }
  std::string text;
  for (const lower::Override& value : words.values)
    text += (text.empty() ? "" : ",") + value.name + "=" + value.value;
  if (!text.empty()) {
    const LocationTable none;
    DiagnosticSink sink(none);
    if (!read(text, changed, sink)) return session.print_diagnostics(sink.sorted(), none, {}, {});
  }
  const Costs before = std::exchange(costs, changed);
  if (words.values.empty() || !session.draws()) session.say(text_of(costs) + "\n");
  if (words.plain.empty() && words.values.empty()) return true;
  if (session.redraw(true)) return true;
  costs = before;
  return false;
}

}  // namespace

bool cost(Session& session, const Words& words) {
  return change_costs(session, words, session.costs().operations, ":cost f=1 bi=1",
                      service::read_costs, service::cost_text);
}

bool rates(Session& session, const Words& words) {
  using Actions = std::optional<service::MeasuredCosts>;
  const auto read = [](std::string_view text, Actions& actions, DiagnosticSink& sink) {
    if (!actions) actions.emplace();
    return service::read_rates(text, actions->rates, sink);
  };
  const auto text_of = [](const Actions& actions) {
    return actions ? service::rate_text(actions->rates)
                   : std::string("no rates: costs are those of `:cost`, or of a machine");
  };
  return change_costs(session, words, session.costs().actions, ":rates flops=4e10 bytes=1e10", read,
                      text_of);
}

bool machine(Session& session, const Words& words) {
  const std::string word = words.first();
  if (!word.empty() && !session.set_machine(word == "none" ? "" : word)) return false;
  if (word.empty() || !session.draws())
    session.say(session.machine().empty() ? "no machine: costs are those of `:cost` or `:rates`\n"
                                          : "the machine is `" + session.machine() + "`\n");
  return true;
}

bool set(Session& session, const Words& words) {
  if (!words.values.empty()) {
    if (!session.set(words.values)) return false;
    if (!session.draws()) session.say(text_of(session.values()) + "\n");
    return true;
  }
  session.say(session.values().empty() ? "nothing is set\n" : text_of(session.values()) + "\n");
  return true;
}

bool unset(Session& session, const Words& words) { return session.unset(words.plain); }

bool explain(Session& session, const Words& words) {
  const std::string word = words.first();
  if (const auto code = parse_code(word)) {
    session.say(views::code_page(*code));
    return true;
  }
  if (const auto text = session.sources().definition(word)) {
    session.say(*text + "\n");
    return true;
  }
  const std::vector<std::string>& library = session.library();
  if (std::find(library.begin(), library.end(), word) == library.end()) {
    const auto meant = nearest(word, library);
    return session.fail(
        Code::nothing_chosen,
        meant ? "did you mean `" + *meant + "`?"
              : "`:explain P3108` shows the page of a diagnostic",
        "`{}` is no code, no schedule of the library and nothing that the session defines", word);
  }
  const std::optional<Chosen> chosen = session.choose(word);
  if (!chosen) return false;
  std::optional<views::SchedulePage> page;
  service::Compilation compilation(session.host().files);
  compilation.context().cancellation = &session.interrupt();
  DiagnosticSink sink(compilation.context().locations);
  page = views::schedule_page(session.host().files, word, chosen->values, session.costs(), sink,
                              compilation);
  const bool good =
      session.print_diagnostics(sink.sorted(), compilation.context().locations, {}, {});
  if (page) session.say(views::schedule_page_text(*page, ":grid " + chosen->title()));
  return good && page.has_value();
}

bool save(Session& session, const Words& words) {
  const std::string& path = words.plain.front();
  if (!path.ends_with(".pipe"))
    return session.fail(Code::bad_command_words, "write `:save " + path + ".pipe`",
                        "`{}` is no name of a .pipe file", path);
  const std::string text = session.sources().saved();
  if (text.empty())
    return session.fail(
        Code::unwritable_output,
        "items are saved: `schedule`, `model`, `train` and the others; a `let` is of the session",
        "nothing was defined");
  const bool loaded =
      session.sources().has_file() && source::same_file(session.sources().file(), path);
  std::error_code none;
  if (!loaded && std::filesystem::exists(path, none)) {
    return session.fail(Code::unwritable_output,
                        "choose another name, or `:load " + path + "` before you define",
                        "`{}` is there already and was not loaded: it stays as it is", path);
  }
  if (const std::error_code error = source::write_file(path, text))
    return session.fail(Code::unwritable_output, "", "`{}` cannot be written: {}", path,
                        error.message());
  session.say("`" + path + "` is written\n");
  return true;
}

bool help(Session& session, const Words& words) {
  std::string name = words.first();
  if (name.starts_with(':')) name.erase(0, 1);
  const CommandRow* row = name.empty() ? nullptr : find_command(name);
  if (!name.empty() && row == nullptr)
    return session.fail(Code::unknown_command, "`:help` lists them", "`:{}` is no command", name);
  session.say(help_text(row));
  return true;
}

bool quit(Session& session, const Words&) {
  session.end();
  return true;
}

}  // namespace piper::repl
