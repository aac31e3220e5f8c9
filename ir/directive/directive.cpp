#include "ir/directive/directive.h"

#include <algorithm>

namespace piper::directive {

std::string_view part_name(CommClass part) {
  constexpr std::string_view kNames[] = {"", "send", "recv", "gather", "reduce", "enter", "leave"};
  return kNames[static_cast<std::size_t>(part)];
}

std::string_view reduce_name(Reduce reduce) {
  constexpr std::string_view kNames[] = {"step", "microbatch", "unit"};
  return kNames[static_cast<std::size_t>(reduce)];
}

std::optional<Reduce> parse_reduce(std::string_view name) {
  for (const Reduce reduce : {Reduce::step, Reduce::microbatch, Reduce::unit}) {
    if (reduce_name(reduce) == name) return reduce;
  }
  return std::nullopt;
}

const DirectiveRow* find_row(const Directive& directive) {
  return std::visit(
      [](const auto& line) -> const DirectiveRow* {
        if constexpr (requires { kind_of(line); }) return &row_of(kind_of(line));
        return nullptr;
      },
      directive);
}

bool names_weights(const Directive& directive) {
  return std::visit([](const auto& line) { return requires { line.kNamesWeights; }; }, directive);
}

std::span<const Selector> targets_of(const Directive& directive) {
  struct Targets : IgnoreFields {
    std::span<const Selector> list;
    void targets(const std::vector<Selector>& targets) { list = targets; }
    void in(const std::vector<Selector>& targets) { list = targets; }
  } targets;
  visit_fields(targets, directive);
  return targets.list;
}

std::string coordinate_text(std::string_view name, bool rest, bool first) {
  if (rest) return first ? "model.rest" : ".rest";
  return (first ? "" : " ") + std::string(name);
}

bool holds_over(const Place& a, const Selector& of_a, const Place& b, const Selector& of_b) {
  const auto named = [](const Selector& target) {
    return target.coordinates.size() + (target.pass ? 1 : 0);
  };
  return a.depth != b.depth ? a.depth < b.depth : named(of_a) > named(of_b);
}

bool counts_bytes(Measure measure) {
  enum Unit { bytes, ratio };
  constexpr Unit kUnits[] = {
#define MEASURE(name, unit) unit,
#include "ir/directive/measures.def"
#undef MEASURE
  };
  return kUnits[static_cast<std::size_t>(measure)] == bytes;
}

bool holds(double found, Compare compare, double bound) {
  switch (compare) {
    case Compare::less: return found < bound;
    case Compare::less_equal: return found <= bound;
    case Compare::greater: return found > bound;
    case Compare::greater_equal: return found >= bound;
    case Compare::equal: return found == bound;
    case Compare::not_equal: return found != bound;
  }
  return false;
}

LocId Order::written_at(const OrderOp& op) const {
  auto origin = std::upper_bound(origins.begin(), origins.end(), op.first_coordinate,
                                 [](std::uint32_t at, const Origin& o) { return at < o.first; });
  return origin != origins.begin() && op.first_coordinate < (--origin)->end ? origin->loc : op.loc;
}

std::string planned_for(Platform device) {
  return device == Platform::cpu ? ""
                                 : std::string(" in a plan for `") +
                                       kPlatformNames[static_cast<std::size_t>(device)] + "`";
}

}  // namespace piper::directive
