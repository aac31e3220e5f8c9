#include <algorithm>
#include <map>
#include <set>

#include "frontend/lower/override_values.h"
#include "frontend/pictures/front_svg.h"
#include "frontend/tools/commands.h"
#include "frontend/tools/simulation.h"
#include "frontend/tools/tuned_source.h"
#include "frontend/views/tuning.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/launch/interrupt.h"

namespace piper::tools {
namespace {

constexpr std::uint64_t kDefaultTries = 500;

/// One line on a terminal that shows how far the search is.
class TuneProgress {
 public:
  explicit TuneProgress(Console& console) : console_(console) {}
  ~TuneProgress() { show(""); }
  TuneProgress(const TuneProgress&) = delete;
  TuneProgress& operator=(const TuneProgress&) = delete;

  void show(std::string line) {
    const unsigned columns = console_.columns ? console_.columns() : 0;
    if (columns == 0) return;
    line.resize(columns - 1, ' ');
    console_.err << '\r' << line << '\r';
    console_.err.flush();
  }

 private:
  Console& console_;
};

class Tune {
 public:
  Tune(Console& console, const Arguments& arguments) : console_(console), arguments_(arguments) {
    fixed_ = arguments;
    std::erase_if(fixed_.overrides,
                  [](const lower::Override& size) { return views::alternatives(size).size() > 1; });
  }

  int run() {
    Session session(console_, fixed_);
    const auto [input, name] = views::taken_apart(arguments_.positional.front());
    input_ = input;
    name_ = arguments_.positional.size() > 1 ? arguments_.positional[1] : name;
    if (!session.open(input_) || session.sink().has_errors() || !find_holes(session))
      return session.finish();
    if (!arguments_.output.empty() && !can_write(session)) return session.finish();
    of_train_ = has_train(session);
    views::Tuning tuning(holes_, goal(), arguments_.memory);
    const runtime::Interrupt interrupt;
    search(session, tuning, interrupt);
    if (tuning.best() == nullptr) return refused(session, tuning, interrupt.requested());
    write(session, tuning);
    const int code = session.finish();
    return interrupt.requested() && code == kClean ? static_cast<int>(kInterrupted) : code;
  }

 private:
  /// The params with choices, and the sizes of `-D` with several values. False after a diagnostic.
  bool find_holes(Session& session) {
    if (session.compilation().pir() != nullptr) {
      session.sink()
          .report(
              Code::unknown_subject, SourceRange(),
              "`{}` is a plan and not a program: `tune` needs a .pipe file or a schedule of the "
              "standard library",
              input_)
          .hint("`piper simulate {}` has its figures", input_);
      return false;
    }
    const auto params = session.compilation().params(session.sink());
    if (!params) return false;
    for (const lower::ParamChoices& param : *params) {
      params_.insert(param.name);
      if (is_given(param.name)) given_[param.name] = param.literal;
      if (param.choices.size() < 2 || is_given(param.name)) continue;
      views::Hole& hole = holes_.emplace_back(param.name, param.choices, param.literals);
      hole.initial = place_of(param.value, hole.values);
    }
    for (const lower::Override& size : arguments_.overrides) {
      const std::vector<std::string> values = views::alternatives(size);
      if (values.size() < 2) continue;
      views::Hole& hole = holes_.emplace_back(size.name, values, values);
      for (const lower::ParamChoices& param : *params) {
        if (param.name == size.name) take_type(hole, param);
      }
    }
    if (!holes_.empty()) return true;
    session.sink()
        .report(Code::no_choices, SourceRange(), "`{}` has no choices",
                arguments_.positional.front())
        .hint(
            "declare choices, such as `param m in [8, 16, 32]`, or give several sizes: `-D m=8,16,32`");
    return false;
  }

  /// Values of `-D` for a param, as numbers or texts of its type are written.
  static void take_type(views::Hole& hole, const lower::ParamChoices& param) {
    for (std::size_t i = 0; i < hole.values.size(); ++i) {
      const auto value = lower::parse_override(hole.values[i], param.type);
      if (!value) continue;  // refused with each of its combinations
      hole.values[i] = lower::override_text(*value);
      hole.literals[i] = lower::literal_text(*value);
    }
    hole.initial = place_of(param.value, hole.values);
  }

