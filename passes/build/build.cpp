#include "passes/build/build.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "ir/dag/text_names.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"
#include "passes/build/derive_layouts.h"
#include "passes/build/localise.h"
#include "passes/build/place_sums.h"
#include "passes/build/segments.h"
#include "passes/build/units.h"
#include "passes/build/wiring.h"
#include "passes/selectors/select.h"
#include "passes/selectors/split_dimensions.h"
#include "passes/selectors/used_names.h"
#include "passes/transform/buckets.h"

namespace piper::passes {

using namespace dag;
using directive::Directive;
using directive::Strategy;

namespace {

class DagBuilder {
 public:
  DagBuilder(const tensor::Graph& model, const Strategy& strategy)
      : model_(model), strategy_(strategy), dag_(model.context()) {}
  Dag run();

 private:
  void select_regions();
  void copy_facts();
  template <typename Line, typename Visit>
  void for_each_named(Visit visit);
  void add_chunks();
  /// The pass and instances of a selector: per dimension its indices, none for all.
  using NamedWork = std::pair<std::optional<Pass>, std::map<Symbol, std::vector<std::uint32_t>>>;
  NamedWork work_of(const directive::Selector& target) const;
  std::vector<SegmentDevices> devices_of_chunks();
  void add_second_forwards(BodyExtractor& extractor, const Segments& segments);
  BodyId add_body(Extraction extraction, const std::string& name);
  void add_nodes();

