#include "passes/selectors/check_lines.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "llvm/ADT/DenseMap.h"
#include "passes/selectors/select.h"
#include "passes/selectors/split_dimensions.h"

namespace piper::passes {

using directive::CommClass;

namespace {

void check_place(const directive::Place& place, const Context& context, DiagnosticSink& sink) {
  for (const directive::Selector& target : place.targets) {
    if (target.pass == Pass::R) {
      sink.report(Code::selector_not_allowed, directive::narrowest(target.loc, place.loc),
                  "what is recomputed runs where its backward does; `{}` cannot be placed",
                  print_selector(target, context.symbols))
          .hint("place `B`");
    }
    if (target.part == CommClass::none) continue;
    sink.report(Code::selector_not_allowed, directive::narrowest(target.loc, place.loc),
                "communication stands where its data is made and used; `{}` cannot be placed",
                print_selector(target, context.symbols))
        .hint("place the region's work instead");
  }
}

void check_replicate(const directive::Replicate& replicate, const directive::Strategy& strategy,
                     const Context& context, DiagnosticSink& sink) {
  if (replicate.prefetch.value_or(0) > 0 && replicate.zero < 3) {
    sink.report(
            Code::nothing_to_prefetch, directive::narrowest(replicate.prefetch_loc, replicate.loc),
            "with `zero: {}` each replica keeps its parameters whole, and there is nothing to fetch ahead",
            replicate.zero)
        .hint("leave `prefetch` out, or write `zero: 3`");
  }
  if (replicate.reduce && (*replicate.reduce == directive::Reduce::step) == (replicate.zero > 1)) {
    sink.report(Code::reduction_refused, directive::narrowest(replicate.reduce_loc, replicate.loc),
                "`reduce: {}` does not go with `zero: {}`: {}",
                directive::reduce_name(*replicate.reduce), replicate.zero,
                replicate.zero > 1
                    ? "whole gradients would be kept until the end of the step"
                    : "gradients are kept whole, and are summed over the replicas once per step")
        .hint("{}", replicate.zero > 1
                        ? "write `reduce: microbatch` or `reduce: unit`, or `zero: 1`"
                        : "leave `reduce` out, or write `zero: 2`");
  }
  const Mesh& mesh = strategy.mesh;
  for (const Symbol axis : replicate.axes) {
    if (mesh.find(axis) < mesh.axes.size()) continue;
    std::string axes;
    for (const MeshAxis& a : mesh.axes)
      axes += (axes.empty() ? "`" : ", `") + std::string(context.text(a.name)) + "`";
    sink.report(Code::unknown_axis, replicate.loc, "mesh `{}` has no axis `{}`",
                context.text(mesh.name), context.text(axis))
        .hint("its axes are {}", axes);
  }
  for (const directive::Selector& target : replicate.targets) {
    const bool dims = std::any_of(
        target.coordinates.begin(), target.coordinates.end(),
        [&](const directive::Coordinate& c) { return is_split_into(strategy, c.name); });
    if (!dims && !target.pass && target.part == CommClass::none) continue;
    sink.report(Code::selector_not_allowed, directive::narrowest(target.loc, replicate.loc),
                "a region is replicated with all its work; `{}` is a part of it",
                print_selector(target, context.symbols))
        .hint("name the region alone");
  }
}

void check_stream(const directive::Stream& stream, const Context& context, DiagnosticSink& sink,
                  const llvm::DenseSet<Symbol>& unknown) {
  const std::string_view name = context.text(stream.name);
  if (name == kComputeStream) {
    sink.report(Code::stream_refused, stream.loc,
                "the stream `{}` is where chunks run, communication cannot be put on it", name)
        .hint("choose another name");
    return;
  }
  const auto bounded = [](const directive::Selector& target) {
    return target.part == CommClass::send || target.part == CommClass::recv;
  };
  if (stream.window && std::none_of(stream.targets.begin(), stream.targets.end(), bounded)) {
    sink.report(
            Code::stream_refused, directive::narrowest(stream.window_loc, stream.loc),
            "a window bounds messages that have arrived and are not yet read, and the stream `{}` carries none",
            name)
        .hint("leave `window` out");
  }
  const bool names_unknown = std::any_of(
      stream.targets.begin(), stream.targets.end(), [&](const directive::Selector& target) {
        return std::any_of(
            target.coordinates.begin(), target.coordinates.end(),
            [&](const directive::Coordinate& c) { return unknown.contains(c.name); });
      });
  for (const directive::Selector& target : stream.targets) {
    if (target.part == CommClass::enter || target.part == CommClass::leave) {
      sink.report(Code::named_communication_unavailable, target.loc,
                  "`.{}` has no place on a stream: there is no such communication",
                  directive::part_name(target.part))
          .hint("`.send`, `.recv`, `.reduce` and `.gather` can be named");
    } else if (target.part == CommClass::none && !names_unknown) {
      sink.report(Code::stream_refused, target.loc,
                  "`{}` names work, but a stream carries communication",
                  print_selector(target, context.symbols))
          .hint("name a part of it: `.send`, `.recv`, `.reduce` or `.gather`");
    }
  }
}

/// Checks a line about regions, which may name instances or passes only if `instances` allows it.
void check_treated(const std::vector<directive::Selector>& targets, LocId line, bool instances,
                   std::string_view rule, const directive::Strategy& strategy,
                   const Context& context, DiagnosticSink& sink) {
  for (const directive::Selector& target : targets) {
    const bool part = std::any_of(
        target.coordinates.begin(), target.coordinates.end(), [&](const directive::Coordinate& c) {
          return !instances && (c.rest || is_split_into(strategy, c.name));
        });
    if (!part && !target.pass && target.part == CommClass::none) continue;
    sink.report(Code::selector_not_allowed, directive::narrowest(target.loc, line),
                "{}; `{}` is a part of it", rule, print_selector(target, context.symbols))
        .hint("name the region alone");
  }
}

/// The lines of one name are one stream.
bool check_settings(const directive::Stream& stream, const directive::Stream& first,
                    const Context& context, DiagnosticSink& sink) {
  if (first.window == stream.window && first.priority == stream.priority) return true;
  sink.report(Code::stream_conflict, stream.loc, "the stream `{}` has other settings here",
              context.text(stream.name))
      .related(first.loc, "it is set up here")
      .hint("give all targets of `{}` in one line, or use two names", context.text(stream.name));
  return false;
}

/// Checks each line by its kind, except partitions, splits and orders, which are checked together.
class LineCheck {
 public:
  LineCheck(const directive::Strategy& strategy, const Context& context,
            const llvm::DenseSet<Symbol>& unknown, DiagnosticSink& sink)
      : strategy_(strategy), context_(context), unknown_(unknown), sink_(sink) {}

