// Commands that look into an order: step by step, why a rank is idle, the effect of another order.

#include <algorithm>
#include <charconv>
#include <cmath>

#include "frontend/repl/changed_order.h"
#include "frontend/repl/command_functions.h"
#include "frontend/repl/session.h"
#include "frontend/service/nearest.h"
#include "frontend/views/orders_view.h"
#include "ir/byte_text.h"

namespace piper::repl {
namespace {

template <typename Number>
std::optional<Number> number_of(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && !text.empty()
             ? std::optional(value)
             : std::nullopt;
}

std::optional<pictures::Picture> picture_of(Session& session, const Chosen& chosen,
                                            std::optional<Session::Simulated> simulated) {
  if (!simulated) return std::nullopt;
  return pictures::make_picture(chosen.title(), std::move(simulated->timeline),
                                &simulated->plan->dag, session.shown(chosen).locations());
}

/// `4`, or of a plan in seconds `4ms`.
std::optional<double> time_of(std::string_view word, passes::Timeline::Unit unit) {
  double scale = 1;
  if (unit == passes::Timeline::Unit::seconds) {
    for (const auto& [name, seconds] :
         {std::pair{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1.0}}) {
      if (!word.ends_with(name)) continue;
      scale = seconds;
      word.remove_suffix(std::string_view(name).size());
      break;
    }
  }
  const auto time = number_of<double>(word);
  return time && *time >= 0 && std::isfinite(*time) ? std::optional(*time * scale) : std::nullopt;
}

/// A rank by its number, as pictures count them.
std::optional<std::uint32_t> rank_of(Session& session, const std::string& word, std::size_t ranks) {
  const auto rank = number_of<std::uint32_t>(word);
  if (rank && *rank < ranks) return rank;
  session.fail(Code::no_such_operation,
               "ranks are 0 to " + std::to_string(ranks == 0 ? 0 : ranks - 1),
               "there is no rank `{}`", word);
  return std::nullopt;
}

/// The position of an operation of a row, by the text of its cell.
std::optional<std::size_t> position_of(Session& session, const std::vector<std::string>& labels,
                                       const std::string& word, std::uint32_t rank) {
  const auto found = std::find(labels.begin(), labels.end(), word);
  if (found != labels.end()) return static_cast<std::size_t>(found - labels.begin());
  const auto meant = nearest(word, labels);
  session.fail(Code::no_such_operation,
               meant ? "did you mean `" + *meant + "`?" : "`:orders` lists its operations",
               "rank {} has no operation `{}`", rank, word);
  return std::nullopt;
}

/// Activations, or of a plan bytes.
double peak_of(const passes::Timeline& timeline, std::size_t rank) {
  return timeline.unit == passes::Timeline::Unit::seconds
             ? static_cast<double>(timeline.ranks[rank].peak_bytes)
             : timeline.ranks[rank].peak;
}

std::string change_text(const passes::Timeline& a, const passes::Timeline& b) {
  const auto text_of = [&](double peak) {
    return a.unit == passes::Timeline::Unit::seconds ? bytes_text(peak)
                                                     : pictures::time_text(peak, a.unit);
  };
  double most_before = 0, most_after = 0;
  std::string text = "makespan " + pictures::time_text(a.makespan, a.unit) + " -> " +
                     pictures::time_text(b.makespan, b.unit) + ", bubble " +
                     pictures::share_text(a.bubble_span) + " -> " +
                     pictures::share_text(b.bubble_span) + " of the span and " +
                     pictures::share_text(a.bubble_makespan) + " -> " +
                     pictures::share_text(b.bubble_makespan) + " of the makespan";
  for (std::size_t i = 0; i < a.ranks.size() && i < b.ranks.size(); ++i) {
    const double before = peak_of(a, i), after = peak_of(b, i);
    most_before = std::max(most_before, before);
    most_after = std::max(most_after, after);
    if (text_of(before) != text_of(after))
      text += ", peak of " + a.ranks[i].name + " " + text_of(before) + " -> " + text_of(after);
  }
  if (std::abs(most_before - most_after) < 1e-9) text += ", largest peak as it was";
  return text + "\n";
}

/// Compiles a strategy with another order; null, and diagnostics in `sink`, if the passes refuse
/// it.
std::optional<dag::Dag> with_order(service::Compilation& compilation, service::Subject subject,
                                   const passes::OrdersTable& table, const dag::Dag& dag,
                                   dag::Level level, DiagnosticSink& sink) {
  directive::Strategy& strategy = subject.lowered.strategy;
  auto order = order_of(table, dag, strategy.device_sets);
  if (!order) return std::nullopt;
  std::erase_if(strategy.directives, [](const directive::Directive& directive) {
    return std::holds_alternative<directive::Order>(directive);
  });
  strategy.directives.emplace_back(std::move(*order));
  return compilation.compile(subject, {level, false, {}}, sink);
}

}  // namespace

bool step(Session& session, const Words& words) {
  const std::optional<Chosen> chosen = session.choose("");
  if (!chosen) return false;
  Stepper& stepper = session.stepper();
  const std::string word = words.first();
  const auto count = word.empty() ? std::optional(1LL) : number_of<long long>(word);
  if (!count && word != "first" && word != "last") {
    return session.fail(Code::bad_command_words,
                        "write `:step`, `:step 10`, `:step -1`, `:step first` or `:step last`",
                        "`{}` is no number of steps", word);
  }
  if (!stepper.is_of(chosen->title())) {
    auto picture = picture_of(session, *chosen, session.simulate_orders(*chosen));
    if (!picture) return false;
    stepper.begin(std::move(*picture));
    if (word.empty()) {
      session.say(chosen->title() + "\n" + stepper.text());
      return true;
    }
  }
  const auto all = static_cast<long long>(stepper.size());
  stepper.move(count ? *count : word == "last" ? all : -all);
  session.say(stepper.text());
  return true;
}

bool why(Session& session, const Words& words) {
  const std::optional<Chosen> chosen = session.choose("");
  if (!chosen) return false;
  const auto picture = picture_of(session, *chosen, session.simulate(*chosen));
  if (!picture) return false;
  const bool seconds = picture->timeline.unit == passes::Timeline::Unit::seconds;
  const auto time = time_of(words.plain[1], picture->timeline.unit);
  if (!time) {
    return session.fail(Code::bad_command_words,
                        "write `:why 1 " + std::string(seconds ? "4ms" : "4") +
                            "`: a rank and a time of `:timeline`",
                        "`{}` is no time", words.plain[1]);
  }
  const std::vector<passes::Timeline::Rank>& ranks = picture->timeline.ranks;
  const auto named =
      std::find_if(ranks.begin(), ranks.end(),
                   [&](const passes::Timeline::Rank& each) { return each.name == words.plain[0]; });
  const auto rank = named != ranks.end()
                        ? std::optional(static_cast<std::uint32_t>(named - ranks.begin()))
                        : rank_of(session, words.plain[0], ranks.size());
  if (!rank) return false;
  session.say(*why_text(*picture, *rank, *time));
  return true;
}

bool what_if(Session& session, const Words& words) {
  const bool swap = words.plain[0] == "swap" && words.plain.size() == 4;
  const bool before = words.plain.size() == 5 && words.plain[3] == "before",
             after = words.plain.size() == 5 && words.plain[3] == "after";
  if (!swap && !(words.plain[0] == "move" && (before || after))) {
    return session.fail(
        Code::bad_command_words,
        "write `:what-if swap 1 F2 B0`, `:what-if move 1 F2 before B0` or `:what-if move 1 F2 after B0`",
        "`:what-if` changes the order of one rank");
  }
  const std::optional<Chosen> chosen = session.choose("");
  if (!chosen) return false;
  auto simulated = session.simulate(*chosen);
  if (!simulated) return false;
  const std::shared_ptr<const service::Plan> plan = simulated->plan;
  const passes::Timeline now = std::move(simulated->timeline);
  const auto subject = chosen->document->subject(chosen->request(), &session.interrupt());
  const passes::OrdersTable as_written = passes::orders_table(plan->dag);
  const auto rank = rank_of(session, words.plain[1], as_written.rows.size());
  if (!rank) return false;
  const std::vector<std::string> labels = views::order_labels(as_written)[*rank];
  const auto first = position_of(session, labels, words.plain[2], *rank),
             second = position_of(session, labels, words.plain.back(), *rank);
  if (!first || !second) return false;
  passes::OrdersTable changed = as_written;
  if (swap) {
    swap_operations(changed, *rank, *first, *second);
  } else {
    move_operation(changed, *rank, *first, *second + (after ? 1 : 0));
  }
  bool rewritten = false;
  std::string drawn, change, title = "with";
  for (std::size_t i = 2; i < words.plain.size(); ++i) title += " " + words.plain[i];
  const service::Document::Done done = chosen->document->during(
      &session.interrupt(), [&](service::Compilation& compilation, DiagnosticSink& sink) {
        DiagnosticSink unread(compilation.context().locations);
        rewritten = with_order(compilation, *subject.value, as_written, plan->dag,
                               dag::Level::ordered, unread)
                        .has_value();
        if (!rewritten) return;
        const auto dag = with_order(compilation, *subject.value, changed, plan->dag,
                                    session.costs().needed(), sink);
        if (!dag) return;
        auto then = views::simulate(session.costs(), *dag, sink);
        if (!then) return;
        change = change_text(now, *then);
        drawn =
            views::grid_text(passes::orders_table(*dag), *dag, session.screen(), session.costs());
      });
  if (done.status == service::Status::cancelled) throw Cancelled();
  if (done.status == service::Status::done && !rewritten) {
    return session.fail(
        Code::no_order_to_change, "change the lines that make it",
        "the order of `{}` has regions in pieces or groups of sequences, which cannot be written anew",
        chosen->name);
  }
  if (change.empty()) {
    session.say("that cannot run:\n");
    session.finish(done.status, done.diagnostics, *chosen->document);
    return done.status == service::Status::done;
  }
  session.say(change + drawn);
  return true;
}

}  // namespace piper::repl
