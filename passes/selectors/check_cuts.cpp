#include "passes/selectors/check_cuts.h"

#include <algorithm>
#include <string>

#include "ir/diagnostics/counted.h"
#include "passes/selectors/select.h"
#include "passes/selectors/split_dimensions.h"

namespace piper::passes {

using directive::Partition;
using directive::Split;

namespace {

template <typename Line>
std::vector<const Line*> lines_of(const directive::Strategy& strategy) {
  std::vector<const Line*> lines;
  for (const directive::Directive& directive : strategy.directives) {
    if (const auto* line = std::get_if<Line>(&directive)) lines.push_back(line);
  }
  return lines;
}

// ---- partitions

bool needs_parts_of(const Partition& partition, const Partition& other) {
  return std::any_of(partition.region.coordinates.begin(), partition.region.coordinates.end(),
                     [&](const directive::Coordinate& c) { return c.name == other.into.name; });
}

struct InOrder {
  std::vector<const Partition*> applied;
  std::vector<const Partition*> cycle;  // remaining partitions
};

InOrder put_in_order(std::vector<const Partition*> pending) {
  InOrder order;
  // A partition that names another's parts follows it; otherwise fewer coordinates come first.
  std::stable_sort(pending.begin(), pending.end(), [](const auto* a, const auto* b) {
    return a->region.coordinates.size() < b->region.coordinates.size();
  });
  while (!pending.empty()) {
    const auto free = std::find_if(pending.begin(), pending.end(), [&](const Partition* partition) {
      return std::none_of(pending.begin(), pending.end(), [&](const Partition* other) {
        return other != partition && needs_parts_of(*partition, *other);
      });
    });
    if (free == pending.end()) break;
    order.applied.push_back(*free);
    pending.erase(free);
  }
  order.cycle = std::move(pending);
  return order;
}

void check_region(const Partition& partition, const Nameable& nameable,
                  const directive::Strategy& strategy, DiagnosticSink& sink) {
  const directive::Selector& region = partition.region;
  const bool cut = std::any_of(
      region.coordinates.begin(), region.coordinates.end(), [&](const directive::Coordinate& c) {
        return c.rest || (is_split_into(strategy, c.name) && nameable.regions.count(c.name) == 0);
      });
  if (!cut && !region.pass && region.part == directive::CommClass::none) return;
  sink.report(
          Code::selector_not_allowed, directive::narrowest(region.loc, partition.loc),
          "a partition cuts a region of the model, with all its passes, instances and communication; `{}` is a part of its work",
          print_selector(region, nameable.context.symbols))
      .hint("name the region alone");
}

void check_sizes(const Partition& partition, DiagnosticSink& sink) {
  if (partition.sizes.empty() || partition.sizes.size() == partition.into.extent) return;
  sink.report(Code::sizes_do_not_match, directive::narrowest(partition.sizes_loc, partition.loc),
              "`sizes` has {} for {}", counted(partition.sizes.size(), "entry", "entries"),
              counted(partition.into.extent, "stage"));
}

void report_repeated(const Partition& partition, const Partition& other, const Context& context,
                     DiagnosticSink& sink) {
  const std::string_view name = context.text(partition.into.name);
  if (print_selector(partition.region, context.symbols) ==
      print_selector(other.region, context.symbols)) {
    sink.report(Code::partitioned_twice, partition.loc,
                "the same work is partitioned into `{}` twice", name)
        .related(other.loc, "the other partition")
        .hint("keep one; a second cut of the same work takes another name");
    return;
  }
  sink.report(Code::partition_conflict, partition.loc, "two partitions make `{}`, and they differ",
              name)
      .related(other.loc, "the other one stands here")
      .hint("give the parts of one of them another name");
}

// ---- splits

bool is_everything(const directive::Selector& selector, const Context& context) {
  return !selector.pass && std::all_of(selector.coordinates.begin(), selector.coordinates.end(),
                                       [&](const directive::Coordinate& c) {
                                         return c.all && !c.rest && context.text(c.name) == "model";
                                       });
}

void check_dimension(const Split& split, const Nameable& nameable, DiagnosticSink& sink) {
  const Context& context = nameable.context;
  if (split.dim == nameable.batch.name || context.text(split.dim) == "batch") return;
  sink.report(Code::unknown_split_dimension, directive::narrowest(split.dim_loc, split.loc),
              "`{}` is not the dimension that counts samples", context.text(split.dim))
      .hint("write `split {} into ...`",
            nameable.batch.name.valid() ? context.text(nameable.batch.name) : "batch");
}

void check_targets(const Split& split, const Context& context, DiagnosticSink& sink) {
  for (const directive::Selector& target : split.targets) {
    if (is_everything(target, context)) continue;
    sink.report(Code::split_of_a_part, directive::narrowest(target.loc, split.loc),
                "only the whole model can be split; `{}` is a part of it",
                print_selector(target, context.symbols))
        .hint("leave `in ...` out, so that every region is split alike");
  }
}

void check_parts(const Split& split, const Context& context, DiagnosticSink& sink) {
  if (split.into.size() > dag::kMaxSplitDims) {
    sink.report(Code::split_conflict, split.loc,
                "the batch is split along {} dimensions; {} are possible", split.into.size(),
                dag::kMaxSplitDims)
        .hint("multiply some of them together");
  }
  for (auto dim = split.into.begin(); dim != split.into.end(); ++dim) {
    if (std::none_of(split.into.begin(), dim,
                     [&](const directive::NamedExtent& other) { return other.name == dim->name; }))
      continue;
    sink.report(Code::split_conflict, split.loc, "`{}` is named twice in one `split`",
                context.text(dim->name))
        .hint("give each dimension its own name");
  }
}

void check_division(const Split& split, const Nameable& nameable, DiagnosticSink& sink) {
  std::string how;
  std::int64_t parts = 1;
  for (const directive::NamedExtent& dim : split.into) {
    how += (how.empty() ? "`" : " x `") + std::string(nameable.context.text(dim.name)) + ": " +
           std::to_string(dim.extent) + "`";
    if (__builtin_mul_overflow(parts, std::int64_t{dim.extent}, &parts)) parts = INT64_MAX;
  }
  const LocId at =
      split.into.size() == 1 ? directive::narrowest(split.into.front().loc, split.loc) : split.loc;
  batch_divides(nameable.batch, parts, how, at, sink);
}

void check_namesakes(const Split& split, const Nameable& nameable,
                     const std::vector<const Partition*>& partitions, DiagnosticSink& sink) {
  for (const directive::NamedExtent& dim : split.into) {
    const auto partition =
        std::find_if(partitions.begin(), partitions.end(),
                     [&](const Partition* each) { return each->into.name == dim.name; });
    const auto region = nameable.regions.find(dim.name);
    if (partition == partitions.end() && region == nameable.regions.end()) continue;
    const std::string_view name = nameable.context.text(dim.name);
    auto report = sink.report(Code::split_name_taken, directive::narrowest(dim.loc, split.loc),
                              "`{}` already names regions of the model", name);
    if (partition != partitions.end()) {
      report.related(directive::narrowest((*partition)->into.loc, (*partition)->loc),
                     "the partition calls its parts `{}`", name);
    } else {
      report.related(region->second.loc, "this stands in a region `{}`", name);
    }
    report.hint("give the dimension another name");
  }
}

}  // namespace

std::vector<const Partition*> in_order(const directive::Strategy& strategy) {
  return put_in_order(lines_of<Partition>(strategy)).applied;
}

void check_partitions(const Nameable& nameable, const directive::Strategy& strategy,
                      llvm::DenseSet<Symbol>& uncertain, DiagnosticSink& sink) {
  const std::vector<const Partition*> lines = lines_of<Partition>(strategy);
  std::vector<const Partition*> single;
  for (const Partition* partition : lines) {
    check_region(*partition, nameable, strategy, sink);
    check_sizes(*partition, sink);
    const Partition* const first = *std::find_if(
        lines.begin(), lines.end(),
        [&](const Partition* other) { return other->into.name == partition->into.name; });
    if (first == partition) {
      single.push_back(partition);
      continue;
    }
    report_repeated(*partition, *first, nameable.context, sink);
    uncertain.insert(partition->into.name);
  }
  const std::vector<const Partition*> cycle = put_in_order(std::move(single)).cycle;
  if (cycle.empty()) return;
  sink.report(Code::partition_conflict, cycle[0]->loc,
              "these partitions cut each other's parts in a cycle")
      .related(cycle[1]->loc, "this one needs the parts of the first")
      .hint("cut a region of the model in one of them");
  for (const Partition* partition : cycle) uncertain.insert(partition->into.name);
}

void check_splits(const Nameable& nameable, const directive::Strategy& strategy,
                  llvm::DenseSet<Symbol>& uncertain, DiagnosticSink& sink) {
  const std::size_t errors = sink.error_count();
  const std::vector<const Split*> lines = lines_of<Split>(strategy);
  const std::vector<const Partition*> partitions = lines_of<Partition>(strategy);
  for (const Split* split : lines) {
    const std::size_t before = sink.error_count();
    check_dimension(*split, nameable, sink);
    check_targets(*split, nameable.context, sink);
    check_parts(*split, nameable.context, sink);
    check_namesakes(*split, nameable, partitions, sink);
    if (split == lines.front() || sink.error_count() > before) continue;
    sink.report(Code::dimension_split_twice, split->loc, "`{}` is split twice",
                nameable.context.text(split->dim))
        .related(lines.front()->loc, "the other split")
        .hint("write one split with all parts, such as `split {} into copy: 2, mb: 4`",
              nameable.context.text(split->dim));
  }
  if (lines.size() == 1) check_division(*lines.front(), nameable, sink);
  if (sink.error_count() == errors) return;
  for (const directive::NamedExtent& dim : dimensions(strategy)) uncertain.insert(dim.name);
}

}  // namespace piper::passes
