#pragma once
// Facts of `config { ... }` as JSON, for one model.
//
//   rope_theta: base, num_hidden_layers: l, hidden_act: "silu"
//     ->  {"rope_theta", "10000.0"}, {"num_hidden_layers", "32"}, {"hidden_act", "\"silu\""}

#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "frontend/ast/module.h"
#include "frontend/lower/evaluate/value.h"
#include "frontend/lower/names/reports.h"
#include "ir/weight_map.h"

namespace piper::lower {

/// The meanings of a name in a fact, in this order: an argument of the model, the extent of a
/// dimension of its parameters, how many values an index has.
struct FactNames {
  std::span<const ModelArgument> arguments;
  std::map<std::string, std::set<std::int64_t>, std::less<>> extents;
  std::map<std::string, std::set<std::uint32_t>, std::less<>> indices;
};

/// The facts of the item, in text order. Facts without a value are left out, with a diagnostic.
std::vector<ConfigFact> config_facts(const ast::NamesItem& item, const FactNames& names,
                                     NamesReports& reports);

}  // namespace piper::lower
