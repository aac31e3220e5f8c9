#include "frontend/views/partition_view.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>

#include "frontend/pictures/picture.h"
#include "frontend/pictures/text_table.h"
#include "ir/byte_text.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include "passes/selectors/select.h"

namespace piper::views {
namespace {

using tensor::Graph;

/// A part of a partition: its name and its index.
using Part = std::pair<Symbol, std::uint32_t>;

/// The innermost part of a region that has one of the names; nothing outside of all parts. `inside`
/// becomes the region directly inside it on the way; invalid if there is none.
std::optional<Part> part_of(const RegionTable& regions, RegionId region,
                            const std::set<Symbol>& names, RegionId& inside) {
  inside = {};
  for (; region.valid(); region = regions.parent(region)) {
    if (names.contains(regions.name(region)))
      return Part(regions.name(region), regions.index(region));
    inside = region;
  }
  return std::nullopt;
}

/// Regions of one name with consecutive indices as one text: `block[0..4]`.
class LayerNames {
 public:
  void add(const RegionTable& regions, RegionId layer, const SymbolTable& symbols) {
    if (!layer.valid() || !seen_.insert(layer).second) return;
    const std::string name(symbols.text(regions.name(layer)));
    const std::uint32_t index = regions.index(layer);
    if (!runs_.empty() && runs_.back().name == name && runs_.back().end == index) {
      ++runs_.back().end;
    } else {
      runs_.push_back({name, index, index + 1});
    }
  }
  std::vector<std::string> texts() const {
    std::vector<std::string> texts;
    for (const Run& run : runs_) {
      const std::string first = run.name + "[" + std::to_string(run.first);
      texts.push_back(first +
                      (run.end - run.first == 1 ? "]" : ".." + std::to_string(run.end) + "]"));
    }
    return texts;
  }

 private:
  struct Run {
    std::string name;
    std::uint32_t first = 0, end = 0;
  };
  std::vector<Run> runs_;
  std::set<RegionId> seen_;
};

class PartitionTable {
 public:
  PartitionTable(const Graph& model, const std::vector<directive::Directive>& directives,
                 const dag::Dag& dag, const passes::Timeline& timeline)
      : model_(model), dag_(dag), timeline_(timeline) {
    for (const directive::Directive& line : directives) {
      if (const auto* partition = std::get_if<directive::Partition>(&line))
        names_.insert(partition->into.name);
    }
  }

  PartitionRows run() {
    read_model();
    read_times();
    read_activations();
    PartitionRows table;
    table.unit = timeline_.unit;
    for (const Part& part : order_) table.rows.push_back(std::move(rows_[part]));
    return table;
  }

 private:
  void read_model() {
    std::map<tensor::ValueId, const tensor::Param*> params;
    for (const tensor::Param& param : model_.params) params[param.value] = &param;
    std::map<Part, LayerNames> layers;
    std::set<std::pair<Part, const tensor::Param*>> counted;
    for (const tensor::Node& node : model_.nodes()) {
      if (node.pass != Pass::F) continue;
      RegionId layer;
      const auto part = part_of(model_.regions, node.region, names_, layer);
      if (!part) continue;
      if (!rows_.contains(*part)) order_.push_back(*part);
      PartRow& row = rows_[*part];
      row.part = std::string(model_.context().text(part->first)) + "[" +
                 std::to_string(part->second) + "]";
      layers[*part].add(model_.regions, layer, model_.context().symbols);
      for (const tensor::ValueId operand : model_.operands(node)) {
        const auto param = params.find(operand);
        if (param == params.end() || !counted.emplace(*part, param->second).second) continue;
        row.parameters += model_.type(operand).elements();
        row.parameter_bytes += model_.type(operand).bytes();
      }
    }
    for (auto& [part, row] : rows_) row.layers = layers[part].texts();
  }

  PartRow* row_of(const dag::Node& node) {
    RegionId inside;
    const auto part = part_of(dag_.regions, dag_.chunks[node.chunk.index()].region, names_, inside);
    const auto row = part ? rows_.find(*part) : rows_.end();
    return row == rows_.end() ? nullptr : &row->second;
  }