  const tensor::Graph& model_;
  const Strategy& strategy_;
  Dag dag_;
  std::vector<Symbol> selected_;
};

/// The names of selectors and units that are regions.
void DagBuilder::select_regions() {
  llvm::DenseSet<Symbol> regions;
  for (const tensor::Node& node : model_.nodes()) {
    for (RegionId r = node.region; r.valid(); r = model_.regions.parent(r))
      regions.insert(model_.regions.name(r));
  }
  llvm::SetVector<Symbol> selected;
  for (const std::vector<Symbol>& names : {names_used(strategy_), units(model_, strategy_)})
    selected.insert(names.begin(), names.end());
  selected.remove_if([&](Symbol name) { return !regions.contains(name); });
  selected_.assign(selected.begin(), selected.end());
}

void DagBuilder::copy_facts() {
  dag_.level = Level::built;
  dag_.params = model_.params;
  dag_.inputs = model_.inputs;
  dag_.losses = model_.losses;
  for (const tensor::Param& param : model_.params)
    dag_.param_types.push_back(model_.type(param.value));
  for (const tensor::Input& input : model_.inputs)
    dag_.input_types.push_back(model_.type(input.value));
  dag_.settings = strategy_.settings;
  dag_.mesh = strategy_.mesh;
  dag_.device_sets = strategy_.device_sets;
  std::size_t partitions = 0;
  for (const Directive& directive : strategy_.directives) {
    if (const auto* partition = std::get_if<directive::Partition>(&directive))
      dag_.stages = ++partitions == 1 ? partition->into.name : Symbol();
    if (const auto* require = std::get_if<directive::Require>(&directive))
      dag_.requirements.push_back(*require);
  }
}

void DagBuilder::add_chunks() {
  Context& context = model_.context();
  Segments segments = cut_segments(model_, selected_);
  dag_.regions = std::move(segments.regions);
  bool halves = false;
  for (const Directive& directive : strategy_.directives) {
    if (const auto* order = std::get_if<directive::Order>(&directive)) {
      halves = halves ||
               std::any_of(order->ops.begin(), order->ops.end(), [](const directive::OrderOp& op) {
                 return op.part == directive::CommClass::none &&
                        (op.pass == Pass::BI || op.pass == Pass::BW);
               });
    }
  }
  for (const Segments::Segment& segment : segments.segments) {
    Chunk& chunk = dag_.chunks.emplace_back();
    chunk.region = segment.region;
    chunk.segment = segment.number;
    chunk.name =
        context.symbol(chunk_name(dag_.regions, segment.region, segment.number, context.symbols));
    chunk.loc = model_.node(segment.forward.front()).loc;
  }
  const std::vector<SegmentDevices> devices = devices_of_chunks();
  const std::optional<tensor::Graph> reordered = place_sums(model_, segments, devices);
  const tensor::Graph& model = reordered ? *reordered : model_;
  std::vector<AxisMask> axes;
  for (const SegmentDevices& each : devices) axes.push_back(each.axes);
  const ModelLayouts layouts(model, segments.segment_of, axes, dag_.mesh);
  BodyExtractor extractor(model, segments.segment_of, &layouts);
  std::vector<tensor::NodeId> half;
  NodePolls polls(context.cancellation);
  for (std::size_t c = 0; c < segments.segments.size(); ++c) {
    const Segments::Segment& segment = segments.segments[c];
    polls.visit(segment.forward.size() + segment.backward.size());
    Chunk& chunk = dag_.chunks[c];
    const std::string name(context.text(chunk.name));
    const auto add = [&](Pass pass, std::span<const tensor::NodeId> nodes) {
      chunk.bodies[static_cast<std::size_t>(pass)] =
          add_body(extractor.extract(nodes, 1), name + "." + std::string(pass_name(pass)));
    };
    add(Pass::F, segment.forward);
    add(Pass::B, segment.backward);
    for (const Pass pass : {Pass::BI, Pass::BW}) {
      if (!halves) break;
      half.clear();
      std::copy_if(segment.backward.begin(), segment.backward.end(), std::back_inserter(half),
                   [&](tensor::NodeId node) { return model.node(node).pass == pass; });
      add(pass, half);
    }
  }
  add_second_forwards(extractor, segments);
  remove_unread_outputs(dag_);
}

BodyId DagBuilder::add_body(Extraction extraction, const std::string& name) {
  extraction.body.name = model_.context().symbol(name);
  dag_.bodies.push_back(std::move(extraction.body));
  return BodyId::at(dag_.bodies.size() - 1);
}

/// The chunks that lines name, for any instance.
template <typename Line, typename Visit>
void DagBuilder::for_each_named(Visit visit) {
  Selection selection(dag_);
  for (const Directive& directive : strategy_.directives) {
    const auto* line = std::get_if<Line>(&directive);
    if (line == nullptr) continue;
    for (const directive::Selector& written : line->targets) {
      directive::Selector target = written;
      std::erase_if(target.coordinates, [&](const directive::Coordinate& c) {
        return is_split_into(strategy_, c.name);
      });
      const std::optional<Selection::Found> found = selection.find(target);
      if (!found) continue;  // which is reported when instances are known
      for (const ChunkId chunk : found->chunks) visit(chunk, *line, written);
    }
  }
}

DagBuilder::NamedWork DagBuilder::work_of(const directive::Selector& target) const {
  NamedWork work{target.pass, {}};
  for (const directive::Coordinate& coordinate : target.coordinates) {
    if (is_split_into(strategy_, coordinate.name))
      work.second[coordinate.name] = coordinate.indices;
  }
  return work;
}

/// The placement and replication of each chunk: chunks on equal device sets, for the same instances
/// and passes, have the same number. An axis of one device shards nothing.
std::vector<SegmentDevices> DagBuilder::devices_of_chunks() {
  struct Line {
    const directive::Place* place;
    const directive::Selector* target;
  };
  std::vector<std::map<NamedWork, Line>> lines(dag_.chunks.size());
  for_each_named<directive::Place>([&](ChunkId chunk, const directive::Place& place,
                                       const directive::Selector& target) {
    const auto [line, fresh] =
        lines[chunk.index()].try_emplace(work_of(target), Line{&place, &target});
    if (!fresh && directive::holds_over(place, target, *line->second.place, *line->second.target))
      line->second = {&place, &target};
  });
  std::map<std::vector<std::pair<NamedWork, DeviceSetId>>, std::uint32_t> numbers;
  std::vector<SegmentDevices> devices(dag_.chunks.size());
  for (std::size_t c = 0; c < lines.size(); ++c) {
    std::vector<std::pair<NamedWork, DeviceSetId>> key;
    for (const auto& [work, line] : lines[c]) key.emplace_back(work, line.place->devices);
    devices[c].number =
        numbers.try_emplace(std::move(key), static_cast<std::uint32_t>(numbers.size()))
            .first->second;
  }
  for_each_named<directive::Replicate>(
      [&](ChunkId chunk, const directive::Replicate& replicate, const directive::Selector&) {
        for (const Symbol name : replicate.axes) {
          const std::size_t axis = dag_.mesh.find(name);
          if (axis < dag_.mesh.axes.size() && dag_.mesh.axes[axis].size > 1)
            devices[chunk.index()].axes |= AxisMask{1} << axis;
        }
      });
  return devices;
}

/// The bodies of chunks that `recompute` lines name.
void DagBuilder::add_second_forwards(BodyExtractor& extractor, const Segments& segments) {
  std::vector<bool> named(dag_.chunks.size());
  for_each_named<directive::Recompute>(
      [&](ChunkId chunk, const directive::Recompute&, const directive::Selector&) {
        named[chunk.index()] = true;
      });
  for (std::size_t c = 0; c < named.size(); ++c) {
    if (!named[c]) continue;
    const std::vector<tensor::NodeId> again = extractor.again(segments.segments[c].forward);
    if (again.empty()) continue;
    Chunk& chunk = dag_.chunks[c];
    const std::string name(model_.context().text(chunk.name));
    chunk.recomputed_forward = add_body(
        extractor.extract_recomputed(segments.segments[c].forward, again, 1), name + ".recomputed");
    chunk.bodies[static_cast<std::size_t>(Pass::R)] =
        add_body(extractor.extract_again(again, 1), name + ".R");
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
