#include "tests/mutations/plan_changes.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "ir/alignment.h"
#include "ir/dag/bucket_layout.h"

namespace piper::test {

namespace {

using dag::Buffer;
using dag::BufferClass;
using dag::Dag;
using dag::NodeId;

/// Bytes of the arena that no parameter fills.
struct Gap {
  std::int64_t begin = 0, end = 0;
  dag::Port value;  // whose buffer this is in; invalid: state
};

class Changes {
 public:
  Changes(const Dag& dag, const std::string& text) : dag_(dag) {
    std::size_t begin = 0;
    for (std::size_t end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1)
      lines_.push_back(text.substr(begin, end - begin));
  }

  std::vector<TextChange> all() {
    find_lines();
    for (std::size_t n = 0; n < nodes_.size() && dag_.order.size() == nodes_.size(); ++n)
      node(dag_.order[n], nodes_[n]);
    if (dag_.order.empty()) {
      for (std::size_t n = 0; n < nodes_.size(); ++n) node(NodeId::at(n), nodes_[n]);
    }
    for (const dag::Chunk& chunk : dag_.chunks) recomputed_forward(chunk);
    for (std::size_t r = 0; r < roles_.size(); ++r) role(dag_.plan->roles[r], roles_[r]);
    return std::move(changes_);
  }

 private:
  /// Lines of the graph in their order, and where each role begins.
  void find_lines() {
    bool graph = false;
    for (std::size_t i = 0; i < lines_.size(); ++i) {
      if (lines_[i] == "graph {") graph = true;
      if (lines_[i] == "}") graph = false;
      if (graph && lines_[i].starts_with("  ")) {
        line_of_.emplace(lines_[i].substr(2, lines_[i].find(" = ") - 2), i);
        nodes_.push_back(i);
      }
      if (lines_[i].starts_with("role ")) roles_.push_back(i);
    }
  }

  // ---- nodes

  void node(NodeId id, std::size_t line) {
    const dag::Node& node = dag_.node(id);
    attributes(node, line);
    if (dag_.level < dag::Level::ordered) return;
    if (adds_in_place(node.kind)) terms(id);
    if (node.comm.valid() && dag_.comms[node.comm.index()].members.size() > 1) stream(node, line);
  }

  void attributes(const dag::Node& node, std::size_t line) {
    const std::string& text = lines_[line];
    std::size_t end = text.size();
    for (const char* behind :
         {" (", " over ", " to ", " from ", " outputs ", " on ", " <", " stream ", " after ", " #"})
      end = std::min(end, text.find(behind));
    const auto with = [&](const char* what, std::size_t at, const std::string& added) {
      add(what, line, text.substr(0, at) + added + text.substr(at));
    };
    if (runs_body(node.kind)) return;
    if (!dag_.bodies.empty())
      with("a body", end, " @" + std::string(dag_.context->text(dag_.bodies.front().name)));
    const std::size_t instance = std::min(text.find(" ["), end);
    const bool may_name_work =
        is_message(node.kind) || is_collective(node.kind) || adds_in_place(node.kind);
    if (!may_name_work)
      with("work", instance, " F " + std::string(dag_.context->text(dag_.chunks.front().name)));
    const bool may_have_instance =
        node.chunk.valid() || node.kind == dag::NodeKind::load || is_message(node.kind);
    if (!may_have_instance && !dag_.dims.empty())
      with("an instance", end,
           " [" + std::string(dag_.context->text(dag_.dims.front().name)) + ": 0]");
  }

  /// The first of two terms is made behind the second.
  void terms(NodeId sum) {
    const std::span<const dag::Input> inputs = dag_.inputs_of(dag_.node(sum));
    for (std::size_t i = 1; i < inputs.size(); ++i) {
      if (inputs[i].port != inputs[i - 1].port ||
          inputs[i].source.node == inputs[i - 1].source.node)
        continue;
      const auto first = line_of_.find(dag_.name(inputs[i - 1].source.node)),
                 second = line_of_.find(dag_.name(inputs[i].source.node));
      if (first == line_of_.end() || second == line_of_.end() || first->second > second->second)
        continue;
      std::vector<std::string> lines = lines_;
      std::rotate(lines.begin() + static_cast<std::ptrdiff_t>(first->second),
                  lines.begin() + static_cast<std::ptrdiff_t>(first->second) + 1,
                  lines.begin() + static_cast<std::ptrdiff_t>(second->second) + 1);
      add("made behind `" + second->first + "`: " + lines_[first->second], lines);
      return;
    }
  }

