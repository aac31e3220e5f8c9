#include "frontend/views/dag_view.h"

#include <algorithm>
#include <utility>

#include "frontend/views/folded_text.h"
#include "frontend/views/node_classes.h"
#include "frontend/views/node_lines.h"
#include "frontend/views/orders_view.h"
#include "frontend/views/plan_lines.h"
#include "ir/byte_text.h"
#include "ir/dag/local_type.h"
#include "ir/dag/text_names.h"
#include "ir/diagnostics/counted.h"
#include "ir/directive/print.h"
#include "ir/text/print_text.h"
#include "ir/tensor/graph_text.h"
#include "passes/order/orders_table.h"

namespace piper::views {
namespace {

using dag::Dag;
using dag::Level;
using dag::PortKind;

constexpr std::size_t kMaxNamed = 3;   // values of a body that are called by their names
constexpr std::size_t kMaxRanks = 16;  // whose orders are shown
constexpr std::size_t kLongest = 130;  // characters of an order

class DagView {
 public:
  DagView(const Dag& dag, std::span<const directive::Directive> directives,
          const DagViewOptions& options)
      : dag_(dag),
        directives_(directives),
        options_(options),
        os_(text_),
        locations_(dag.context->locations,
                   options.locations ? LocationForm::written : LocationForm::none) {}

  std::string run() {
    const std::vector<NodeClass> classes = node_classes(dag_);
    caption();
    directive::print(dag_.settings, os_, *dag_.context, &locations_);
    strategy();
    model();
    bodies();
    buckets();
    if (!dag_.plan) streams();
    const std::string program = folded(taken());
    orders();
    const std::string orders = taken();  // not folded: different orders could look equal
    node_lines(dag_, classes, options_.locations, os_);
    if (dag_.plan) plan_lines(dag_, classes, options_.locations, os_);
    const std::string compiled = folded(taken());
    left_out();
    return program + orders + compiled + taken();
  }

 private:
  std::string taken() { return std::exchange(text_, {}); }
  std::string name(Symbol symbol) const { return std::string(dag_.context->text(symbol)); }
  /// ` rate 0.5`; empty for 1.
  static std::string factor(const std::string& word, double number) {
    if (number == 1) return {};
    std::string text = word;
    llvm::raw_string_ostream os(text);
    print_number(os, number);
    return text;
  }
  std::string layout(const std::string& of, LayoutId layout) const {
    std::string text;
    llvm::raw_string_ostream os(text);
    if (!layout.replicated()) os << of, print_layout(os, layout, *dag_.context);
    return text;
  }
  void end_line(LocId loc = {}) {
    locations_.print(os_, loc);
    os_ << '\n';
  }

  void caption() {
    std::size_t operations = 0, edges = 0;
    for (const dag::Node& node : dag_.nodes) edges += node.num_inputs;
    for (const dag::Body& body : dag_.bodies) operations += body.graph.nodes().size();
    os_ << (dag_.settings.train.empty() ? "schedule" : dag_.settings.train) << " at level "
        << std::string(dag::level_name(dag_.level));
    if (dag_.forward_only) os_ << ", forward alone";
    os_ << ": " << counted(dag_.mesh.devices(), "device");
    if (dag_.plan) os_ << " in " << counted(dag_.plan->roles.size(), "role");
    os_ << ", " << counted(dag_.bodies.size(), "body", "bodies") << " with "
        << counted(operations, "operation") << ", " << counted(dag_.nodes.size(), "node") << ", "
        << counted(edges, "edge") << "\n";
  }

  // ---- what the program says, and what was made of it
  // -------------------------------------------------------------------