  /// A train, unless the name is that of a schedule.
  bool has_train(Session& session) const {
    const sema::Program& program = *session.compilation().program();
    return std::any_of(program.trains.begin(), program.trains.end(), [&](const sema::Train& one) {
      return one.module.index() == 0 && (name_.empty() || one.name() == name_);
    });
  }

  /// A schedule by itself has more work the more microbatches it has.
  std::string_view goal() const {
    if (!arguments_.minimize.empty()) return arguments_.minimize;
    return of_train_ ? "makespan" : "bubble";
  }

  /// Costs of operations are those of one microbatch, whatever its size: a train is simulated in
  /// seconds unless they are given.
  bool takes_seconds() const {
    const std::string given = arguments_.cost + arguments_.kept_weights + arguments_.kept_forward +
                              arguments_.stages + arguments_.rates + arguments_.costs_file +
                              arguments_.machine;
    return of_train_ && given.empty();
  }

  /// Whether the program has a place for every choice, and the file can be written.
  bool can_write(Session& session) {
    for (const views::Hole& hole : holes_) {
      if (params_.contains(hole.name)) continue;
      session.sink()
          .report(Code::unwritable_output, SourceRange(),
                  "`-o` writes values of params, and `{}` is no param of the program", hole.name)
          .hint("leave `-o` out, or declare a param and give it to the schedule");
      return false;
    }
    return session.check_writable(arguments_.output);
  }

  bool is_given(const std::string& name) const {
    return std::any_of(arguments_.overrides.begin(), arguments_.overrides.end(),
                       [&](const lower::Override& size) { return size.name == name; });
  }

  static std::optional<std::size_t> place_of(const std::string& value,
                                             const std::vector<std::string>& values) {
    const auto found = std::find(values.begin(), values.end(), value);
    if (found == values.end()) return std::nullopt;
    return static_cast<std::size_t>(found - values.begin());
  }

  std::vector<lower::Override> overrides_of(const std::vector<lower::Override>& chosen) const {
    std::vector<lower::Override> overrides = fixed_.overrides;
    overrides.insert(overrides.end(), chosen.begin(), chosen.end());
    return overrides;
  }

  void search(Session& session, views::Tuning& tuning, const runtime::Interrupt& interrupt) {
    std::vector<std::size_t> sizes;
    for (const views::Hole& hole : holes_) {
      sizes.push_back(hole.values.size());
      first_.push_back(hole.initial.value_or(0));
    }
    combinations_ = views::combinations(sizes);
    const std::uint64_t tries = arguments_.tries.value_or(kDefaultTries);
    TuneProgress progress(console_);
    views::search_choices(
        sizes, first_, {tries, arguments_.seed.value_or(0), [&] { return interrupt.requested(); }},
        [&](const views::Choice& choice) {
          std::string line = std::to_string(tuning.tried() + 1) + " of " +
                             std::to_string(std::min(combinations_, tries)) + ": " +
                             tuning.name_of(choice);
          if (tuning.best() != nullptr)
            line += "; best " + views::figure_text(tuning.best()->figures, tuning.goal()) + ": " +
                    tuning.name_of(tuning.best()->choice);
          progress.show(std::move(line));
          return judged(session, tuning, choice);
        });
  }

  /// Adds the data of a combination to the files that `session` does not replace.
  std::optional<double> judged(Session& session, views::Tuning& tuning,
                               const views::Choice& choice) {
    Session trial(console_, fixed_);
    auto figures = look_at(trial, tuning.overrides_of(choice), tuning.name_of(choice));
    if (figures) session.inputs().add_data(figures->settings);
    std::vector<std::string> errors;
    for (const Diagnostic& diagnostic : trial.sink().sorted()) {
      if (diagnostic.severity == Severity::error) errors.push_back(code_text(diagnostic.code));
    }
    if (!errors.empty()) figures.reset();
    return tuning.take(choice, std::move(figures), errors);
  }

