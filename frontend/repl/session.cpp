#include "frontend/repl/session.h"

#include <algorithm>
#include <map>
#include <new>
#include <set>

#include "frontend/parse/lexemes.h"
#include "frontend/repl/commands.h"
#include "frontend/service/nearest.h"
#include "frontend/views/simulate_view.h"

namespace piper::repl {
namespace {

constexpr std::uint64_t kMaxBytes = source::kMaxFileSize;

bool has_errors(const std::vector<Diagnostic>& diagnostics) {
  return std::any_of(diagnostics.begin(), diagnostics.end(), [](const Diagnostic& diagnostic) {
    return diagnostic.severity == Severity::error;
  });
}

bool reports(const std::vector<Diagnostic>& diagnostics, Code code) {
  return std::any_of(diagnostics.begin(), diagnostics.end(),
                     [&](const Diagnostic& diagnostic) { return diagnostic.code == code; });
}

/// `values` with `given` replacing or following them.
std::vector<lower::Override> merged(std::vector<lower::Override> values,
                                    const std::vector<lower::Override>& given) {
  for (const lower::Override& value : given) {
    std::erase_if(values, [&](const lower::Override& old) { return old.name == value.name; });
    values.push_back(value);
  }
  return values;
}

}  // namespace

Session::Session(Host& host, Interrupt& interrupt)
    : host_(host), interrupt_(interrupt), workspace_(host.files) {
  renew();
}

void Session::say(std::string_view text) {
  host_.out << text;
  host_.out.flush();
}

void Session::show(std::string picture) {
  if (!only_changes_ || picture != shown_) say(picture);
  shown_ = std::move(picture);
}

void Session::say_interrupted() { say("interrupted\n"); }

bool Session::print_diagnostics(const std::vector<Diagnostic>& diagnostics,
                                const LocationTable& locations, std::string_view path,
                                const std::vector<SourceFragment>& fragments) {
  if (diagnostics.empty()) return true;
  const Shown shown(locations, path, fragments);
  std::vector<Diagnostic> reported;
  for (const Diagnostic& diagnostic : diagnostics) reported.push_back(shown.of(diagnostic));
  say(render_text(reported, shown.locations().files()));
  return !has_errors(reported);
}

void Session::renew() {
  composed_ = sources_.composed();
  workspace_.open(sources_.path(), composed_.text);
  document_ = workspace_.document(sources_.path());
  stepper_.forget();
}

bool Session::execute(std::string_view text) {
  const bool good = answer(text);
  interrupted_ = interrupt_.requested();
  interrupt_.clear();
  return good;
}

bool Session::answer(std::string_view text) {
  const std::vector<lower::Override> values = values_;
  const passes::OperationCosts costs = costs_.operations;
  const std::optional<service::MeasuredCosts> rates = costs_.actions;
  const std::string machine = machine_;
  const auto go_back = [&] {
    values_ = values;
    costs_.operations = costs;
    costs_.actions = rates;
    machine_ = machine;
    asked_.clear();
  };
  try {
    const Entry entry = read_entry(text);
    switch (entry.sort) {
      case EntrySort::nothing: return true;
      case EntrySort::command: return execute_command(entry.text);
      case EntrySort::item: return define(entry);
      case EntrySort::binding:
      case EntrySort::assignment: return bind(entry);
      case EntrySort::expression: return evaluate(entry.text);
      case EntrySort::misplaced:
        return fail(
            Code::misplaced_statement,
            "a line is an item, `let`, `var`, an expression or a command; `:help` lists the commands",
            "`{}` begins a statement of {}, and stands between its braces", entry.word,
            entry.belongs);
    }
  } catch (const Cancelled&) {
    go_back();
    say_interrupted();
  } catch (const std::bad_alloc&) {
    go_back();
    fail(Code::out_of_memory, "make it smaller, or give the program more memory",
         "the machine has no memory left for this request");
  }
  return false;
}

void Session::report_half_entry(std::string_view entry) {
  const std::string_view first = entry.substr(0, entry.find('\n'));
  fail(Code::half_entry, "close what is open, or finish the line",
       "the input ends in the middle of `{}`", first);
}

bool Session::execute_command(const std::string& line) {
  const std::size_t end = std::min(line.find_first_of(" \t\n"), line.size());
  const std::string name = line.substr(1, end - 1);
  const CommandRow* row = find_command(name);
  if (row == nullptr) {
    std::vector<std::string> names;
    for (const CommandRow& known : command_rows()) names.emplace_back(known.name);
    const auto meant = nearest(name, names);
    return fail(Code::unknown_command,
                meant ? "did you mean `:" + *meant + "`?" : "`:help` lists the commands",
                "`:{}` is no command", name);
  }
  std::string error;
  const auto words = split_words(std::string_view(line).substr(end), error);
  if (!words) return fail(Code::bad_command_words, "", "{} in the words behind `:{}`", error, name);
  if (words->plain.size() < row->min_words || words->plain.size() > row->max_words) {
    return fail(Code::bad_command_words, "write `" + std::string(row->usage) + "`", "`:{}` {}",
                name, words->plain.size() < row->min_words ? "lacks words" : "takes fewer words");
  }
  if (!row->takes_values && !words->values.empty()) {
    return fail(Code::bad_command_words, "write `" + std::string(row->usage) + "`",
                "`:{}` takes no `{}=...`", name, words->values.front().name);
  }
  for (std::size_t i = 0; i < words->values.size(); ++i) {
    const std::string& given = words->values[i].name;
    const bool again =
        std::any_of(words->values.begin(), words->values.begin() + static_cast<std::ptrdiff_t>(i),
                    [&](const lower::Override& other) { return other.name == given; });
    if (again)
      return fail(Code::bad_command_words,
                  "sizes hold for all that the line names: keep one of them", "`{}` is given twice",
                  given);
  }
  if (row->sizes) {
    const std::vector<lower::Override> before = values_;
    values_ = merged(values_, words->values);
    asked_ = words->values;
    const std::string subject = subject_;
    const bool good = row->run(*this, *words);
    asked_.clear();
    if (!good) {
      values_ = before;
      subject_ = subject;
    }
    if (good && row->draws) drawn_ = Drawn{std::string(row->name), words->plain, subject_};
    return good;
  }
  return row->run(*this, *words);
}

bool Session::redraw(bool library_too) {
  if (!drawn_) return true;
  const CommandRow* row = find_command(drawn_->command);
  const std::vector<std::string> own = own_subjects();
  const bool in_session = std::find(own.begin(), own.end(), drawn_->subject) != own.end();
  if (!library_too && !in_session) return true;
  Words words{drawn_->words, {}};
  if (words.plain.empty()) words.plain.push_back(drawn_->subject);
  only_changes_ = !library_too;
  try {
    const bool good = row->run(*this, words);
    only_changes_ = false;
    return good;
  } catch (...) {
    only_changes_ = false;
    throw;
  }
}

bool Session::set(const std::vector<lower::Override>& values) {
  const std::vector<lower::Override> before = values_;
  for (const lower::Override& value : values) {
    if (is_parameter(value.name)) continue;
    if (interrupt_.requested()) throw Cancelled();  // not all was looked at
    return fail(Code::no_such_parameter, "`:set` gives sizes of schedules and values of params",
                "nothing in the session or the library has a parameter `{}`", value.name);
  }
  values_ = merged(values_, values);
  if (redraw(true)) return true;
  values_ = before;
  return false;
}

bool Session::unset(const std::vector<std::string>& names) {
  const std::vector<lower::Override> before = values_;
  for (const std::string& name : names) {
    if (std::erase_if(values_, [&](const lower::Override& value) { return value.name == name; }) >
        0)
      continue;
    values_ = before;
    return fail(Code::no_such_parameter, "`:set` shows what is set", "`{}` was not set", name);
  }
  if (!draws()) say(values_.empty() ? "nothing is set\n" : text_of(values_) + "\n");
  return redraw(true);
}

bool Session::load(const std::string& path) {
  if (path.ends_with(".pir") || !path.ends_with(".pipe")) {
    return fail(Code::bad_command_words,
                path.ends_with(".pir") ? "`piper show` and `piper simulate` look at plans"
                                       : "the name of such a file ends with `.pipe`",
                "`{}` is no .pipe file", path);
  }
  LocationTable table;
  DiagnosticSink sink(table);
  const auto file = source::open(path, {}, host_.files, table.files(), sink);
  if (!file) return print_diagnostics(sink.sorted(), table, {}, {});
  const std::string text(table.files().text(*file));
  watched_[path] = text;
  const Sources before = sources_;
  workspace_.close(sources_.path());
  sources_.load(path, text);
  renew();
  const auto program = document_->program(&interrupt_);
  const bool whole =
      program.status == service::Status::done && program.value != nullptr && program.value->ok;
  if (program.status == service::Status::cancelled) say_interrupted();
  print_diagnostics(program.diagnostics, document_->locations(), sources_.path(),
                    composed_.fragments);
  if (!whole) {
    workspace_.close(sources_.path());
    sources_ = before;
    renew();
    pending_ = path;
    say("`" + path + "` was not loaded\n");
    return false;
  }
  pending_.clear();
  for (std::size_t i = 0; i < document_->files().size(); ++i) {
    const FileId id = FileId::at(i);
    const std::string name(document_->files().name(id));
    if (!document_->files().is_library(id) && name != path)
      watched_[name] = std::string(document_->files().text(id));
  }
  return true;
}

bool Session::has_changes() {
  return std::any_of(watched_.begin(), watched_.end(), [&](const auto& file) {
    const source::ReadResult read = host_.files.read(file.first, kMaxBytes);
    return read.text && *read.text != file.second;
  });
}

bool Session::notice_changes() {
  bool again = false;
  for (const auto& [path, text] : std::map(watched_)) {
    const source::ReadResult read = host_.files.read(path, kMaxBytes);
    if (!read.text || *read.text == text) continue;
    watched_[path] = *read.text;
    workspace_.changed_on_disk(path);
    again = again || path == sources_.file() || path == pending_ ||
            (sources_.has_file() && pending_.empty());
  }
  if (!again) return false;
  const std::string path = pending_.empty() ? sources_.file() : pending_;
  say("`" + path + "` has changed\n");
  try {
    if (load(path)) redraw(false);
  } catch (const Cancelled&) {
    say_interrupted();
  } catch (const std::bad_alloc&) {
    fail(Code::out_of_memory, "", "the machine has no memory left to read it again");
  }
  interrupt_.clear();
  return true;
}

bool Session::define(const Entry& entry) {
  const Sources before = sources_;
  std::vector<Declaration> declarations = declarations_of(entry.text);
  std::set<std::string> names;
  bool again = false;
  for (const Declaration& declaration : declarations) {
    names.insert(declaration.name);
    again = again || sources_.definition(declaration.name).has_value();
    // A single item gets the whole text, so that the text after it is not lost.
    sources_.define(declaration.name, declarations.size() == 1
                                          ? entry.text
                                          : entry.text.substr(declaration.begin,
                                                              declaration.end - declaration.begin));
  }
  if (declarations.empty()) {
    names.insert(kInput);
    sources_.define(kInput, entry.text);
  }
  renew();
  const auto program = document_->program(&interrupt_);
  if (program.status != service::Status::done) {
    sources_ = before;
    renew();
    if (program.status == service::Status::cancelled) say_interrupted();
    return print_diagnostics(program.diagnostics, document_->locations(), {}, {}) && false;
  }
  const Shown shown(document_->locations(), sources_.path(), composed_.fragments);
  std::vector<Diagnostic> own, all;
  for (const Diagnostic& diagnostic : program.diagnostics) {
    all.push_back(with_session_hint(shown.of(diagnostic), shown));
    const SourceRange range = all.back().range;
    if (all.back().severity == Severity::error && range.valid() &&
        names.contains(std::string(shown.locations().files().name(range.file))))
      own.push_back(all.back());
  }
  if (declarations.empty() && own.empty()) own = all;
  if (!own.empty() || declarations.empty()) {
    say(render_text(own, shown.locations().files()));
    sources_ = before;
    renew();
    return false;
  }
  if (!all.empty()) say(render_text(all, shown.locations().files()));
  bool good = !has_errors(all);
  for (const Declaration& declaration : declarations)
    good = describe_definition(declaration.name, again) && good;
  return redraw(names.contains(machine_)) && good;
}

bool Session::describe_definition(const std::string& name, bool again) {
  const std::string done = again ? " is defined again" : " is defined";
  const std::vector<std::string> own = own_subjects();
  if (std::find(own.begin(), own.end(), name) == own.end() || (drawn_ && drawn_->subject == name)) {
    say("`" + name + "`" + done + "\n");
    return true;
  }
  const std::string last = subject_;
  const std::optional<Chosen> chosen = choose(name);
  if (!chosen) return false;
  const auto plan =
      chosen->document->plan({chosen->request(), dag::Level::planned, false}, &interrupt_);
  if (plan.status == service::Status::cancelled) say_interrupted();
  if (plan.value == nullptr && (reports(plan.diagnostics, Code::unknown_region) ||
                                reports(plan.diagnostics, Code::parameter_missing))) {
    subject_ = last;
    say("`" + name + "`" + done + ", for trains that have what it names\n");
    return true;
  }
  say("`" + name + "`" + done + "\n");
  const bool good = print_diagnostics(plan.diagnostics, chosen->document->locations(),
                                      sources_.path(), composed_.fragments);
  if (plan.value == nullptr) return false;
  const auto simulated = simulate_orders(*chosen);
  if (simulated) say(chosen->title() + ": " + views::figures_line(simulated->timeline) + "\n");
  return good && simulated.has_value();
}

}  // namespace piper::repl
