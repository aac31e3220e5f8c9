#include "passes/build/build.h"

#include <algorithm>
#include <utility>

#include "ir/dag/text_names.h"
#include "llvm/ADT/DenseSet.h"
#include "passes/build/localise.h"
#include "passes/build/pieces.h"
#include "passes/build/wiring.h"
#include "passes/selectors/check_lines.h"
#include "passes/selectors/check_selectors.h"
#include "passes/selectors/select.h"
#include "passes/transform/buckets.h"

namespace piper::passes {

using namespace dag;
using directive::Directive;
using directive::Strategy;

namespace {

class DagBuilder {
 public:
  DagBuilder(const tensor::Graph& model, const Strategy& strategy) : model_(model), strategy_(strategy), dag_(model.context()) {}
  Dag run();

 private:
  void select_regions();
  std::vector<Symbol> units() const;
  void copy_facts();
  void add_chunks();
  void add_second_forwards(BodyExtractor& extractor, const Pieces& pieces);
  BodyId add_body(Extraction extraction, const std::string& name);
  void add_nodes();

  const tensor::Graph& model_;
  const Strategy& strategy_;
  Dag dag_;
  std::vector<Symbol> selected_;
};

/// Those names of selectors that are regions.
void DagBuilder::select_regions() {
  llvm::DenseSet<Symbol> regions;
  for (const tensor::Node& node : model_.nodes()) {
    for (RegionId r = node.region; r.valid(); r = model_.regions.parent(r)) regions.insert(model_.regions.name(r));
  }
  const auto select = [&](Symbol name) {
    if (regions.contains(name) && std::find(selected_.begin(), selected_.end(), name) == selected_.end()) selected_.push_back(name);
  };
  for (const Symbol name : names_used(strategy_)) select(name);
  for (const Symbol name : units()) select(name);
}

/// The regions at whose instances work is cut where gradients or parameters are: those that `replicate` names; of `model` those that `partition` puts into stages, or
/// without one those directly inside.
std::vector<Symbol> DagBuilder::units() const {
  std::vector<Symbol> units;
  bool model = false;
  for (const Directive& directive : strategy_.directives) {
    const auto* replicate = std::get_if<directive::Replicate>(&directive);
    if (replicate == nullptr || replicate->zero < 2) continue;
    for (const directive::Selector& target : replicate->targets) {
      if (target.coordinates.empty()) model = true;
      for (const directive::Coordinate& coordinate : target.coordinates) units.push_back(coordinate.name);
    }
  }
  if (!model) return units;
  std::vector<Symbol> stages;
  for (const Directive& directive : strategy_.directives) {
    if (const auto* partition = std::get_if<directive::Partition>(&directive)) stages.push_back(partition->into.name);
  }
  std::vector<RegionId> path, common;  // of the regions around an operation; what all paths begin with
  const auto path_to = [&](RegionId region) {
    path.clear();
    for (; region.valid(); region = model_.regions.parent(region)) path.push_back(region);
    std::reverse(path.begin(), path.end());
  };
  bool first = true;
  for (const tensor::Node& node : model_.nodes()) {
    path_to(node.region);
    if (std::exchange(first, false)) common = path;
    common.resize(static_cast<std::size_t>(std::mismatch(common.begin(), common.end(), path.begin(), path.end()).first - common.begin()));
  }
  const auto is_stage = [&](RegionId region) { return std::find(stages.begin(), stages.end(), model_.regions.name(region)) != stages.end(); };
  for (const tensor::Node& node : model_.nodes()) {
    path_to(node.region);
    const auto stage = std::find_if(path.rbegin(), path.rend(), is_stage);
    const std::size_t at = stages.empty() ? common.size() : static_cast<std::size_t>(path.rend() - stage);
    if (at < path.size() && (stages.empty() || stage != path.rend())) units.push_back(model_.regions.name(path[at]));
  }
  return units;
}

void DagBuilder::copy_facts() {
  dag_.level = Level::built;
  dag_.params = model_.params;
  dag_.inputs = model_.inputs;
  dag_.losses = model_.losses;
  for (const tensor::Param& param : model_.params) dag_.param_types.push_back(model_.type(param.value));
  for (const tensor::Input& input : model_.inputs) dag_.input_types.push_back(model_.type(input.value));
  dag_.settings = strategy_.settings;
  dag_.mesh = strategy_.mesh;
  dag_.device_sets = strategy_.device_sets;
  for (const Directive& directive : strategy_.directives) {
    if (const auto* require = std::get_if<directive::Require>(&directive)) dag_.requirements.push_back(*require);
  }
}

void DagBuilder::add_chunks() {
  Context& context = model_.context();
  Pieces pieces = cut_pieces(model_, selected_);
  dag_.regions = std::move(pieces.regions);
  bool halves = false;
  for (const Directive& directive : strategy_.directives) {
    if (const auto* order = std::get_if<directive::Order>(&directive)) {
      halves = halves || std::any_of(order->ops.begin(), order->ops.end(), [](const directive::OrderOp& op) {
                 return op.part == directive::Part::none && (op.pass == Pass::BI || op.pass == Pass::BW);
               });
    }
  }
  BodyExtractor extractor(model_, pieces.piece_of);
  std::vector<tensor::NodeId> half;
  for (const Pieces::Piece& piece : pieces.pieces) {
    Chunk chunk;
    chunk.region = piece.region;
    chunk.piece = piece.number;
    const std::string name = chunk_name(dag_.regions, piece.region, piece.number, context.symbols);
    chunk.name = context.symbol(name);
    chunk.loc = model_.node(piece.forward.front()).loc;
    const auto add = [&](Pass pass, std::span<const tensor::NodeId> nodes) {
      chunk.bodies[static_cast<std::size_t>(pass)] = add_body(extractor.extract(nodes, 1), name + "." + std::string(pass_name(pass)));
    };
    add(Pass::F, piece.forward);
    add(Pass::B, piece.backward);
    for (const Pass pass : {Pass::BI, Pass::BW}) {
      if (!halves) break;
      half.clear();
      std::copy_if(piece.backward.begin(), piece.backward.end(), std::back_inserter(half),
                   [&](tensor::NodeId node) { return model_.node(node).pass == pass; });
      add(pass, half);
    }
    dag_.chunks.push_back(chunk);
  }
  add_second_forwards(extractor, pieces);
  remove_unread_outputs(dag_);
}

BodyId DagBuilder::add_body(Extraction extraction, const std::string& name) {
  extraction.body.name = model_.context().symbol(name);
  dag_.bodies.push_back(std::move(extraction.body));
  return BodyId::at(dag_.bodies.size() - 1);
}

/// The bodies of what `recompute` lines name, whichever instances they mean.
void DagBuilder::add_second_forwards(BodyExtractor& extractor, const Pieces& pieces) {
  std::vector<bool> named(dag_.chunks.size());
  Selection selection(dag_);
  DiagnosticSink unread(model_.context().locations);  // what matches nothing is told where instances are known
  for (const Directive& directive : strategy_.directives) {
    const auto* recompute = std::get_if<directive::Recompute>(&directive);
    if (recompute == nullptr) continue;
    for (directive::Selector target : recompute->targets) {
      std::erase_if(target.coordinates, [&](const directive::Coordinate& c) { return is_split_into(strategy_, c.name); });
      const std::optional<Selection::Found> found = selection.find(target, unread);
      if (!found) continue;
      for (const ChunkId chunk : found->chunks) named[chunk.index()] = true;
    }
  }
  for (std::size_t c = 0; c < named.size(); ++c) {
    if (!named[c]) continue;
    const std::vector<tensor::NodeId> again = extractor.again(pieces.pieces[c].forward);
    if (again.empty()) continue;
    Chunk& chunk = dag_.chunks[c];
    const std::string name(model_.context().text(chunk.name));
    chunk.lean = add_body(extractor.extract_lean(pieces.pieces[c].forward, again, 1), name + ".lean");
    chunk.bodies[static_cast<std::size_t>(Pass::R)] = add_body(extractor.extract_again(again, 1), name + ".R");
  }
}

void DagBuilder::add_nodes() {
  for (const Pass pass : {Pass::F, Pass::B}) {
    for (std::size_t c = 0; c < dag_.chunks.size(); ++c) {
      const Chunk& chunk = dag_.chunks[c];
      Node node;
      node.pass = pass;
      node.chunk = ChunkId::at(c);
      node.body = chunk.bodies[static_cast<std::size_t>(pass)];
      node.loc = chunk.loc;
      dag_.add(node, {});
    }
  }
}

Dag DagBuilder::run() {
  copy_facts();
  select_regions();
  add_chunks();
  add_nodes();
  wire(dag_);
  make_buckets(dag_);
  return std::move(dag_);
}

}  // namespace

Dag build(const tensor::Graph& model, const Strategy& strategy) {
  return DagBuilder(model, strategy).run();
}

}  // namespace piper::passes