  void stream(const dag::Node& node, std::size_t line) {
    const std::string own =
        " stream " + std::string(dag_.context->text(dag_.streams[node.stream.index()].name));
    const std::size_t at = lines_[line].find(own);
    for (std::size_t s = 1; s < dag_.streams.size() && at != std::string::npos; ++s) {
      const std::string other = " stream " + std::string(dag_.context->text(dag_.streams[s].name));
      if (other == own) continue;
      add("on another stream", line,
          lines_[line].substr(0, at) + other + lines_[line].substr(at + own.size()));
      return;
    }
  }

  // ---- bodies

  /// Each operation of a lean forward becomes another operation of a fixed list, or takes its
  /// operands in the other order.
  void recomputed_forward(const dag::Chunk& chunk) {
    const dag::BodyId full = chunk.bodies[static_cast<std::size_t>(Pass::F)];
    if (!chunk.recomputed_forward.valid() || !full.valid() ||
        dag_.bodies[full.index()].graph.nodes().empty())
      return;
    const std::string head =
        "body @" +
        std::string(dag_.context->text(dag_.bodies[chunk.recomputed_forward.index()].name)) + "(";
    const auto begin = std::find_if(lines_.begin(), lines_.end(), [&](const std::string& line) {
      return line.starts_with(head);
    });
    for (auto line = begin; line != lines_.end() && *line != "}"; ++line)
      operation(static_cast<std::size_t>(line - lines_.begin()));
  }

  void operation(std::size_t line) {
    static const std::map<std::string, std::string> kOthers = {
        {"gelu", "tanh"}, {"tanh", "gelu"}, {"relu", "tanh"}, {"square", "neg"},
        {"add", "sub"},   {"sub", "add"},   {"mul", "add"}};
    const std::string& text = lines_[line];
    const std::size_t equals = text.find(" = "), open = text.find('(', equals),
                      close = text.find(')', open);
    if (!text.starts_with("  %") || equals == std::string::npos || open == std::string::npos)
      return;
    const auto other = kOthers.find(text.substr(equals + 3, open - equals - 3));
    if (other != kOthers.end())
      add("another operation", line,
          text.substr(0, equals + 3) + other->second + text.substr(open));
    const std::size_t comma = text.find(", ", open);
    if (other == kOthers.end() || comma > close) return;
    const std::string first = text.substr(open + 1, comma - open - 1),
                      second = text.substr(comma + 2, close - comma - 2);
    if (made_by(first, line) == made_by(second, line)) return;  // two operations that are one value
    add("the other way around", line,
        text.substr(0, open + 1) + second + ", " + first + text.substr(close));
  }

  /// The operation that makes a value of a body, above that line.
  std::string made_by(const std::string& value, std::size_t line) const {
    while (line-- > 0 && !lines_[line].starts_with("body ")) {
      const std::string own = "  " + value + " = ";
      if (lines_[line].starts_with(own + "port ")) return value;
      if (lines_[line].starts_with(own))
        return lines_[line].substr(lines_[line].find(" = "),
                                   lines_[line].find(" #") - lines_[line].find(" = "));
    }
    return value;
  }

  // ---- buffers

  void role(const dag::Role& role, std::size_t line) {
    const std::vector<Gap> gaps = gaps_of(role);
    for (std::size_t b = 0; b < role.buffers.size(); ++b) {
      const std::size_t own = line + 1 + b;
      const Buffer& buffer = role.buffers[b];
      if (is_on_host(buffer.cls)) continue;
      if (is_state(buffer.cls)) {
        behind(role, line, own);
        continue;
      }
      for (std::size_t k = 0; k < gaps.size(); ++k) {
        const Gap& gap = gaps[(b + k) % gaps.size()];
        const std::int64_t at = round_up(gap.begin, kAlignment);
        if (at >= gap.end || (gap.value.node.valid() && !lives_through(role, b, gap.value)))
          continue;
        moved("into padding at " + std::to_string(at), own, at);
        break;
      }
    }
  }

