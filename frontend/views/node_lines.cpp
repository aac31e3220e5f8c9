#include "frontend/views/node_lines.h"

#include <algorithm>
#include <map>

#include "ir/diagnostics/counted.h"
#include "ir/text/location_text.h"
#include "ir/text/print_text.h"

namespace piper::views {
namespace {

using dag::Dag;
using dag::Node;
using dag::NodeId;

constexpr std::size_t kMaxRead = 5;    // that a long line names one by one
constexpr std::size_t kLongest = 130;  // characters of the inputs of a node

class NodeLines {
 public:
  NodeLines(const Dag& dag, const std::vector<NodeClass>& classes, bool locations,
            llvm::raw_ostream& os)
      : dag_(dag), classes_(classes), locations_(locations), os_(os) {}

  void run() {
    // By coordinates.
    std::map<std::vector<std::int32_t>, std::vector<const NodeClass*>> by_devices;
    for (const NodeClass& each : classes_) {
      const DeviceSetId devices = dag_.node(each.members[0]).devices;
      by_devices[devices.valid() ? dag_.device_sets[devices].at : std::vector<std::int32_t>()]
          .push_back(&each);
    }
    legend();
    for (const auto& [_, classes] : by_devices) {
      const DeviceSetId devices = dag_.node(classes[0]->members[0]).devices;
      os_ << (devices.valid() ? "on " + dag_.text(devices) : "graph") << " {\n";
      for (const NodeClass* each : classes) nodes(*each);
      os_ << "}\n";
    }
  }

 private:
  std::string name(Symbol symbol) const { return std::string(dag_.context->text(symbol)); }

  void nodes(const NodeClass& each) {
    const Node& node = dag_.node(each.members[0]);
    os_ << "  " << dag_.name(each.members[0], index_text(dag_, each.at));
    if (node.body.valid()) os_ << " = @" << name(dag_.bodies[node.body.index()].name);
    if (!each.readings.empty()) os_ << " (" << readings(each.readings) << ")";
    if (node.comm.valid() && !is_message(node.kind)) collective(dag_.comms[node.comm.index()]);
    if (!node.layout.replicated()) os_ << ' ', print_layout(os_, node.layout, *dag_.context);
    if (!dag_.plan && node.stream.valid() && node.stream.index() > 0)
      os_ << " on stream " << name(dag_.streams[node.stream.index()].name);
    location(each);
  }

  void collective(const dag::Comm& comm) {
    std::string axes;
    for (std::size_t i = 0; i < dag_.mesh.axes.size(); ++i) {
      if ((comm.axes >> i & 1) != 0)
        axes += (axes.empty() ? " over " : ", ") + name(dag_.mesh.axes[i].name);
    }
    os_ << axes;
    if (comm.members.size() > 1) os_ << " with " << counted(comm.members.size() - 1, "other");
  }

  /// In a long line only the first ones and the last of many.
  std::string readings(const std::vector<Reading>& all) const {
    std::vector<std::string> texts;
    std::size_t length = 0;
    for (const Reading& each : all) length += texts.emplace_back(reading(each)).size();
    const std::size_t shown =
        length > kLongest && all.size() > kMaxRead ? kMaxRead - 2 : all.size();
    std::string text;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (i == shown) text += ", ... " + std::to_string(texts.size() - shown - 1) + " more";
      if (i < shown || i + 1 == texts.size()) text += (i == 0 ? "" : ", ") + texts[i];
    }
    return text;
  }

  /// The number of values and their kind; empty if a node gives a single one that needs no
  /// explanation.
  std::string values(const Reading& reading) const {
    const bool block =
        reading.terms[0].first.valid() && dag_.leaves_shard(dag_.node(reading.terms[0].first));
    switch (reading.cls) {
      case dag::EdgeClass::data: return reading.ports > 1 ? std::to_string(reading.ports) : "";
      case dag::EdgeClass::param:
        return block ? "a block of parameters" : counted(reading.ports, "parameter");
      case dag::EdgeClass::grad:
        return block ? "a block of gradients" : counted(reading.ports, "gradient");
    }
    return {};
  }

  std::string reading(const Reading& reading) const {
    std::string text = values(reading);
    if (!reading.terms[0].first.valid()) return text + " at rest";
    if (!text.empty()) text += reading.each ? " of each " : " of ";
    for (std::size_t i = 0; i < reading.terms.size(); ++i) {
      const Reading::Term& term = reading.terms[i];
      const bool various = std::any_of(term.at.begin(), term.at.end(), [](const Indices& each) {
        return each.kind == Indices::Kind::various;
      });
      text += i > 0 ? " + " : "";
      if (term.nodes > 1 && various) text += std::to_string(term.nodes) + " ";
      text += dag_.name(term.first, index_text(dag_, term.at));
    }
    return text;
  }

  /// The first of them; nodes that were made by several lines say so.
  void location(const NodeClass& each) {
    const LocId first = dag_.node(each.members[0]).loc;
    if (locations_ && first.valid()) {
      os_ << ' ' << location_text(dag_.context->locations, first);
      if (std::any_of(each.members.begin(), each.members.end(),
                      [&](NodeId node) { return dag_.node(node).loc != first; }))
        os_ << " and others";
    }
    os_ << '\n';
  }

  /// The meanings of the indices in names that occur.
  void legend() {
    std::string own, next, before, various;  // a dimension that has such indices
    for (const NodeClass& each : classes_) {
      for (const Reading& reading : each.readings) {
        for (const Reading::Term& term : reading.terms) {
          for (std::size_t d = 0; d < dag_.dims.size() && d < dag::kMaxSplitDims; ++d) {
            const Indices& at = term.at[d];
            const bool follows = at.kind == Indices::Kind::own;
            std::string* const meant = at.kind == Indices::Kind::various ? &various
                                       : !follows                        ? nullptr
                                       : at.offset > 0                   ? &next
                                       : at.offset < 0                   ? &before
                                                                         : &own;
            if (meant != nullptr && meant->empty()) *meant = name(dag_.dims[d].name);
          }
        }
      }
    }
    if ((own + next + before + various).empty()) return;
    os_ << "a node is followed by its inputs";
    if (!own.empty()) os_ << ", `" << own << "` without a number at its own";
    if (!next.empty()) os_ << ", `" << next << "+1` at the next";
    if (!before.empty()) os_ << ", `" << before << "-1` at the one before";
    if (!various.empty()) os_ << ", `" << various << "*` at one or another";
    os_ << "; gradients of several nodes are added\n";
  }

  const Dag& dag_;
  const std::vector<NodeClass>& classes_;
  const bool locations_;
  llvm::raw_ostream& os_;
};

}  // namespace

void node_lines(const Dag& dag, const std::vector<NodeClass>& classes, bool locations,
                llvm::raw_ostream& os) {
  NodeLines(dag, classes, locations, os).run();
}

}  // namespace piper::views
