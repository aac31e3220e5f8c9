#pragma once
// A session: what was defined, what was set, and the answer to each entry.
//
//   Session session(host, interrupt);
//   session.execute("schedule wave(p: axis, m: int) { ... }");   // prints what it is
//   session.execute(":grid wave p=4 m=8");                       // prints its grid
//   session.execute("stage[1] mb[0..2]");                        // prints the value
//
// Guarantees: an entry that fails prints why and changes no definition and no setting; the session
// goes on after it, also after an interrupt or a lack of memory. Each version of the text is a
// document of the service with a Context of its own.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/repl/entry.h"
#include "frontend/repl/host.h"
#include "frontend/repl/sources.h"
#include "frontend/repl/stepper.h"
#include "frontend/repl/words.h"
#include "frontend/service/workspace.h"
#include "frontend/views/simulation.h"

namespace piper::repl {

/// The subject of a command: a train or schedule at sizes.
struct Chosen {
  std::shared_ptr<service::Document> document;
  std::string name;
  std::vector<lower::Override> values = {};  // all that it needs
  bool in_session = false;                   // not in the library
  bool is_train = false;

  service::SubjectRequest request() const { return {name, values}; }
  /// `zbv p=4 m=8`
  std::string title() const { return values.empty() ? name : name + " " + text_of(values); }
};

/// The name of an unnamed entry in diagnostics.
inline constexpr const char* kInput = "input";

class Session {
 public:
  Session(Host& host, Interrupt& interrupt);

  /// Answers an entry, which may have several lines; false when it failed.
  bool execute(std::string_view entry);
  bool ended() const { return ended_; }
  /// Whether the last entry was.
  bool interrupted() const { return interrupted_; }
  /// Reads changed files again, and says so; false if none has changed.
  bool notice_changes();
  bool has_changes();
  /// Reports an entry that ends in the middle.
  void report_half_entry(std::string_view entry);
  void say_interrupted();

  // ---- for commands

  Host& host() { return host_; }
  Interrupt& interrupt() { return interrupt_; }
  Sources& sources() { return sources_; }
  views::SimulationCosts& costs() { return costs_; }
  pictures::Screen screen() const { return host_.screen ? host_.screen() : pictures::Screen(); }
  void say(std::string_view text);
  /// Prints a picture; if it is drawn again for a definition, only if it has changed.
  void show(std::string picture);
  /// Prints an error of the session itself; gives false.
  template <typename... Args>
  bool fail(Code code, const std::string& hint,
            MessagePattern<std::type_identity_t<Args>...> pattern, const Args&... args) {
    const LocationTable none;
    DiagnosticSink sink(none);
    auto builder = sink.report(code, SourceRange(), pattern, args...);
    if (!hint.empty()) builder.hint("{}", hint);
    return print_diagnostics(sink.sorted(), none, {}, {});
  }
  /// Prints diagnostics with the reader's files and lines; true if none is an error.
  bool print_diagnostics(const std::vector<Diagnostic>& diagnostics, const LocationTable& locations,
                         std::string_view path, const std::vector<SourceFragment>& fragments);

  /// The train or schedule of that name, of the session or else of the library; without a name the
  /// last one, or the only one of the session. Nothing, and a message, if there is none.
  std::optional<Chosen> choose(const std::string& name);
  /// Work on its document; false, and a message, when it failed.
  bool during(const Chosen& chosen,
              const std::function<void(service::Compilation&, DiagnosticSink&)>& work);
  /// Its plan; null after a message.
  std::shared_ptr<const service::Plan> plan(const Chosen& chosen, dag::Level level);
  /// Its timeline at the session's costs, on its machine if one was chosen, and the plan that ran.
  struct Simulated {
    std::shared_ptr<const service::Plan> plan;
    passes::Timeline timeline;
  };
  std::optional<Simulated> simulate(const Chosen& chosen, dag::Level level = dag::Level::ordered);
  /// The same of the orders, whatever machine there is.
  std::optional<Simulated> simulate_orders(const Chosen& chosen);
  /// A machine of the session, or FILE.pipe[:NAME]; empty: none. False after a message.
  bool set_machine(const std::string& word);
  const std::string& machine() const { return machine_; }
  /// A table of its places with the reader's files and lines.
  Shown shown(const Chosen& chosen) const;

  /// Prints the diagnostics of a request; throws Cancelled if it was interrupted. False if it
  /// failed.
  bool finish(service::Status status, const std::vector<Diagnostic>& diagnostics,
              const service::Document& document);