  void strategy() {
    if (dag_.mesh.name.valid()) {
      os_ << "mesh " << name(dag_.mesh.name);
      for (std::size_t i = 0; i < dag_.mesh.axes.size(); ++i)
        os_ << (i == 0 ? "(" : ", ") << name(dag_.mesh.axes[i].name) << ": "
            << dag_.mesh.axes[i].size;
      os_ << ")";
      end_line(dag_.mesh.loc);
    }
    if (directives_.empty()) return splits();
    os_ << "directives {\n";
    for (const directive::Directive& each : directives_) {
      if (const auto* order = std::get_if<directive::Order>(&each)) {
        os_ << "  order of " << counted(order->ranks.size(), "rank") << ", see `show orders`";
        end_line(order->loc);
      } else {
        directive::print(each, os_, {*dag_.context, dag_.mesh, dag_.device_sets, &locations_}, 2);
      }
    }
    os_ << "}\n";
  }

  void splits() {
    for (const dag::SplitDim& dim : dag_.dims) {
      os_ << "split " << name(dim.of) << " into " << name(dim.name) << ": " << dim.extent;
      end_line(dim.loc);
    }
  }

  void model() {
    for (std::size_t i = 0; i < dag_.params.size(); ++i) {
      const tensor::Param& param = dag_.params[i];
      os_ << "param " << name(param.name) << ": "
          << print(dag_.param_types[i], dag_.context->symbols) << " = "
          << tensor::init_text(param.init) << (param.frozen ? " frozen" : "")
          << factor(" rate ", param.rate) << factor(" decay ", param.decay);
      end_line(param.loc);
    }
    for (std::size_t i = 0; i < dag_.inputs.size(); ++i) {
      os_ << "input " << name(dag_.inputs[i].name) << ": "
          << print(dag_.input_types[i], dag_.context->symbols);
      end_line(dag_.inputs[i].loc);
    }
    for (const tensor::Loss& loss : dag_.losses) {
      os_ << "loss " << name(loss.name) << ": mean of " << loss.count << " in a batch";
      if (loss.mask)
        os_ << " but where " << name(dag_.inputs[loss.mask->targets.index()].name) << " is "
            << loss.mask->ignore;
      end_line(loss.loc);
    }
  }

  void bodies() {
    if (options_.bodies) return dag::print_bodies(dag_, os_, locations_);
    for (const dag::BodyId id : bodies_by_chunk()) {
      const dag::Body& body = dag_.bodies[id.index()];
      os_ << "body @" << name(body.name) << ": " << counted(body.graph.nodes().size(), "operation");
      if (!body.inputs.empty() || !body.outputs.empty())
        os_ << " (" << ports(body, body.inputs) << ") -> (" << ports(body, body.outputs) << ")";
      os_ << "\n";
    }
  }

  std::vector<dag::BodyId> bodies_by_chunk() const {
    std::vector<dag::BodyId> all;
    std::vector<bool> seen(dag_.bodies.size(), false);
    const auto add = [&](dag::BodyId body) {
      if (body.valid() && !seen[body.index()]) all.push_back(body), seen[body.index()] = true;
    };
    for (const dag::Chunk& chunk : dag_.chunks) {
      for (const dag::BodyId body : chunk.bodies) add(body);
      add(chunk.recomputed_forward);
    }
    for (std::size_t i = 0; i < dag_.bodies.size(); ++i) add(dag::BodyId::at(i));
    return all;
  }

  /// By kind, with the bytes of one device: `tokens 2KiB, 26 parameters 642KiB`.
  std::string ports(const dag::Body& body, const std::vector<dag::BodyPort>& ports) const {
    struct Kind {
      std::string names;
      std::size_t count = 0;
      std::int64_t bytes = 0;
    };
    std::vector<std::pair<PortKind, Kind>> kinds;
    for (const dag::BodyPort& port : ports) {
      auto kind = std::find_if(kinds.begin(), kinds.end(),
                               [&](const auto& each) { return each.first == port.kind; });
      if (kind == kinds.end()) kind = kinds.insert(kinds.end(), {port.kind, {}});
      const tensor::Value& value = body.graph.value(port.value);
      const std::int64_t bytes = largest_part(dag_, value.type, value.layout).bytes();
      kind->second.names += (kind->second.count++ == 0 ? "" : ", ") +
                            name(port.input.valid() ? dag_.inputs[port.input.index()].name
                                                    : body.graph.value(port.value).name) +
                            " " + bytes_text(bytes);
      kind->second.bytes += bytes;
    }
    std::string text;
    for (const auto& [kind, all] : kinds) {
      text += text.empty() ? "" : ", ";
      text += kind == PortKind::data && all.count <= kMaxNamed
                  ? all.names
                  : kind_text(kind, all.count) + " " + bytes_text(all.bytes);
    }
    return text;
  }

