#include "ir/dag/print.h"

#include <algorithm>

#include "ir/dag/field_writer.h"
#include "ir/dag/print_plan.h"
#include "ir/dag/text_names.h"
#include "ir/directive/print.h"
#include "ir/text/print_text.h"

namespace piper::dag {

namespace {

class Printer : NamePrinter {
 public:
  Printer(const Dag& dag, llvm::raw_ostream& os) : NamePrinter(dag, os), fields_(*this) {}

  void print(std::span<const directive::Directive> directives) {
    os_ << "pir 2 " << level_name(dag_.level);
    if (dag_.forward_only) os_ << " forward_only";
    os_ << '\n';
    directive::print(dag_.settings, os_, *dag_.context, &locations_);
    strategy_facts();
    model_facts();
    compiled_facts();
    if (!directives.empty()) {
      os_ << "directives {\n";
      for (const directive::Directive& each : directives) {
        directive::print(each, os_, surroundings(), 2);
      }
      os_ << "}\n";
    }
    print_bodies(dag_, os_, locations_);
    graph();
    if (dag_.plan) print_plan(*dag_.plan, *this);
    locations_.print_table(os_);
  }

 private:
  directive::Surroundings surroundings() {
    return {*dag_.context, dag_.mesh, dag_.device_sets, &locations_};
  }

  void end_line(LocId loc) {
    location(loc);
    os_ << '\n';
  }

  void strategy_facts() {
    if (dag_.mesh.name.valid()) {
      os_ << "mesh ";
      symbol(dag_.mesh.name);
      os_ << '(';
      for (std::size_t i = 0; i < dag_.mesh.axes.size(); ++i) {
        if (i > 0) os_ << ", ";
        symbol(dag_.mesh.axes[i].name);
        os_ << ": " << dag_.mesh.axes[i].size;
      }
      os_ << ')';
      end_line(dag_.mesh.loc);
    }
    if (dag_.stages.valid()) {
      os_ << "stages ";
      symbol(dag_.stages);
      os_ << '\n';
    }
    for (const SplitDim& dim : dag_.dims) line("split ", [&] { split_fields(fields_, dim); });
  }

  void model_facts() {
    for (std::size_t i = 0; i < dag_.params.size(); ++i)
      line("param ", [&] { param_fields(fields_, dag_.params[i], dag_.param_types[i]); });
    for (std::size_t i = 0; i < dag_.inputs.size(); ++i)
      line("input ", [&] { input_fields(fields_, dag_.inputs[i], dag_.input_types[i]); });
    for (const tensor::Loss& loss : dag_.losses) line("loss ", [&] { loss_fields(fields_, loss); });
  }

  void line(llvm::StringRef word, auto fields) {
    os_ << word;
    fields();
    os_ << '\n';
  }

  /// The result of the passes.
  void compiled_facts() {
    for (const Chunk& each : dag_.chunks) chunk(each);
    for (const Bucket& bucket : dag_.buckets)
      line("bucket ", [&] { bucket_fields(fields_, bucket); });
    for (const Stream& stream : dag_.streams)
      line("stream ", [&] { stream_fields(fields_, stream); });
    for (const directive::Require& require : dag_.requirements) {
      directive::print(directive::Directive(require), os_, surroundings(), 0);
    }
    for (const directive::RankSteps& claim : dag_.claims)
      line("claim ", [&] { claim_fields(fields_, claim); });
  }

  void chunk(const Chunk& chunk) {
    os_ << "chunk ";
    symbol(chunk.name);
    os_ << " of ";
    region(chunk.region);
    if (chunk.segment > 0) os_ << " segment " << chunk.segment;
    for (std::size_t pass = 0; pass < kPasses; ++pass) {
      if (!chunk.bodies[pass].valid()) continue;
      os_ << ' ' << pass_name(static_cast<Pass>(pass)) << " @";
      symbol(dag_.bodies[chunk.bodies[pass].index()].name);
    }
    if (chunk.recomputed_forward.valid()) {
      os_ << " recomputed @";
      symbol(dag_.bodies[chunk.recomputed_forward.index()].name);
    }
    end_line(chunk.loc);
  }