  std::optional<views::Compared> look_at(Session& session,
                                         const std::vector<lower::Override>& chosen,
                                         const std::string& shown) {
    const std::vector<lower::Override> overrides = overrides_of(chosen);
    auto costs = read_simulation_costs(session, overrides);
    if (!costs) return std::nullopt;
    if (takes_seconds()) costs->actions.emplace();
    std::vector<bool> taken(overrides.size(), false);
    auto figures = views::look_at(session.compilation(), {input_, name_, shown, *costs, overrides},
                                  taken, session.sink());
    for (std::size_t i = 0; figures && i < taken.size(); ++i) {
      const bool of_machine =
          costs->machine && std::find(costs->machine->params.begin(), costs->machine->params.end(),
                                      overrides[i].name) != costs->machine->params.end();
      if (taken[i] || of_machine) continue;
      session.sink().report(Code::override_unknown, SourceRange(),
                            "`-D {}` names a parameter that the program does not have",
                            overrides[i].name);
      return std::nullopt;
    }
    return figures;
  }

  /// All combinations were refused: the diagnostics of the first one say why, unless it lacks
  /// nothing but memory.
  int refused(Session& session, const views::Tuning& tuning, bool interrupted) {
    if (interrupted && tuning.tried() == 0) return kInterrupted;
    Session first(console_, fixed_);
    look_at(first, tuning.overrides_of(first_), tuning.name_of(first_));
    const bool has_errors = first.sink().has_errors();
    Session& reports = has_errors ? first : session;
    auto&& report =
        reports.sink().report(Code::nothing_legal, SourceRange(), "no combination is legal: {}",
                              tuning.counts_text(combinations_));
    if (has_errors)
      report.hint("the other errors are those of `{}`, the first one", tuning.name_of(first_));
    return reports.finish();
  }

  void write(Session& session, const views::Tuning& tuning) {
    if (!arguments_.output.empty()) {
      std::map<std::string, std::string> chosen = given_;
      const views::Choice& best = tuning.best()->choice;
      for (std::size_t i = 0; i < holes_.size(); ++i)
        chosen[holes_[i].name] = holes_[i].literals[best[i]];
      const std::string comment = "Written by `piper tune " + arguments_.positional.front() +
                                  "`: " + tuning.counts_text(combinations_) + ".\n" +
                                  tuning.reason_text() + ".";
      session.write_file(arguments_.output,
                         tuned_source(*session.compilation().program(),
                                      session.context().locations.files(), chosen, comment));
    }
    if (arguments_.format == "svg") {
      console_.out << picture(tuning);
    } else if (arguments_.format == "json") {
      std::string text;
      llvm::raw_string_ostream(text) << llvm::json::Value(tuning.json(combinations_)) << "\n";
      console_.out << text;
    } else {
      console_.out << tuning.text(combinations_);
      if (takes_seconds())
        console_.out
            << "times are those of one core for each device; `--machine` or `--rates` states others\n";
    }
  }

  std::string picture(const views::Tuning& tuning) const {
    std::vector<pictures::FrontPoint> points;
    const std::string chosen = tuning.name_of(tuning.best()->choice);
    for (const views::Tuning::Point& point : tuning.points()) {
      const bool on_front =
          std::any_of(tuning.front().begin(), tuning.front().end(),
                      [&](const auto& row) { return tuning.name_of(row.choice) == point.name; });
      points.push_back({point.bytes, point.time, point.name, on_front, point.name == chosen});
    }
    std::stable_sort(points.begin(), points.end(),
                     [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
    const bool seconds = tuning.best()->figures.timeline.unit == passes::Timeline::Unit::seconds &&
                         tuning.time_key() != "bubble";
    return pictures::front_svg(
        points, arguments_.positional.front() + ": " + tuning.counts_text(combinations_),
        std::string(tuning.time_key()) + (seconds ? " in seconds" : ""));
  }

  Console& console_;
  const Arguments& arguments_;
  Arguments fixed_;  // without the sizes that have several values
  std::string input_, name_;
  bool of_train_ = false;
  std::vector<views::Hole> holes_;
  views::Choice first_;                       // the combination that is tried first
  std::set<std::string> params_;              // of the file
  std::map<std::string, std::string> given_;  // literals of params that `-D` gives
  std::uint64_t combinations_ = 0;
};

}  // namespace

int run_tune(Console& console, const Arguments& arguments) {
  return Tune(console, arguments).run();
}

}  // namespace piper::tools
