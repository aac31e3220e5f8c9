#include "frontend/service/memory_advice.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "ir/byte_text.h"
#include "passes/plan/memory_table.h"
#include "passes/plan/requirements.h"
#include "passes/selectors/select.h"

namespace piper::service {

using namespace dag;
using passes::memory_table;
using passes::MemoryRow;
using passes::peak_memory;

namespace {

struct Saving {
  std::string line;
  directive::Strategy with;
};

template <typename Line>
bool has(const directive::Strategy& strategy) {
  return std::any_of(
      strategy.directives.begin(), strategy.directives.end(),
      [](const directive::Directive& line) { return std::holds_alternative<Line>(line); });
}

/// The targets of proposed lines: the parts of the program's partition, and the region that the
/// model repeats most, the outermost of equal ones; the whole model if there is neither.
std::vector<directive::Selector> pieces(const tensor::Graph& model,
                                        const directive::Strategy& strategy) {
  std::vector<directive::Selector> targets;
  const auto add = [&](Symbol name) {
    targets.emplace_back().coordinates.assign(1, {name, true, {}, {}});
  };
  std::set<Symbol> parts;
  for (const directive::Directive& line : strategy.directives) {
    if (const auto* partition = std::get_if<directive::Partition>(&line))
      parts.insert(partition->into.name);
  }
  if (!parts.empty()) add(*parts.begin());
  struct Repeated {
    std::set<std::uint32_t> indices;
    std::size_t depth = 0;
  };
  std::map<Symbol, Repeated> regions;
  for (const tensor::Node& node : model.nodes()) {
    std::size_t depth = 0;
    for (RegionId r = node.region; r.valid(); r = model.regions.parent(r)) ++depth;
    for (RegionId r = node.region; r.valid(); r = model.regions.parent(r), --depth) {
      Repeated& region = regions[model.regions.name(r)];
      region.depth = region.indices.empty() ? depth : std::min(region.depth, depth);
      region.indices.insert(model.regions.index(r));
    }
  }
  const Repeated* most = nullptr;
  Symbol name;
  for (const auto& [symbol, region] : regions) {
    if (parts.contains(symbol) || region.indices.size() < 2) continue;
    if (most != nullptr && std::pair(region.indices.size(), most->depth) <=
                               std::pair(most->indices.size(), region.depth))
      continue;
    most = &region;
    name = symbol;
  }
  if (most != nullptr) add(name);
  if (targets.empty()) targets.emplace_back();
  return targets;
}

/// `zero: 3` if replicas keep whole parameters; otherwise nothing.
std::optional<Saving> with_parameters_sharded(directive::Strategy strategy) {
  const auto cuts = [](const directive::Directive& line) {
    return std::holds_alternative<directive::Replicate>(line) &&
           std::get<directive::Replicate>(line).zero > 0;
  };
  const bool cut = std::any_of(strategy.directives.begin(), strategy.directives.end(), cuts);
  bool any = false;
  for (directive::Directive& line : strategy.directives) {
    auto* replicate = std::get_if<directive::Replicate>(&line);
    if (replicate == nullptr || replicate->zero == 3 || (cut && replicate->zero == 0)) continue;
    replicate->zero = 3;
    replicate->reduce.reset();
    any = true;
  }
  return any ? std::optional(Saving{"zero: 3", std::move(strategy)}) : std::nullopt;
}

/// Lines that may save memory and are not there, each with the strategy that has it; those of one
/// kind together.
std::vector<std::vector<Saving>> savings(const tensor::Graph& model,
                                         const directive::Strategy& strategy) {
  std::vector<std::vector<Saving>> savings(4);
  for (const directive::Selector& target : pieces(model, strategy)) {
    const std::string text = passes::print_selector(target, model.context().symbols);
    // Made in place: the compiler takes a moved variant's other forms for read.
    if (!has<directive::Recompute>(strategy)) {
      savings[0].push_back({"recompute " + text, strategy});
      std::get<directive::Recompute>(
          savings[0].back().with.directives.emplace_back(std::in_place_type<directive::Recompute>))
          .targets.push_back(target);
    }
    if (has<directive::Offload>(strategy)) continue;
    savings[1].push_back({"offload " + text, strategy});
    std::get<directive::Offload>(
        savings[1].back().with.directives.emplace_back(std::in_place_type<directive::Offload>))
        .targets.push_back(target);
  }
  if (!has<directive::Offload>(strategy)) {
    savings[2].push_back({"offload model with what: optimizer", strategy});
    auto& state = std::get<directive::Offload>(
        savings[2].back().with.directives.emplace_back(std::in_place_type<directive::Offload>));
    state.targets.emplace_back();
    state.what = directive::Offload::What::optimizer;
  }
  if (std::optional<Saving> cut = with_parameters_sharded(strategy))
    savings[3].push_back(std::move(*cut));
  return savings;
}

/// The program with gathers at most so far ahead.
directive::Strategy with_prefetch(directive::Strategy strategy, std::uint32_t most) {
  for (directive::Directive& line : strategy.directives) {
    auto* replicate = std::get_if<directive::Replicate>(&line);
    if (replicate != nullptr && replicate->prefetch.value_or(0) > most) replicate->prefetch = most;
  }
  return strategy;
}

class Advice {
 public:
  Advice(const tensor::Graph& model, directive::Strategy strategy, const passes::Options& options)
      : model_(model), options_(options) {
    for (const directive::Directive& line : strategy.directives) {
      const auto* require = std::get_if<directive::Require>(&line);
      if (require != nullptr && require->measure == directive::Measure::peak_memory)
        bounds_.push_back(*require);
    }
    std::erase_if(strategy.directives, [](const directive::Directive& line) {
      return std::holds_alternative<directive::Require>(line);
    });
    strategy_ = std::move(strategy);
    options_.after = nullptr;
    options_.verify_each = false;
    options_.memory_advice = nullptr;
  }