  void region(RegionId id) {
    if (!id.valid()) {
      os_ << "model";
      return;
    }
    std::vector<RegionId> path;
    for (RegionId each = id; each.valid(); each = dag_.regions.parent(each)) path.push_back(each);
    for (std::size_t i = path.size(); i-- > 0;) {
      if (symbols_.text(dag_.regions.name(path[i])) == "model") {
        os_ << "\"model\"";
      } else {
        symbol(dag_.regions.name(path[i]));
      }
      os_ << '[' << dag_.regions.index(path[i]) << ']';
      if (i > 0) os_ << '.';
    }
  }

  // ---- the graph
  // -------------------------------------------------------------------------------------------------------

  void graph() {
    // `after` lists per node, in the order of the temporal edges.
    after_first_.assign(dag_.nodes.size() + 1, 0);
    for (const auto& [before, after] : dag_.temporal) ++after_first_[after.index() + 1];
    for (std::size_t i = 0; i < dag_.nodes.size(); ++i) after_first_[i + 1] += after_first_[i];
    after_.resize(dag_.temporal.size());
    std::vector<std::uint32_t> fill(after_first_.begin(), after_first_.end() - 1);
    for (const auto& [before, after] : dag_.temporal) after_[fill[after.index()]++] = before;

    std::vector<bool> seen(dag_.nodes.size(), false);
    bool ordered = dag_.order.size() == dag_.nodes.size();
    for (const NodeId id : dag_.order) {
      if (!ordered || id.index() >= seen.size() || seen[id.index()]) {
        ordered = false;
        break;
      }
      seen[id.index()] = true;
    }
    os_ << "graph {\n";
    for (std::size_t i = 0; i < dag_.nodes.size(); ++i)
      node(ordered ? dag_.order[i] : NodeId::at(i));
    os_ << "}\n";
    if (!ordered && dag_.level >= Level::ordered) {
      os_ << "order {\n";
      for (const NodeId id : dag_.order) {
        os_ << "  ";
        node_name(id);
        os_ << '\n';
      }
      os_ << "}\n";
    }
    gather_intervals();
  }

  /// Present between the orders and the gathered intervals that follow from them.
  void gather_intervals() {
    if (dag_.gather_intervals.empty()) return;
    os_ << "gathers {\n";
    for (const Dag::GatherInterval& gather : dag_.gather_intervals) {
      os_ << "  ";
      node_name(gather.whole);
      node_list(" for ", gather.uses);
      node_list(" after ", gather.after);
      end_line(gather.loc);
    }
    os_ << "}\n";
  }

  void node_list(llvm::StringRef word, std::span<const NodeId> nodes) {
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      os_ << (i == 0 ? word : ", ");
      node_name(nodes[i]);
    }
  }

  void node(NodeId id) {
    const Node& node = dag_.nodes[id.index()];
    os_ << "  ";
    node_name(id);
    os_ << " = ";
    head(node);
    operands(node);
    if (node.comm.valid()) members(id, node);
    if (node.num_outputs != implied_outputs(dag_, node)) os_ << " outputs " << node.num_outputs;
    if (node.devices.valid()) {
      os_ << " on ";
      devices(node.devices);
    }
    if (!node.layout.replicated()) {
      os_ << ' ';
      print_layout(os_, node.layout, *dag_.context);
    }
    if (node.stream.valid()) {
      os_ << " stream ";
      symbol(dag_.streams[node.stream.index()].name);
    }
    if (id.index() < dag_.group.size() && dag_.group[id.index()] != Dag::kNoGroup)
      os_ << " group " << dag_.group[id.index()];
    node_list(" after ",
              std::span(after_).subspan(after_first_[id.index()],
                                        after_first_[id.index() + 1] - after_first_[id.index()]));
    end_line(node.loc);
  }

  void chunk_of(const Node& node) {
    os_ << ' ' << pass_name(node.pass) << ' ';
    symbol(dag_.chunks[node.chunk.index()].name);
  }

