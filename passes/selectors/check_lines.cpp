#include "passes/selectors/check_lines.h"

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "passes/selectors/select.h"

namespace piper::passes {

using directive::Part;

namespace {

template <typename Line, typename Check>
bool check_each(const directive::Strategy& strategy, DiagnosticSink& sink, Check check) {
  const std::size_t errors = sink.error_count();
  for (const directive::Directive& directive : strategy.directives) {
    if (const auto* line = std::get_if<Line>(&directive)) check(*line);
  }
  return sink.error_count() == errors;
}

void check_replicate(const directive::Replicate& replicate, const directive::Strategy& strategy, const Context& context, DiagnosticSink& sink) {
  if (replicate.prefetch && replicate.zero < 3) {
    sink.report(Code::nothing_to_prefetch, directive::narrowest(replicate.prefetch_loc, replicate.loc), "with `zero: {}` each replica keeps its parameters whole, and there is nothing to fetch ahead",
                replicate.zero)
        .hint("leave `prefetch` out, or write `zero: 3`");
  }
  if (replicate.reduce && (*replicate.reduce == directive::Reduce::step) == (replicate.zero > 1)) {
    sink.report(Code::reduction_refused, directive::narrowest(replicate.reduce_loc, replicate.loc), "`reduce: {}` does not go with `zero: {}`: {}", directive::reduce_name(*replicate.reduce), replicate.zero,
                replicate.zero > 1 ? "whole gradients would be kept until the end of the step" : "gradients are kept whole, and are summed over the replicas once per step")
        .hint("{}", replicate.zero > 1 ? "write `reduce: each` or `reduce: run`, or `zero: 1`" : "leave `reduce` out, or write `zero: 2`");
  }
  if (replicate.bucket_bytes && *replicate.bucket_bytes <= 0) {
    sink.report(Code::invalid_bucket, replicate.loc, "a bucket of {} bytes holds no parameter", *replicate.bucket_bytes).hint("write for example `bucket: 25MiB`");
  }
  const Mesh& mesh = strategy.mesh;
  for (const Symbol axis : replicate.axes) {
    if (mesh.find(axis) < mesh.axes.size()) continue;
    std::string axes;
    for (const MeshAxis& a : mesh.axes) axes += (axes.empty() ? "`" : ", `") + std::string(context.text(a.name)) + "`";
    sink.report(Code::unknown_axis, replicate.loc, "mesh `{}` has no axis `{}`", context.text(mesh.name), context.text(axis)).hint("its axes are {}", axes);
  }
  for (const directive::Selector& target : replicate.targets) {
    const bool dims = std::any_of(target.coordinates.begin(), target.coordinates.end(), [&](const directive::Coordinate& c) { return is_split_into(strategy, c.name); });
    if (!dims && !target.pass && target.part == Part::none) continue;
    sink.report(Code::selector_not_allowed, directive::narrowest(target.loc, replicate.loc), "a region is replicated with all its work; `{}` is a part of it",
                print_selector(target, context.symbols))
        .hint("name the region alone");
  }
}

void check_stream(const directive::Stream& stream, const Context& context, DiagnosticSink& sink, const llvm::DenseSet<Symbol>& unknown) {
  const std::string_view name = context.text(stream.name);
  if (name == kComputeStream) {
    sink.report(Code::stream_refused, stream.loc, "the stream `{}` is where chunks run, communication cannot be put on it", name).hint("choose another name");
    return;
  }
  if (stream.window == 0u) {
    sink.report(Code::window_below_least, stream.loc, "the stream `{}` has a window of 0 messages, so that nothing could be received", name)
        .hint("write 1 or more, or leave `window` out: the least one that works is chosen");
    return;
  }
  const auto bounded = [](const directive::Selector& target) { return target.part == Part::send || target.part == Part::recv; };
  if (stream.window && std::none_of(stream.targets.begin(), stream.targets.end(), bounded)) {
    sink.report(Code::stream_refused, directive::narrowest(stream.window_loc, stream.loc),
                "a window bounds messages that have arrived and are not yet read, and the stream `{}` carries none", name)
        .hint("leave `window` out");
  }
  const bool names_unknown = std::any_of(stream.targets.begin(), stream.targets.end(), [&](const directive::Selector& target) {
    return std::any_of(target.coordinates.begin(), target.coordinates.end(), [&](const directive::Coordinate& c) { return unknown.contains(c.name); });
  });
  for (const directive::Selector& target : stream.targets) {
    if (target.part == Part::enter || target.part == Part::leave) {
      sink.report(Code::named_communication_unavailable, target.loc, "`.{}` has no place on a stream: there is no such communication", directive::part_name(target.part))
          .hint("`.send`, `.recv`, `.reduce` and `.gather` can be named");
    } else if (target.part == Part::none && !names_unknown) {
      sink.report(Code::stream_refused, target.loc, "`{}` names work, but a stream carries communication", print_selector(target, context.symbols))
          .hint("name a part of it: `.send`, `.recv`, `.reduce` or `.gather`");
    }
  }
}

/// A line that speaks of regions, and of instances or passes only where it says so.
void check_treated(const std::vector<directive::Selector>& targets, LocId line, bool instances, std::string_view rule, const directive::Strategy& strategy, const Context& context,
                   DiagnosticSink& sink) {
  for (const directive::Selector& target : targets) {
    const bool part = std::any_of(target.coordinates.begin(), target.coordinates.end(), [&](const directive::Coordinate& c) { return !instances && (c.rest || is_split_into(strategy, c.name)); });
    if (!part && !target.pass && target.part == Part::none) continue;
    sink.report(Code::selector_not_allowed, directive::narrowest(target.loc, line), "{}; `{}` is a part of it", rule, print_selector(target, context.symbols)).hint("name the region alone");
  }
}

}  // namespace

bool is_split_into(const directive::Strategy& strategy, Symbol name) {
  return std::any_of(strategy.directives.begin(), strategy.directives.end(), [&](const directive::Directive& directive) {
    const auto* split = std::get_if<directive::Split>(&directive);
    return split != nullptr && std::any_of(split->into.begin(), split->into.end(), [&](const directive::NamedExtent& dim) { return dim.name == name; });
  });
}

bool check_transforms(const directive::Strategy& strategy, const Context& context, DiagnosticSink& sink) {
  return check_each<directive::Order>(strategy, sink, [&](const directive::Order& order) {
    if (order.transforms.empty()) return;
    using Kind = directive::Order::Transform::Kind;
    const directive::Order::Transform& first = order.transforms.front();
    if (first.kind == Kind::trim) {
      const std::vector<Symbol>& missing = strategy.missing.names;
      if (strategy.missing.unknown || std::find(missing.begin(), missing.end(), first.dim) != missing.end()) return;
      const std::string_view name = context.text(first.dim);
      sink.report(Code::trim_unknown_dimension, first.loc, "`trim` names `{}`, but the batch is not split into `{}`", name, name).hint("name a dimension of a `split` line");
      return;
    }
    sink.report(Code::transform_unavailable, first.loc, "the order transform `{}` is not available",
                first.kind == Kind::fill ? "fill" : first.kind == Kind::compact ? "compact" : "squeeze")
        .hint("write the order that it would give with explicit operations; `trim` is available");
  });
}

bool check_places(const directive::Strategy& strategy, const Context& context, DiagnosticSink& sink) {
  return check_each<directive::Place>(strategy, sink, [&](const directive::Place& place) {
    for (const directive::Selector& target : place.targets) {
      if (target.pass == Pass::R) {
        sink.report(Code::selector_not_allowed, directive::narrowest(target.loc, place.loc), "what is recomputed runs where its backward does; `{}` cannot be placed",
                    print_selector(target, context.symbols))
            .hint("place `B`");
      }
      if (target.part == Part::none) continue;
      sink.report(Code::selector_not_allowed, directive::narrowest(target.loc, place.loc), "communication stands where its data is made and used; `{}` cannot be placed",
                  print_selector(target, context.symbols))
          .hint("place the region's work instead");
    }
  });
}

bool check_replicates(const directive::Strategy& strategy, const Context& context, DiagnosticSink& sink) {
  return check_each<directive::Replicate>(strategy, sink, [&](const directive::Replicate& replicate) { check_replicate(replicate, strategy, context, sink); });
}

bool check_treatments(const directive::Strategy& strategy, const Context& context, DiagnosticSink& sink) {
  const bool recomputes = check_each<directive::Recompute>(strategy, sink, [&](const directive::Recompute& line) {
    check_treated(line.targets, line.loc, true, "the whole forward of a region runs again", strategy, context, sink);
  });
  const bool offloads = check_each<directive::Offload>(strategy, sink, [&](const directive::Offload& line) {
    const bool state = line.what == directive::Offload::What::optimizer;
    check_treated(line.targets, line.loc, !state, state ? "the optimizer state of all weights that a region uses is offloaded" : "what all backwards of a region read is offloaded", strategy, context, sink);
  });
  const bool freezes = check_each<directive::Freeze>(strategy, sink, [&](const directive::Freeze& line) {
    check_treated(line.targets, line.loc, false, "the weights of a region are frozen for all that reads them", strategy, context, sink);
  });
  return recomputes && offloads && freezes;
}

bool check_streams(const directive::Strategy& strategy, const Context& context, DiagnosticSink& sink, const llvm::DenseSet<Symbol>& unknown) {
  std::vector<const directive::Stream*> first;  // of each name: lines of one name are one stream
  return check_each<directive::Stream>(strategy, sink, [&](const directive::Stream& stream) {
    const auto same = std::find_if(first.begin(), first.end(), [&](const directive::Stream* other) { return other->name == stream.name; });
    if (same != first.end() && ((*same)->window != stream.window || (*same)->high_priority != stream.high_priority)) {
      sink.report(Code::stream_conflict, stream.loc, "the stream `{}` has other settings here", context.text(stream.name))
          .related((*same)->loc, "it is set up here")
          .hint("give all targets of `{}` in one line, or use two names", context.text(stream.name));
      return;
    }
    if (same == first.end()) first.push_back(&stream);
    check_stream(stream, context, sink, unknown);
  });
}

}  // namespace piper::passes
