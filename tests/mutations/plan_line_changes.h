#pragma once
// Changes of single lines of a plan: heads of communicators and roles, buffers, and actions with
// their waits and operands.
//
//   PlanLineChanges plan(dag, lines);
//   plan.add_communicator(12);
//   plan.add_role(20);
//   plan.add_role_line(21);
//   plan.change_actions_and_buffers();  // lines.changes has those of lines 12 to 21

#include <cstddef>
#include <string>
#include <vector>

#include "ir/dag/plan.h"
#include "tests/mutations/dag_lines.h"
#include "tests/mutations/independence.h"

namespace piper::test {

class PlanLineChanges {
 public:
  /// `lines`: the printed text of `dag`, which takes the changes.
  PlanLineChanges(const dag::Dag& dag, DagLines& lines)
      : dag_(dag), independence_(dag), lines_(lines) {}

  /// Notes a communicator and adds the changes of its line.
  void add_communicator(std::size_t line);
  /// Begins a role and adds the changes of its head.
  void add_role(std::size_t line);
  /// Notes a buffer or an action of the last role; its changes come later.
  void add_role_line(std::size_t line);
  /// Adds the changes of all noted actions, then of all noted buffers.
  void change_actions_and_buffers();
  /// Adds changes that put an action of a node, for which no device does work, in front of the
  /// others of each noted role.
  void add_action_of(const std::string& name);

  /// The number of neighbouring actions that may be swapped.
  std::size_t num_independent() const { return num_independent_; }

 private:
  struct Place {
    std::size_t line, role, action;
  };
  struct BufferLine {
    std::size_t line, role, buffer;
  };

  const dag::Action& action(const Place& place) const {
    return dag_.plan->roles[place.role].actions[place.action];
  }
  void act(std::size_t k);
  void waits(const Place& place);
  void operands(const Place& place);
  void sizes_and_classes(const BufferLine& place);
  /// State has bytes that nothing else may use, however long before or after.
  void move_onto_state(const BufferLine& place);

  const dag::Dag& dag_;
  const Independence independence_;
  DagLines& lines_;
  std::size_t num_roles_ = 0;
  std::size_t num_actions_ = 0, num_buffers_ = 0;  // of the last role
  std::size_t num_independent_ = 0;
  std::vector<std::string> via_;  // names of communicators
  std::vector<Place> actions_;
  std::vector<BufferLine> buffers_;
};

}  // namespace piper::test