  /// A kind with only one kind of subject needs no word for it; collectives without a subject
  /// gather norms.
  void subject(const Node& node) {
    const Subject subject = node.subject;
    const bool collective = is_collective(node.kind);
    if (subject == Subject() || (collective && subject.is_norm())) return;
    os_ << ' ';
    if (subject.is_norm()) {
      os_ << "norm";
      return;
    }
    if (subject.bucket().valid()) os_ << "bucket ";
    if (subject.loss().valid()) os_ << "loss ";
    if (subject.count().valid() && collective) os_ << "count ";
    symbol(dag_.subject_symbol(subject));
  }

  void head(const Node& node) {
    if (runs_body(node.kind)) {
      os_ << pass_name(node.pass) << ' ';
      symbol(dag_.chunks[node.chunk.index()].name);
    } else {
      os_ << kind_name(node.kind);
      subject(node);
      if (node.chunk.valid()) chunk_of(node);
    }
    bool any = false;
    for (std::size_t i = 0; i < dag_.dims.size() && i < kMaxSplitDims; ++i) {
      if (node.instance.at[i] == Instance::kNone) continue;
      os_ << (any ? ", " : " [");
      any = true;
      symbol(dag_.dims[i].name);
      os_ << ": " << node.instance.at[i];
    }
    if (any) os_ << ']';
    if (node.body.valid()) {
      os_ << " @";
      symbol(dag_.bodies[node.body.index()].name);
    }
  }

  void source(const Input& edge) {
    if (!edge.source.node.valid()) {
      os_ << "_:" << edge.source.index;
    } else {
      port(edge.source);
    }
  }

  void operands(const Node& node) {
    const std::span<const Input> inputs = dag_.inputs_of(node);
    if (inputs.empty()) return;
    constexpr llvm::StringRef kClasses[] = {"data ", "param ", "grad "};
    os_ << " (";
    std::uint32_t expected = 0;
    for (std::size_t i = 0; i < inputs.size();) {
      std::size_t end = i + 1;
      while (end < inputs.size() && inputs[end].port == inputs[i].port) ++end;
      if (i > 0) os_ << ", ";
      if (inputs[i].port != expected) os_ << inputs[i].port << ": ";
      expected = inputs[i].port + 1;
      if (inputs[i].cls != EdgeClass::data)
        os_ << kClasses[static_cast<std::size_t>(inputs[i].cls)];
      for (std::size_t j = i; j < end; ++j) {
        if (j > i) os_ << " + ";
        if (inputs[j].cls != inputs[i].cls)
          os_ << kClasses[static_cast<std::size_t>(inputs[j].cls)];
        source(inputs[j]);
      }
      i = end;
    }
    os_ << ')';
  }

  void members(NodeId id, const Node& node) {
    const Comm& comm = dag_.comms[node.comm.index()];
    if (is_message(node.kind)) {
      const bool send = is_send(node.kind);
      const std::size_t peer = send ? 1 : 0;
      if (comm.members.size() > peer) {
        os_ << (send ? " to " : " from ");
        node_name(comm.members[peer]);
      }
    } else {
      os_ << " over ";
      if (comm.axes == 0) {
        os_ << "()";
      } else {
        axes(comm.axes);
      }
      if (comm.members.size() != 1 || comm.members[0] != id) {
        os_ << " with (";
        for (std::size_t i = 0; i < comm.members.size(); ++i) {
          if (i > 0) os_ << ", ";
          node_name(comm.members[i]);
        }
        os_ << ')';
      }
    }
    if (comm.loc.valid() && comm.loc != node.loc &&
        (comm.members.empty() || comm.members[0] == id)) {
      os_ << " at";
      location(comm.loc);
    }
  }

  FieldWriter fields_;
  std::vector<std::uint32_t> after_first_;
  std::vector<NodeId> after_;
};

}  // namespace

void print(const Dag& dag, llvm::raw_ostream& os,
           std::span<const directive::Directive> directives) {
  Printer(dag, os).print(directives);
}

std::string print(const Dag& dag, std::span<const directive::Directive> directives) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(dag, os, directives);
  os.flush();
  return text;
}

}  // namespace piper::dag