  static std::string kind_text(PortKind kind, std::size_t count) {
    switch (kind) {
      case PortKind::data: return counted(count, "value");
      case PortKind::saved: return std::to_string(count) + " saved";
      case PortKind::param: return counted(count, "parameter");
      case PortKind::grad: return counted(count, "gradient");
      case PortKind::loss_sum: return counted(count, "loss", "losses");
      case PortKind::count: return counted(count, "count");
    }
    return {};
  }

  void buckets() {
    for (const dag::Bucket& bucket : dag_.buckets) {
      std::int64_t bytes = 0;
      for (const tensor::ParamId param : bucket.params)
        bytes += dag_.param_types[param.index()].bytes();
      os_ << "bucket " << name(bucket.name) << ": "
          << counted(bucket.params.size(), dag_.frozen(bucket) ? "frozen parameter" : "parameter")
          << " " << bytes_text(bytes);
      for (std::size_t i = 0; i < bucket.owners.size(); ++i)
        os_ << (i == 0 ? " on " : ", ") << dag_.text(bucket.owners[i]);
      os_ << layout(" unreduced ", bucket.unreduced) << layout(" state ", bucket.state)
          << layout(" gradients ", bucket.gradients) << layout(" parameters ", bucket.parameters);
      if (bucket.gathered_per_use())
        os_ << " by " << std::string(directive::reduce_name(bucket.reduced));
      if (bucket.prefetch > 0) os_ << " prefetch " << bucket.prefetch;
      if (bucket.state_on_host) os_ << " offloaded";
      end_line(bucket.loc);
    }
  }

  void streams() {
    for (const dag::Stream& stream : dag_.streams) {
      os_ << "stream " << name(stream.name);
      if (stream.high_priority) os_ << " high_priority";
      if (stream.window) os_ << " window " << *stream.window;
      end_line(stream.loc);
    }
  }

  void orders() {
    if (dag_.level < Level::ordered) return;
    const passes::OrdersTable table = passes::orders_table(dag_);
    const std::string all = orders_text(table);
    std::size_t at = 0;
    for (std::size_t rank = 0; at < all.size(); ++rank) {
      const std::size_t end = all.find('\n', at);
      std::string line = all.substr(at, end - at);
      at = end + 1;
      if (rank < table.rows.size() && line.size() > kLongest)
        line = line.substr(0, line.rfind(' ', kLongest)) + " ... " +
               std::to_string(table.rows[rank].ops.size()) + " in all";
      if (rank < kMaxRanks || rank >= table.rows.size()) os_ << line << "\n";
      if (rank + 1 == table.rows.size() && rank >= kMaxRanks)
        os_ << "... " << counted(rank + 1 - kMaxRanks, "rank") << " more\n";
    }
  }

  void left_out() {
    if (!options_.bodies) os_ << "left out: the operations of bodies, see `--bodies`\n";
    if (dag_.plan)
      os_ << "left out: what each of " << counted(actions(), "action")
          << " waits for, reads and writes, see `show program`\n";
    os_ << "the whole text, which `check` reads: `--format pir`\n";
  }

  std::size_t actions() const {
    std::size_t count = 0;
    for (const dag::Role& role : dag_.plan->roles) count += role.actions.size();
    return count;
  }

  const Dag& dag_;
  std::span<const directive::Directive> directives_;
  const DagViewOptions& options_;
  std::string text_;
  llvm::raw_string_ostream os_;
  LocationText locations_;
};

}  // namespace

std::string dag_view(const Dag& dag, std::span<const directive::Directive> directives,
                     const DagViewOptions& options) {
  return DagView(dag, directives, options).run();
}

}  // namespace piper::views