  void read_times() {
    std::map<PartRow*, double> forwards;  // runs
    for (std::uint32_t entry = 0; entry < timeline_.size(); ++entry) {
      const passes::Timeline::Operation& operation = timeline_.operation_of(entry);
      if (!dag::runs_body(operation.kind)) continue;
      PartRow* const row = row_of(dag_.node(operation.first));
      if (row == nullptr) continue;
      const double time = timeline_.finish[entry] - timeline_.start[entry];
      (is_backward(operation.pass) ? row->backward : row->forward) += time;
      if (operation.pass == Pass::F) ++forwards[row];
    }
    for (const auto& [row, runs] : forwards) {
      row->forward /= runs;
      row->backward /= runs;
    }
  }

  /// Values that cross from the forwards of an instance to its backwards, on any rank.
  void read_activations() {
    std::map<PartRow*, std::set<dag::Instance>> instances;
    std::map<PartRow*, std::set<std::string>> devices;
    std::set<dag::Port> kept;
    for (const dag::Node& node : dag_.nodes) {
      if (!dag::runs_body(node.kind)) continue;
      if (PartRow* const row = row_of(node); row != nullptr && node.pass == Pass::F) {
        instances[row].insert(node.instance);
        if (node.devices.valid()) devices[row].insert(dag_.text(node.devices));
      }
      if (!is_backward(node.pass)) continue;
      for (const dag::Input& input : dag_.inputs_of(node)) {
        if (!input.source.node.valid()) continue;
        const dag::Node& maker = dag_.node(input.source.node);
        if (!dag::runs_body(maker.kind) || is_backward(maker.pass)) continue;
        PartRow* const row = row_of(maker);
        if (row != nullptr && kept.insert(input.source).second)
          row->activation_bytes += dag_.output_type(input.source).bytes();
      }
    }
    for (auto& [row, all] : instances)
      row->activation_bytes /= static_cast<std::int64_t>(std::max<std::size_t>(all.size(), 1));
    for (auto& [row, all] : devices) {
      for (const std::string& set : all) row->devices += (row->devices.empty() ? "" : ", ") + set;
    }
  }

  const Graph& model_;
  const dag::Dag& dag_;
  const passes::Timeline& timeline_;
  std::set<Symbol> names_;
  std::map<Part, PartRow> rows_;
  std::vector<Part> order_;
};

std::string count_text(std::int64_t count) {
  char text[32];
  const auto number = static_cast<double>(count);
  if (count < 1'000'000) return std::to_string(count);
  std::snprintf(text, sizeof text, count < 1'000'000'000 ? "%.4g million" : "%.4g billion",
                number / (count < 1'000'000'000 ? 1e6 : 1e9));
  return text;
}

}  // namespace

PartitionRows partition_rows(const Graph& model,
                             const std::vector<directive::Directive>& directives,
                             const dag::Dag& dag, const passes::Timeline& timeline) {
  return PartitionTable(model, directives, dag, timeline).run();
}

std::string partition_text(const PartitionRows& table) {
  if (table.rows.empty()) return "the model is not partitioned\n";
  double total = 0;
  for (const PartRow& row : table.rows) total += row.forward + row.backward;
  std::vector<std::vector<std::string>> rows = {
      {"part", "layers", "devices", "F", "B", "work", "parameters", "bytes", "activations"}};
  for (const PartRow& row : table.rows) {
    std::string layers;
    for (const std::string& layer : row.layers) layers += (layers.empty() ? "" : ", ") + layer;
    const double fraction = total > 0 ? (row.forward + row.backward) / total : 0;
    rows.push_back({row.part, layers, row.devices, pictures::time_text(row.forward, table.unit),
                    pictures::time_text(row.backward, table.unit), pictures::share_text(fraction),
                    count_text(row.parameters), bytes_text(row.parameter_bytes),
                    bytes_text(row.activation_bytes)});
  }
  return pictures::text_table(rows, {true, true, true});
}

std::string partition_json(const PartitionRows& table) {
  using namespace llvm::json;
  Array parts;
  for (const PartRow& row : table.rows) {
    Array layers;
    for (const std::string& layer : row.layers) layers.push_back(layer);
    parts.push_back(Object{{"part", row.part},
                           {"layers", std::move(layers)},
                           {"devices", row.devices},
                           {"forward", row.forward},
                           {"backward", row.backward},
                           {"parameters", row.parameters},
                           {"parameter_bytes", row.parameter_bytes},
                           {"activation_bytes", row.activation_bytes}});
  }
  std::string text;
  llvm::raw_string_ostream(text)
      << Value(Object{{"schema", 1},
                      {"unit", table.unit == passes::Timeline::Unit::cost ? "cost" : "seconds"},
                      {"parts", std::move(parts)}})
      << "\n";
  return text;
}

}  // namespace piper::views
