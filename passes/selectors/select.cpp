#include "passes/selectors/select.h"

#include <algorithm>
#include <utility>

#include "ir/diagnostics/suggestion.h"

namespace piper::passes {

using namespace dag;

WorkTable::WorkTable(const Dag& dag) : chunks_(dag.chunks.size()) {
  const Instances instances(dag);
  instances_ = instances.size();
  nodes_.resize(kPasses * chunks_ * instances_);
  for (std::size_t n = 0; n < dag.nodes.size(); ++n) {
    const Node& node = dag.nodes[n];
    if (!runs_body(node.kind)) continue;
    nodes_[(static_cast<std::size_t>(node.pass) * chunks_ + node.chunk.index()) * instances_ +
           instances.position(node.instance)] = NodeId::at(n);
  }
}

Selection::Selection(const Dag& dag) : dag_(dag), instances_(dag) {
  every_instance_.resize(instances_.size());
  for (std::uint32_t i = 0; i < instances_.size(); ++i) every_instance_[i] = i;

  for (std::uint32_t d = 0; d < dag.dims.size(); ++d) {
    if (Meaning& named = define(dag.dims[d].name); named.dimension == kNone) named.dimension = d;
  }
  std::vector<Symbol> seen;
  for (std::size_t c = 0; c < dag.chunks.size(); ++c) {
    const ChunkId chunk = ChunkId::at(c);
    every_chunk_.push_back(chunk);
    seen.clear();
    if (!dag.chunks[c].region.valid()) loose_.push_back(chunk);
    for (RegionId region = dag.chunks[c].region; region.valid();
         region = dag.regions.parent(region)) {
      const Symbol name = dag.regions.name(region);
      if (std::find(seen.begin(), seen.end(), name) != seen.end()) continue;
      seen.push_back(name);
      Meaning& named = define(name);
      if (named.region == kNone) {
        named.region = static_cast<std::uint32_t>(regions_.size());
        regions_.push_back({name, {}, {}, {}});
      }
      Region& own = regions_[named.region];
      own.all.push_back(chunk);
      if (region == dag.chunks[c].region) own.loose.push_back(chunk);
      const std::uint32_t index = dag.regions.index(region);
      if (own.by_index.size() <= index) own.by_index.resize(index + 1);
      own.by_index[index].push_back(chunk);
    }
  }
}

const WorkTable& Selection::work() {
  if (!work_) work_.emplace(dag_);
  return *work_;
}

Selection::Meaning& Selection::define(Symbol name) {
  if (name.index() >= meanings_.size()) meanings_.resize(name.index() + 1);
  return meanings_[name.index()];
}

std::span<const ChunkId> Selection::chunks_of(const Term& term,
                                              std::vector<ChunkId>& scratch) const {
  const std::uint32_t number = meaning(term.name).region;
  if (term.rest) {
    std::span<const ChunkId> loose;
    if (dag_.context->text(term.name) == "model") {
      loose = loose_;
    } else if (number != kNone) {
      loose = regions_[number].loose;
    }
    if (term.all) return loose;
    scratch.clear();
    std::copy_if(loose.begin(), loose.end(), std::back_inserter(scratch), [&](ChunkId chunk) {
      return std::find(term.indices.begin(), term.indices.end(),
                       dag_.chunks[chunk.index()].segment) != term.indices.end();
    });
    return scratch;
  }
  if (number == kNone) {
    if (term.all && dag_.context->text(term.name) == "model") return every_chunk_;
    return {};
  }
  const Region& region = regions_[number];
  if (term.all) return region.all;
  scratch.clear();
  for (const std::uint32_t index : term.indices) {
    if (index < region.by_index.size())
      scratch.insert(scratch.end(), region.by_index[index].begin(), region.by_index[index].end());
  }
  std::sort(scratch.begin(), scratch.end());
  scratch.erase(std::unique(scratch.begin(), scratch.end()), scratch.end());
  return scratch;
}

namespace {

/// The intersection of two ascending lists, in time of the shorter one.
void intersect(std::span<const ChunkId> a, std::span<const ChunkId> b, std::vector<ChunkId>& out) {
  if (a.size() > b.size()) std::swap(a, b);
  for (const ChunkId chunk : a) {
    const auto from = std::lower_bound(b.begin(), b.end(), chunk);
    b = b.subspan(static_cast<std::size_t>(from - b.begin()));
    if (!b.empty() && b.front() == chunk) out.push_back(chunk);
  }
}

}  // namespace

std::optional<Selection::Found> Selection::find(std::span<const Term> terms) {
  Found found{every_chunk_, every_instance_};
  bool first_region = true;
  const Term* wanted[kMaxSplitDims] = {};
  bool any_dimension = false;
  bool impossible = false;
  for (const Term& term : terms) {
    const std::uint32_t d = term.rest ? kNone : meaning(term.name).dimension;
    if (d != kNone) {
      if (term.all) continue;
      impossible = impossible || wanted[d] != nullptr || term.indices.empty();
      wanted[d] = &term;
      any_dimension = true;
      for (const std::uint32_t index : term.indices)
        impossible = impossible || index >= dag_.dims[d].extent;
      continue;
    }
    const std::span<const ChunkId> chunks = chunks_of(term, first_region ? chunks_ : scratch_);
    if (first_region) {
      found.chunks = chunks;
    } else {
      merged_.clear();
      intersect(found.chunks, chunks, merged_);
      chunks_.swap(merged_);
      found.chunks = chunks_;
    }
    first_region = false;
  }
  if (impossible || found.chunks.empty()) return std::nullopt;
  if (any_dimension) {
    found_instances_.assign(1, 0);
    for (std::size_t d = 0; d < dag_.dims.size(); ++d) {
      const std::uint32_t extent = dag_.dims[d].extent;
      next_.clear();
      for (const std::uint32_t outer : found_instances_) {
        if (wanted[d] == nullptr) {
          for (std::uint32_t i = 0; i < extent; ++i) next_.push_back(outer * extent + i);
        } else {
          for (const std::uint32_t i : wanted[d]->indices) next_.push_back(outer * extent + i);
        }
      }
      found_instances_.swap(next_);
    }
    found.instances = found_instances_;
  }
  return found;
}

std::string Selection::text(std::span<const Term> terms) const {
  std::string text;
  for (const Term& term : terms) {
    text += directive::coordinate_text(dag_.context->text(term.name), term.rest, text.empty());
    if (term.all) continue;
    text += '[';
    for (std::size_t i = 0; i < term.indices.size(); ++i)
      text += (i == 0 ? "" : ", ") + std::to_string(term.indices[i]);
    text += ']';
  }
  return text;
}

bool Selection::report_rest(std::span<const Term> terms, LocId loc, DiagnosticSink& sink) const {
  std::vector<Term> whole(terms.begin(), terms.end());
  whole.back().all = true;
  if (meaning(whole.back().name).dimension != kNone) {
    sink.report(Code::selector_matches_nothing, loc,
                "`{}` matches nothing: `rest` stands behind a region, and `{}` is a dimension",
                text(whole), dag_.context->text(whole.back().name))
        .hint("write `rest` behind the region: `stage[0].rest mb[1]`");
    return true;
  }
  std::vector<ChunkId> found = every_chunk_, scratch, both;
  for (const Term& term : whole) {
    if (!term.rest && meaning(term.name).dimension != kNone) continue;
    both.clear();
    intersect(found, chunks_of(term, scratch), both);
    found.swap(both);
  }
  const Term& rest = terms.back();
  if (found.empty()) {
    const std::string region =
        whole.size() == 1 ? "model" : text(std::span(whole).first(whole.size() - 1));
    sink.report(
            Code::selector_matches_nothing, loc,
            "`{}` matches nothing: all work of `{}` stands in regions inside it that the program names",
            text(whole), region)
        .hint("name these regions, or leave this out");
    return true;
  }
  std::uint32_t segments = 0;
  for (const ChunkId chunk : found)
    segments = std::max(segments, dag_.chunks[chunk.index()].segment + 1);
  for (const std::uint32_t index : rest.indices) {
    if (index < segments) continue;
    report_missing_index(sink, loc, text(whole), index, segments);
    return true;
  }
  return false;
}

void Selection::report(std::span<const Term> terms, LocId loc, DiagnosticSink& sink) const {
  for (const Term& term : terms) {
    const std::span<const Term> outer =
        terms.first(static_cast<std::size_t>(&term - terms.data()) + 1);
    if (term.rest && report_rest(outer, directive::narrowest(term.loc, loc), sink)) return;
  }
  report_parts_apart(sink, loc, text(terms));
}

void report_parts_apart(DiagnosticSink& sink, LocId loc, std::string_view parts) {
  sink.report(Code::selector_matches_nothing, loc,
              "`{}` matches nothing, though each of its parts does alone", parts)
      .hint("a selector means the work that has all of its coordinates at once");
}

std::span<const Selection::Term> Selection::terms_of(const directive::Order& order,
                                                     const directive::OrderOp& op) {
  terms_.clear();
  for (std::uint32_t i = 0; i < op.num_coordinates; ++i) {
    const directive::OrderCoordinate& coordinate = order.coordinates[op.first_coordinate + i];
    terms_.push_back({coordinate.name, coordinate.all, std::span(&coordinate.index, 1),
                      coordinate.loc, coordinate.rest});
  }
  return terms_;
}

std::span<const Selection::Term> Selection::terms_of(const directive::Selector& selector) {
  terms_.clear();
  for (const directive::Coordinate& coordinate : selector.coordinates) {
    terms_.push_back(
        {coordinate.name, coordinate.all, coordinate.indices, coordinate.loc, coordinate.rest});
  }
  return terms_;
}

std::optional<Selection::Found> Selection::find(const directive::Selector& selector) {
  return find(terms_of(selector));
}

std::optional<Selection::Found> Selection::find(const directive::Order& order,
                                                const directive::OrderOp& op) {
  return find(terms_of(order, op));
}

std::optional<Selection::Found> Selection::find(const directive::Selector& selector,
                                                DiagnosticSink& sink) {
  std::optional<Found> found = find(terms_of(selector));
  if (!found) report(terms_, selector.loc, sink);
  return found;
}

Selection::Named Selection::read(const directive::Order& order,
                                 const directive::OrderOp& op) const {
  Named named{Named::Kind::other, op.num_coordinates, {}, 0};
  Instance instance;
  for (const directive::OrderCoordinate& coordinate :
       std::span(order.coordinates).subspan(op.first_coordinate, op.num_coordinates)) {
    const auto [dimension, region] = meaning(coordinate.name);
    if (coordinate.all || coordinate.rest) return named;
    if (dimension != kNone) {
      if (instance.at[dimension] != Instance::kNone ||
          coordinate.index >= dag_.dims[dimension].extent)
        return named;
      instance.at[dimension] = static_cast<std::int32_t>(coordinate.index);
    } else {
      if (named.chunk.valid() || region == kNone ||
          coordinate.index >= regions_[region].by_index.size())
        return named;
      const std::vector<ChunkId>& chunks = regions_[region].by_index[coordinate.index];
      if (chunks.size() != 1) return named;
      named.chunk = chunks.front();
    }
  }
  for (std::size_t d = 0; d < dag_.dims.size(); ++d) {
    if (instance.at[d] == Instance::kNone) return named;
  }
  named.instance = instances_.position(instance);
  if (named.chunk.valid()) named.kind = Named::Kind::segment;
  return named;
}

const Selection::Named& Selection::named(const directive::Order& order,
                                         const directive::OrderOp& op) {
  if (named_order_ != &order) {
    named_order_ = &order;
    named_.assign(order.coordinates.size() + 1, Named());
  }
  Named& known = named_[op.first_coordinate];
  if (known.kind == Named::Kind::unread || known.num_coordinates != op.num_coordinates)
    known = read(order, op);
  return known;
}

std::optional<Selection::Found> Selection::find(const directive::Order& order,
                                                const directive::OrderOp& op,
                                                DiagnosticSink& sink) {
  std::optional<Found> found = find(terms_of(order, op));
  if (!found) report(terms_, order.written_at(op), sink);
  return found;
}

bool Selection::nodes(const directive::Order& order, const directive::OrderOp& op,
                      DiagnosticSink& sink, std::vector<NodeId>& out) {
  const std::optional<Found> found = find(order, op, sink);
  if (!found) return false;
  const std::size_t before = out.size();
  for (const ChunkId chunk : found->chunks) {
    for (const std::uint32_t instance : found->instances) {
      NodeId node = work().at(chunk, op.pass, instance);
      // Reduced gradients belong to the backward, whichever of its halves makes them.
      if (!node.valid() && op.part == directive::CommClass::reduce && op.pass == Pass::B)
        node = work().at(chunk, Pass::BW, instance);
      if (node.valid()) out.push_back(node);
    }
  }
  if (out.size() > before) return true;
  const std::string work = text(terms_of(order, op));
  if (op.pass == Pass::R) {
    sink.report(Code::not_recomputed, op.loc,
                "`R {}` matches nothing: no `recompute` line names this work", work)
        .hint("write `recompute {}`, or leave the operation out", work);
    return false;
  }
  report_missing_pass(sink, op.loc, std::string(pass_name(op.pass)) + " " + work, op.pass,
                      op.pass == Pass::F
                          ? ""
                          : "an order names either `B` or both `BI` and `BW` of one piece of work");
  return false;
}

template <typename IsIn>
bool Selection::adds_up(const Node& collective, const IsIn& is_in) const {
  NodeId last;
  for (const Input& input : dag_.inputs_of(collective)) {
    // All parameters of one bucket.
    if (std::exchange(last, input.source.node) == input.source.node) continue;
    const Node& source = dag_.node(input.source.node);
    if (runs_body(source.kind) ? is_in(source)
                               : source.subject.bucket().valid() && adds_up(source, is_in))
      return true;
  }
  return false;
}

bool Selection::nodes(const directive::Selector& selector, DiagnosticSink& sink,
                      std::vector<NodeId>& out) {
  const std::optional<Found> found = find(selector, sink);
  if (!found) return false;
  const std::size_t before = out.size();
  const auto of_pass = [&](Pass pass) {
    return !selector.pass || *selector.pass == pass ||
           (*selector.pass == Pass::B && is_backward(pass));
  };
  if (selector.part == directive::CommClass::none) {
    for (const ChunkId chunk : found->chunks) {
      for (const std::uint32_t instance : found->instances) {
        for (const Pass pass : kAllPasses) {
          if (const NodeId node = work().at(chunk, pass, instance); of_pass(pass) && node.valid())
            out.push_back(node);
        }
      }
    }
    return out.size() > before;
  }
  std::vector<bool> chunk_in(dag_.chunks.size()), instance_in(instances_.size());
  for (const ChunkId chunk : found->chunks) chunk_in[chunk.index()] = true;
  for (const std::uint32_t instance : found->instances) instance_in[instance] = true;
  const auto is_in = [&](const Node& node) {
    return chunk_in[node.chunk.index()] && instance_in[instances_.position(node.instance)] &&
           of_pass(node.pass);
  };
  for (std::size_t n = 0; n < dag_.nodes.size(); ++n) {
    const Node& node = dag_.nodes[n];
    bool in = false;
    if (is_send(node.kind)) {
      in = selector.part == directive::CommClass::send && is_in(node);
    } else if (is_recv(node.kind)) {
      in = selector.part == directive::CommClass::recv && is_in(node);
    } else if (node.reduces_gradients()) {
      in = selector.part == directive::CommClass::reduce && adds_up(node, is_in);
    } else if (gathers_shards(node.kind)) {
      in = selector.part == directive::CommClass::gather && adds_up(node, is_in);
    }
    if (in) out.push_back(NodeId::at(n));
  }
  return true;  // a program may have no such communication, which is no error
}

void report_unknown_name(DiagnosticSink& sink, LocId loc, std::string_view name,
                         std::span<const std::string_view> known, std::string_view model) {
  auto builder =
      sink.report(Code::unknown_region, loc, "no region or split dimension is named `{}`", name);
  builder.narrow_to(name);
  if (name == model) {
    builder.hint(
        "the model of the train is called `model`; calls inside it are regions with names of their own");
    return;
  }
  for (const directive::CommClass part :
       {directive::CommClass::send, directive::CommClass::recv, directive::CommClass::reduce,
        directive::CommClass::gather}) {
    if (directive::part_name(part) != name) continue;
    builder.hint("a part is named behind its region: `model.{}`", name);
    return;
  }
  std::vector<std::string_view> candidates(known.begin(), known.end()), parts;
  candidates.push_back("model");
  for (const directive::CommClass part :
       {directive::CommClass::send, directive::CommClass::recv, directive::CommClass::reduce,
        directive::CommClass::gather})
    parts.push_back(directive::part_name(part));
  std::string_view best;
  // A misspelt part is nearer than a region with a very different name.
  for (const std::size_t most : {std::size_t{1}, name.size() / 2}) {
    if (best.empty()) best = nearest_name(name, candidates, most);
    if (best.empty()) best = nearest_name(name, parts, most);
  }
  if (!best.empty()) {
    builder.did_you_mean(best, name);
  } else if (known.size() == 1) {
    builder.hint("the only name beside `model` is `{}`", known.front());
  } else if (!known.empty()) {
    std::string all;
    for (std::size_t i = 0; i < known.size() && i < 8; ++i)
      all += (i == 0 ? "`" : ", `") + std::string(known[i]) + "`";
    builder.hint("the names are {}{}", all, known.size() > 8 ? " and more" : "");
  }
}

void report_missing_index(DiagnosticSink& sink, LocId loc, std::string_view name,
                          std::uint32_t index, std::size_t size) {
  sink.report(Code::selector_matches_nothing, loc,
              "`{}[{}]` matches nothing: `{}` goes from 0 to {}", name, index, name, size - 1);
}

void report_missing_pass(DiagnosticSink& sink, LocId loc, std::string_view work, Pass pass,
                         std::string_view hint) {
  auto builder = sink.report(Code::selector_matches_nothing, loc,
                             "`{}` matches nothing: this work has no `{}`", work, pass_name(pass));
  if (!hint.empty()) builder.hint("{}", hint);
}

bool has_coordinate(const RegionTable& regions, const Context& context, RegionId region,
                    const directive::Coordinate& coordinate) {
  if (coordinate.all && context.text(coordinate.name) == "model") return true;
  const std::optional<std::uint32_t> index = regions.coordinate(region, coordinate.name);
  return index && (coordinate.all || std::find(coordinate.indices.begin(), coordinate.indices.end(),
                                               *index) != coordinate.indices.end());
}

std::string print_selector(const directive::Selector& selector, const SymbolTable& symbols) {
  std::string text;
  if (selector.pass) text = std::string(pass_name(*selector.pass)) + " ";
  if (selector.coordinates.empty()) text += "model";
  for (std::size_t c = 0; c < selector.coordinates.size(); ++c) {
    const directive::Coordinate& coordinate = selector.coordinates[c];
    text += directive::coordinate_text(symbols.text(coordinate.name), coordinate.rest, c == 0);
    if (coordinate.all) continue;
    text += '[';
    for (std::size_t i = 0; i < coordinate.indices.size(); ++i)
      text += (i == 0 ? "" : ", ") + std::to_string(coordinate.indices[i]);
    text += ']';
  }
  if (selector.part != directive::CommClass::none)
    text += "." + std::string(directive::part_name(selector.part));
  return text;
}

}  // namespace piper::passes
