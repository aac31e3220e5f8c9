#pragma once
// The lines of a printed DAG, their words and attributes, and changes of single lines.
//
//   DagLines lines(print(dag));
//   lines.add("redirect peer", 7, replace_token(lines[7], word(lines[7], 20), "pp1"));
//   lines.apply(lines.changes.front())

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace piper::test {

/// A change: lines [line, line + removed) become `lines`.
struct LineChange {
  std::string title;
  std::size_t line = 0;
  std::size_t removed = 1;
  std::vector<std::string> lines;
};

/// A part of a line: bytes [begin, end).
struct LineToken {
  std::size_t begin = 0, end = 0;
};

/// The word that begins at or after `from`, quotes included; empty, at the end, if there is none.
LineToken word(const std::string& line, std::size_t from);
/// The line with `text` in the place of a part.
std::string replace_token(const std::string& line, LineToken token, const std::string& text);
std::string token_text(const std::string& line, LineToken token);
/// The start of an attribute, before the location; `npos` if there is none.
std::size_t find_attribute(const std::string& line, const std::string& key);
/// The name and the kind of a node, from its line in the graph.
std::string node_name(const std::string& line);
std::string node_kind(const std::string& line);
/// Whether the node of a line reads an output of the node `name` of the same step.
bool reads_node(const std::string& line, const std::string& name);
/// Every position of `part` in `text`.
std::vector<std::size_t> find_all(const std::string& text, const std::string& part);

/// The lines of a text, and the changes of it that are collected.
class DagLines {
 public:
  explicit DagLines(const std::string& text);

  const std::string& operator[](std::size_t line) const { return lines_[line]; }
  std::size_t size() const { return lines_.size(); }
  auto begin() const { return lines_.begin(); }
  auto end() const { return lines_.end(); }

  /// Replaces a line; no change if `replacement` is the same.
  void add(std::string title, std::size_t line, std::string replacement);
  void delete_and_duplicate(std::size_t line, const std::string& kind);
  /// Swaps two lines, `a` before `b`.
  void swap(std::size_t a, std::size_t b);
  /// The number behind a key, changed by each of `by`, except to negative ones.
  void change_number(std::size_t line, const std::string& key, const std::vector<std::int64_t>& by);

  /// The whole text with one change.
  std::string apply(const LineChange& change) const;

  std::vector<LineChange> changes;

 private:
  std::vector<std::string> lines_;
};

}  // namespace piper::test
