#include "frontend/views/plan_lines.h"

#include <algorithm>
#include <map>
#include <utility>

#include "ir/byte_text.h"
#include "ir/dag/text_names.h"
#include "ir/diagnostics/counted.h"
#include "ir/text/location_text.h"
#include "ir/text/print_text.h"
#include "passes/plan/memory_table.h"

namespace piper::views {
namespace {

using dag::Dag;
using dag::NodeId;

constexpr std::size_t kMaxRoles = 16;  // that are shown
// Streams, and operations of a communicator, that are called by their names.
constexpr std::size_t kMaxNamed = 3;

class PlanLines {
 public:
  PlanLines(const Dag& dag, const std::vector<NodeClass>& classes, bool locations,
            llvm::raw_ostream& os)
      : dag_(dag), classes_(classes), locations_(locations), os_(os), class_of_(dag.nodes.size()) {
    for (std::size_t i = 0; i < classes.size(); ++i) {
      for (const NodeId member : classes[i].members) class_of_[member.index()] = i;
    }
  }

  void run() {
    const std::vector<std::string> names = dag::communicator_names(dag_, *dag_.plan);
    for (std::size_t i = 0; i < names.size(); ++i)
      communicator(dag_.plan->communicators[i], names[i]);
    const std::vector<passes::MemoryRow> memory = passes::memory_table(dag_);
    for (std::size_t i = 0; i < memory.size() && i < kMaxRoles; ++i)
      role(dag_.plan->roles[i], memory[i]);
    if (memory.size() > kMaxRoles)
      os_ << "... " << counted(memory.size() - kMaxRoles, "role") << " more\n";
  }

 private:
  std::string name(Symbol symbol) const { return std::string(dag_.context->text(symbol)); }

  void communicator(const dag::Communicator& communicator, const std::string& called) {
    const bool pair = communicator.kind == dag::Communicator::Kind::pair;
    os_ << "communicator " << called << ": " << operations(communicator);
    if (communicator.stream.valid())
      os_ << " on stream " << name(dag_.streams[communicator.stream.index()].name);
    if (communicator.stream.valid() && dag_.streams[communicator.stream.index()].high_priority)
      os_ << " of high priority";
    if (pair) os_ << ", window " << communicator.window << ", at least " << communicator.min_window;
    if (locations_ && communicator.loc.valid())
      os_ << ' ' << location_text(dag_.context->locations, communicator.loc);
    os_ << "\n";
  }

  /// Its communications by their first members: similar nodes as one, and many of them as the
  /// number of each kind.
  std::string operations(const dag::Communicator& communicator) const {
    std::vector<std::size_t> classes;
    std::map<dag::NodeKind, std::size_t> kinds;
    for (const dag::CommId comm : communicator.comms) {
      const NodeId first = dag_.comms[comm.index()].members.front();
      ++kinds[dag_.node(first).kind];
      if (std::find(classes.begin(), classes.end(), class_of_[first.index()]) == classes.end())
        classes.push_back(class_of_[first.index()]);
    }
    std::string text;
    const auto add = [&](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
    if (classes.size() <= kMaxNamed) {
      for (const std::size_t each : classes)
        add(dag_.name(classes_[each].members[0], index_text(dag_, classes_[each].at)));
    } else {
      for (const auto& [kind, count] : kinds)
        add(std::to_string(count) + " of " + std::string(dag::kind_name(kind)));
    }
    return text;
  }

  void role(const dag::Role& role, const passes::MemoryRow& memory) {
    os_ << "role " << name(role.name) << " at ";
    print_device_set(os_, {role.at}, dag_.mesh, dag_.context->symbols);
    os_ << ": arena " << bytes_text(role.arena_bytes);
    if (role.host_bytes > 0) os_ << ", host " << bytes_text(role.host_bytes);
    os_ << ", " << counted(role.buffers.size(), "buffer") << ", "
        << counted(role.waits.size(), "wait") << "\n";
    os_ << "  " << counted(role.actions.size(), "action") << ": " << actions_by_stream(role);
    os_ << "\n  at peak " << bytes_text(memory.sum_of_peak()) << ":";
    for (std::size_t cls = 0, before = 0; cls < memory.peak.size(); ++cls) {
      if (memory.peak[cls] == 0) continue;
      os_ << (before++ > 0 ? ", " : " ")
          << std::string(dag::buffer_class_name(static_cast<dag::BufferClass>(cls))) << ' '
          << bytes_text(memory.peak[cls]);
    }
    os_ << "\n";
  }

  /// Streams with equally many as one: `28 on compute, 8 on each of 4 streams`.
  std::string actions_by_stream(const dag::Role& role) const {
    std::vector<std::size_t> actions(dag_.streams.size(), 0);
    for (const dag::Action& action : role.actions) ++actions[action.stream.index()];
    // By the number of their actions.
    std::vector<std::pair<std::size_t, std::vector<std::size_t>>> streams;
    for (std::size_t s = 0; s < actions.size(); ++s) {
      if (actions[s] == 0) continue;
      auto found = std::find_if(streams.begin(), streams.end(),
                                [&](const auto& each) { return each.first == actions[s]; });
      if (found == streams.end()) found = streams.insert(streams.end(), {actions[s], {}});
      found->second.push_back(s);
    }
    std::string text;
    for (const auto& [count, some] : streams) {
      text += (text.empty() ? "" : ", ") + std::to_string(count) + " on ";
      if (some.size() > kMaxNamed) {
        text += "each of " + std::to_string(some.size()) + " streams";
      } else {
        for (std::size_t i = 0; i < some.size(); ++i)
          text += (i == 0                 ? ""
                   : i + 1 == some.size() ? " and on "
                                          : ", on ") +
                  name(dag_.streams[some[i]].name);
      }
    }
    return text;
  }

  const Dag& dag_;
  const std::vector<NodeClass>& classes_;
  const bool locations_;
  llvm::raw_ostream& os_;
  std::vector<std::size_t> class_of_;  // per node
};

}  // namespace

void plan_lines(const Dag& dag, const std::vector<NodeClass>& classes, bool locations,
                llvm::raw_ostream& os) {
  PlanLines(dag, classes, locations, os).run();
}

}  // namespace piper::views
