#pragma once
// The parts of the parser in text order, and the names that they share. Used by `parse*.cpp`
// and `text_bodies.cpp`.

#include <string>
#include <vector>

#include "ir/dag/text_names.h"

namespace piper::dag {

/// Names of one text. A node's name has a number from its first mention on; the node may follow
/// later.
class NodeNames {
 public:
  llvm::StringMap<std::uint32_t> inputs, losses, params, chunks, buckets, streams, bodies, globals;

  /// The number of the name at the reader.
  std::uint32_t reference(TextReader& reader, std::string_view expected) {
    const TextReader::Token where = reader.peek();
    const auto [entry, fresh] =
        numbers_.try_emplace(reader.name(expected), static_cast<std::uint32_t>(nodes_.size()));
    if (fresh) {
      nodes_.emplace_back();
      first_mention_.push_back(where);
    }
    return entry->second;
  }
  /// False when the name has a node already.
  bool define(std::uint32_t number, NodeId node) {
    if (nodes_[number].valid()) return false;
    nodes_[number] = node;
    return true;
  }
  NodeId node(std::uint32_t number) const { return nodes_[number]; }
  /// Reports names without a node; false if there are any.
  bool resolve(TextReader& reader) const {
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (nodes_[i].valid()) continue;
      reader.fail(Code::unknown_dag_name, first_mention_[i], "`{}` is not a node of this text",
                  first_mention_[i].text);
      return false;
    }
    return true;
  }
  /// The node of that name; invalid if there is none.
  NodeId find_node(std::string_view name) const {
    const auto found = numbers_.find(name);
    return found == numbers_.end() ? NodeId() : nodes_[found->second];
  }
  /// The node whose name is at the reader; node 0 after a report if there is none.
  NodeId known_node(TextReader& reader) const {
    const TextReader::Token where = reader.peek();
    const auto found = numbers_.find(reader.name("a node"));
    if (found != numbers_.end()) return nodes_[found->second];
    reader.fail(Code::unknown_dag_name, where, "`{}` is not a node of this text", where.text);
    return NodeId(0);
  }
  /// The position in `table`; 0 after a report if there is none.
  static std::uint32_t find(TextReader& reader, const llvm::StringMap<std::uint32_t>& table,
                            std::string_view expected) {
    const TextReader::Token where = reader.peek();
    const auto found = table.find(reader.name(expected));
    if (found != table.end()) return found->second;
    reader.fail(Code::unknown_dag_name, where, "`{}` is not {} of this text", where.text, expected);
    return 0;
  }

 private:
  llvm::StringMap<std::uint32_t> numbers_;
  std::vector<NodeId> nodes_;
  std::vector<TextReader::Token> first_mention_;
};

/// Reads one body after the word `body`, once parameters, inputs and losses are read.
/// `names.globals` numbers the values that ports share.
void parse_body(TextReader& reader, Dag& dag, NodeNames& names);

AxisMask parse_axes(TextReader& reader, const Mesh& mesh);

/// The header, up to the word `graph`. `directives`, if not null, receives those of the text.
void parse_header(TextReader& reader, Dag& dag, NodeNames& names,
                  std::vector<directive::Directive>* directives);
/// The graph, and from level `ordered` on its linear order.
void parse_nodes(TextReader& reader, Dag& dag, NodeNames& names);
/// Communicators and roles up to the end of the text.
void parse_plan(TextReader& reader, Dag& dag, NodeNames& names);

}  // namespace piper::dag