  void operator()(const directive::Partition&) {}
  void operator()(const directive::Split&) {}
  void operator()(const directive::Order&) {}
  void operator()(const directive::Require&) {}
  void operator()(const directive::Place& line) { check_place(line, context_, sink_); }
  void operator()(const directive::Replicate& line) {
    check_replicate(line, strategy_, context_, sink_);
  }
  void operator()(const directive::Stream& line) {
    const directive::Stream& first = *streams_.try_emplace(line.name, &line).first->second;
    if (check_settings(line, first, context_, sink_)) check_stream(line, context_, sink_, unknown_);
  }
  void operator()(const directive::Recompute& line) {
    check_treated(line.targets, line.loc, true, "the whole forward of a region runs again",
                  strategy_, context_, sink_);
  }
  void operator()(const directive::Offload& line) {
    const bool state = line.what == directive::Offload::What::optimizer;
    check_treated(line.targets, line.loc, !state,
                  state ? "the optimizer state of all weights that a region uses is offloaded"
                        : "what all backwards of a region read is offloaded",
                  strategy_, context_, sink_);
  }
  void operator()(const directive::Tune& line) {
    check_treated(line.targets, line.loc, false,
                  "the weights of a region are tuned for all that reads them", strategy_, context_,
                  sink_);
  }
  void operator()(const directive::Freeze& line) {
    check_treated(line.targets, line.loc, false,
                  "the weights of a region are frozen for all that reads them", strategy_, context_,
                  sink_);
  }

 private:
  const directive::Strategy& strategy_;
  const Context& context_;
  const llvm::DenseSet<Symbol>& unknown_;  // names, which may mean parts
  DiagnosticSink& sink_;
  llvm::DenseMap<Symbol, const directive::Stream*> streams_;  // the first line of each name
};

}  // namespace

void check_lines(const directive::Strategy& strategy, const Context& context,
                 const llvm::DenseSet<Symbol>& unknown, DiagnosticSink& sink) {
  LineCheck check(strategy, context, unknown, sink);
  for (const directive::Directive& directive : strategy.directives) std::visit(check, directive);
}

}  // namespace piper::passes