  std::shared_ptr<service::Document> document() const { return document_; }
  const std::vector<lower::Override>& values() const { return values_; }
  /// Sets sizes and params, and draws again; restores them if that fails.
  bool set(const std::vector<lower::Override>& values);
  bool unset(const std::vector<std::string>& names);
  /// Whether there is a picture that changes with sizes and costs.
  bool draws() const { return drawn_.has_value(); }
  /// Draws the last picture again, if there is one that may have changed.
  bool redraw(bool library_too);
  bool load(const std::string& path);
  bool define(const Entry& entry);
  bool set_model(const std::string& name);
  void end() { ended_ = true; }
  Stepper& stepper() { return stepper_; }
  /// Text of an editor that was refused.
  std::optional<std::string> draft(const std::string& name) const;
  void keep_draft(const std::string& name, std::string text) { drafts_[name] = std::move(text); }
  void drop_draft(const std::string& name) { drafts_.erase(name); }

  /// Names for an entry, sorted: for completion.
  std::vector<std::string> names();
  /// The subject whose labels and parameters an expression may name; empty: none.
  std::string subject_of_values();
  /// The trains and schedules that the session defines; those of the library; all.
  std::vector<std::string> own_subjects();
  const std::vector<std::string>& library();
  std::vector<std::string> subjects();
  /// All that the session defines, in text order.
  std::vector<std::string> defined();
  /// The parameters of a subject; empty for an unknown one.
  std::vector<std::string> parameters_of(const std::string& subject);
  const std::string& last_subject() const { return subject_; }

 private:
  struct Binding {
    std::string name, text;  // `let x = 3`; an assignment has the name of its variable
    bool assigns = false;
  };
  /// A command that drew something, to be drawn again.
  struct Drawn {
    std::string command;
    std::vector<std::string> words;
    std::string subject;
  };

  bool answer(std::string_view text);
  bool execute_command(const std::string& line);
  bool bind(const Entry& entry);
  bool evaluate(const std::string& expression);
  /// Reads the chosen machine at the present sizes; false after a message.
  bool find_machine();
  std::optional<Simulated> simulate_at(const Chosen& chosen, const views::SimulationCosts& costs,
                                       dag::Level level);
  /// The value of an expression after the bindings.
  struct Evaluated {
    std::string text;  // empty: it has no value
    bool is_order = false;
    std::string reported;  // rendered diagnostics, if it has none
  };
  /// A text with the bindings and a last line inside a schedule or train.
  struct Probe {
    Composed composed;
    std::vector<lower::Override> values;
  };
  enum class Around : std::uint8_t { parameters, schedule };
  Probe probe(std::span<const Binding> bindings, const std::string& last_name,
              const std::string& before, const std::string& last, const std::string& after,
              Around around);
  Evaluated evaluate_with(std::span<const Binding> bindings, const std::string& expression,
                          Around around, bool as_selector);
  Evaluated value_of(std::span<const Binding> bindings, const std::string& expression);
  /// The first name of a selector's text that is not a region, dimension or axis of the subject;
  /// empty if all are, or if there is no subject.
  std::string unknown_label(const std::string& selector);
  /// A message if a value names an unknown label.
  Evaluated with_known_labels(Evaluated value);
  bool show_order(const std::string& expression);
  /// The new text becomes the document's.
  void renew();
  bool describe_definition(const std::string& name, bool again);
  /// If a name is a `let`, adds that items do not see it.
  Diagnostic with_session_hint(Diagnostic diagnostic, const Shown& shown) const;

  std::shared_ptr<service::Document> document_of(const std::string& name);
  std::optional<service::Declared> declared(const std::string& name);
  std::optional<std::string> name_of_subject(const std::string& written);
  bool is_parameter(const std::string& name);

  Host& host_;
  Interrupt& interrupt_;
  service::Workspace workspace_;
  Sources sources_;
  Composed composed_;
  std::shared_ptr<service::Document> document_;
  std::vector<Binding> bindings_;
  std::vector<lower::Override> values_;
  views::SimulationCosts costs_;
  std::string machine_;  // of `:machine`
  std::string subject_;  // of the last command
  std::string model_;    // of `:model`
  std::optional<Drawn> drawn_;
  std::string shown_;  // the last picture
  bool only_changes_ = false;
  std::vector<lower::Override> asked_;  // of the command that runs
  std::vector<std::string> library_;
  std::string pending_;  // a file that has mistakes: it is loaded when it has changed
  std::map<std::string, std::string> watched_;  // files, as they were read
  std::map<std::string, std::string> drafts_;
  Stepper stepper_;
  bool ended_ = false, interrupted_ = false;
};

}  // namespace piper::repl