  std::string text() {
    const std::optional<Dag> plan = compile(strategy_);
    if (!plan) return "";
    const std::int64_t now = peak_memory(*plan).bytes;
    const std::int64_t enough = now - least_saved(now);
    std::string text = farthest_prefetch();
    bool first = true;
    for (const std::vector<Saving>& kind : savings(model_, strategy_)) {
      const Saving* best = nullptr;
      std::int64_t least = enough + 1;
      for (const Saving& saving : kind) {
        const std::optional<std::int64_t> bytes = peak(saving.with);
        if (!bytes || *bytes >= least) continue;
        least = *bytes;
        best = &saving;
      }
      if (best == nullptr) continue;
      text += (!std::exchange(first, false) ? ", "
               : text.empty()               ? "it would be "
                                            : "; it would be ") +
              bytes_text(least) + " with `" + best->line + "`";
    }
    return text.empty() ? largest_class(*plan) : text;
  }

 private:
  /// Prepared anew: a line may be refused by itself, and the partition must leave its targets
  /// apart.
  std::optional<Dag> compile(const directive::Strategy& strategy) const {
    DiagnosticSink unread(model_.context().locations);
    const std::optional<passes::Prepared> prepared = passes::prepare(model_, strategy, unread);
    return prepared ? passes::compile(*prepared, unread, options_) : std::nullopt;
  }

  /// The size of the largest arena; nothing if it does not compile.
  std::optional<std::int64_t> peak(const directive::Strategy& strategy) const {
    const std::optional<Dag> dag = compile(strategy);
    return dag ? std::optional(peak_memory(*dag).bytes) : std::nullopt;
  }

  /// The smallest saving of a proposed line: a twentieth of the missing memory.
  std::int64_t least_saved(std::int64_t now) const {
    double missing = 0;
    for (const directive::Require& bound : bounds_)
      missing = std::max(missing, static_cast<double>(now) - bound.bound);
    return std::max<std::int64_t>(1, static_cast<std::int64_t>(missing / 20));
  }

  /// The largest class of the largest arena, if no line makes it much smaller.
  static std::string largest_class(const Dag& plan) {
    const MemoryRow row = memory_table(plan)[peak_memory(plan).role];
    const auto largest = std::max_element(row.peak.begin(), row.peak.end());
    const std::string_view name =
        buffer_class_name(static_cast<BufferClass>(largest - row.peak.begin()));
    return bytes_text(*largest) + " of it are " + std::string(name) +
           (row.at.valid() ? ", at `" + plan.name(row.at) + "`" : "");
  }

  bool fits(std::uint32_t prefetch) {
    const std::optional<std::int64_t> bytes = peak(with_prefetch(strategy_, prefetch));
    return bytes &&
           std::all_of(bounds_.begin(), bounds_.end(), [&](const directive::Require& bound) {
             return directive::holds(static_cast<double>(*bytes), bound.compare, bound.bound);
           });
  }

  /// The largest `prefetch` that the required memory allows; nothing if there is none to lower, or
  /// if none is low enough.
  std::string farthest_prefetch() {
    std::uint32_t most = 0;
    for (const directive::Directive& line : strategy_.directives) {
      if (const auto* replicate = std::get_if<directive::Replicate>(&line))
        most = std::max(most, replicate->prefetch.value_or(0));
    }
    if (most == 0 || !fits(0)) return "";
    std::uint32_t fit = 0, too_far = most;
    while (too_far - fit > 1) {
      const std::uint32_t middle = fit + (too_far - fit) / 2;
      (fits(middle) ? fit : too_far) = middle;
    }
    return "`prefetch: " + std::to_string(fit) + "` is the largest that fits";
  }

  const tensor::Graph& model_;
  directive::Strategy strategy_;
  passes::Options options_;
  std::vector<directive::Require> bounds_;
};

}  // namespace

std::string memory_advice(const lower::Lowered& lowered, const passes::Options& options) {
  return Advice(lowered.model, lowered.strategy, options).text();
}

}  // namespace piper::service