  /// The gaps in the buckets of a role: after each parameter up to the next, in every buffer that
  /// has room for all of them, slot by slot.
  std::vector<Gap> gaps_of(const dag::Role& role) const {
    std::vector<Gap> gaps;
    for (const Buffer& buffer : role.buffers) {
      const bool whole_for_a_while =
          buffer.cls == BufferClass::unreduced || buffer.cls == BufferClass::gathered;
      const dag::BucketId id =
          whole_for_a_while ? dag_.node(buffer.value.node).subject.bucket() : buffer.bucket;
      if (!id.valid() || is_on_host(buffer.cls)) continue;
      const dag::Bucket& bucket = dag_.buckets[id.index()];
      const dag::BucketLayout layout = bucket_layout(dag_, bucket);
      const bool parameters =
          buffer.cls == BufferClass::parameters || buffer.cls == BufferClass::gathered;
      const auto bytes = [&](std::int64_t of) {
        return parameters ? layout.parameter_bytes(of) : layout.sum_bytes(of);
      };
      const std::int64_t extent = bytes(layout.elements);
      // A block: which part of the parameters is in it depends on the rank.
      if (buffer.bytes % extent != 0) continue;
      for (std::int64_t slot = 0; slot < buffer.bytes; slot += extent) {
        for (std::size_t i = 0; i < bucket.params.size(); ++i) {
          const std::int64_t filled =
              layout.offsets[i] + dag_.param_types[bucket.params[i].index()].elements();
          const std::int64_t next =
              i + 1 < bucket.params.size() ? layout.offsets[i + 1] : layout.elements;
          if (filled < next)
            gaps.push_back({buffer.offset + slot + bytes(filled),
                            buffer.offset + slot + bytes(next), buffer.value});
        }
      }
    }
    return gaps;
  }

  /// An action before the collective that writes the padding names the buffer, and so does one
  /// behind it.
  bool lives_through(const dag::Role& role, std::size_t buffer, dag::Port value) const {
    std::optional<std::size_t> first, collective;
    std::size_t last = 0;
    for (std::size_t a = 0; a < role.actions.size(); ++a) {
      const dag::Action& action = role.actions[a];
      const dag::Node& node = dag_.node(action.node);
      const std::span<const dag::Input> inputs = dag_.inputs_of(node);
      if (action.node == value.node || (reduces_to_shards(node.kind) && !inputs.empty() &&
                                        inputs.front().source.node == value.node))
        collective = a;
      for (std::uint32_t k = 0; k < action.num_operands; ++k) {
        if (role.operands[action.first_operand + k].buffer.index() != buffer) continue;
        if (!first) first = a;
        last = a;
      }
    }
    return first && collective && *first < *collective && *collective < last &&
           role.buffers[buffer].cls != BufferClass::workspace;
  }

  void moved(const std::string& what, std::size_t line, std::int64_t at) {
    const std::string& text = lines_[line];
    const std::size_t begin = text.find(" at ") + 4;
    add(what, line,
        text.substr(0, begin) + std::to_string(at) + text.substr(text.find(' ', begin)));
  }

  /// State at the end of an arena that has room for it.
  void behind(const dag::Role& role, std::size_t head, std::size_t line) {
    const std::string arena = " arena " + std::to_string(role.arena_bytes);
    if (std::none_of(role.buffers.begin(), role.buffers.end(), [](const Buffer& buffer) {
          return !is_state(buffer.cls) && !is_on_host(buffer.cls);
        }))
      return;
    std::vector<std::string> lines = lines_;
    const std::int64_t bytes = role.buffers[line - head - 1].bytes;
    lines[head].replace(lines[head].find(arena), arena.size(),
                        " arena " + std::to_string(role.arena_bytes + aligned(bytes)));
    const std::size_t begin = lines[line].find(" at ") + 4;
    lines[line].replace(begin, lines[line].find(' ', begin) - begin,
                        std::to_string(role.arena_bytes));
    add("behind the activations: " + lines_[line], lines);
  }

  void add(const std::string& what, std::size_t line, const std::string& replacement) {
    if (replacement == lines_[line]) return;
    std::vector<std::string> lines = lines_;
    lines[line] = replacement;
    add(what + ": " + lines_[line] + "\n  becomes: " + replacement, lines);
  }
  void add(std::string what, const std::vector<std::string>& lines) {
    TextChange change{std::move(what), {}};
    for (const std::string& line : lines) change.text += line + '\n';
    changes_.push_back(std::move(change));
  }

  const Dag& dag_;
  std::vector<std::string> lines_;
  std::map<std::string, std::size_t> line_of_;  // of nodes, by name
  std::vector<std::size_t> nodes_, roles_;
  std::vector<TextChange> changes_;
};

}  // namespace

std::vector<TextChange> plan_changes(const dag::Dag& dag, const std::string& text) {
  return Changes(dag, text).all();
}

}  // namespace piper::test
