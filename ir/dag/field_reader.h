#pragma once
// Reads the fields of statements (fields.h).

#include <string>
#include <vector>

#include "ir/dag/fields.h"
#include "ir/dag/parse_parts.h"

namespace piper::dag {

/// Words and signs are those of the writer without the spaces around them.
class FieldReader {
 public:
  FieldReader(TextReader& reader, Dag& dag, NodeNames& names)
      : reader_(reader), dag_(dag), names_(names) {}

  void text(std::string_view text) {
    if (const std::string_view sign = trimmed(text); !sign.empty()) reader_.expect(sign);
  }
  /// A new name; its place is that of the statement.
  void declare(Table table, Symbol& name) {
    llvm::StringMap<std::uint32_t>& names = names_of(table);
    const TextReader::Token where = declared_ = reader_.peek();
    const std::string written(reader_.name(expected(table)));
    const auto number = static_cast<std::uint32_t>(names.size());
    if (!reader_.failed() && !names.try_emplace(written, number).second)
      reader_.fail(Code::repeated_dag_name, where, "`{}` was declared before", where.text);
    name = reader_.context().symbol(written);
  }
  /// The name that was declared last.
  const TextReader::Token& declared() const { return declared_; }
  void symbol(Symbol& name, std::string_view expected) { name = reader_.symbol(expected); }
  template <std::integral Value>
  void integer(Value& value, std::string_view expected, std::int64_t low, std::int64_t high) {
    value = static_cast<Value>(reader_.integer(expected, low, high));
  }
  void bytes(std::int64_t& value, std::string_view expected) {
    integer(value, expected, 0, kMaxBytes);
  }
  void number(double& value, std::string_view expected) { value = reader_.number(expected); }
  void type(tensor::Type& type) { type = reader_.type(); }
  void devices(DeviceSetId& set) { set = dag_.device_sets.intern(reader_.device_set(dag_.mesh)); }
  template <typename Enum, std::size_t n>
  void choice(Enum& value, const std::string_view (&words)[n], std::string_view expected) {
    const TextReader::Token where = reader_.peek();
    const std::string_view word = reader_.name(expected);
    for (std::size_t i = 0; i < n; ++i) {
      if (word == words[i]) return void(value = static_cast<Enum>(i));
    }
    reader_.fail(Code::unknown_dag_name, where, "`{}` is not {}", where.text, expected);
  }
  template <typename Id>
  void reference(Table table, Id& id) {
    id = Id(NodeNames::find(reader_, names_of(table), expected(table)));
  }

  void flag(std::string_view word, bool& value) { value = reader_.accept(trimmed(word)); }
  template <typename Value>
  bool present(std::string_view word, std::optional<Value>& value) {
    if (reader_.accept(trimmed(word))) value.emplace();
    return value.has_value();
  }
  void count(std::string_view word, std::uint32_t& value, std::string_view expected) {
    if (reader_.accept(trimmed(word))) integer(value, expected, 0, kMax32);
  }
  void optional_bytes(std::string_view word, std::int64_t& value, std::string_view expected) {
    if (reader_.accept(trimmed(word))) bytes(value, expected);
  }
  void factor(std::string_view word, double& value, std::string_view expected) {
    if (reader_.accept(trimmed(word))) number(value, expected);
  }
  void layout(std::string_view word, LayoutId& layout) {
    if (reader_.accept(trimmed(word))) layout = reader_.layout(&dag_.mesh, {});
  }
  void reduced(std::string_view word, directive::Reduce& value) {
    text(word);
    const TextReader::Token where = reader_.peek();
    const std::optional<directive::Reduce> reduced =
        directive::parse_reduce(reader_.name("when gradients are reduced"));
    if (!reduced || *reduced == directive::Reduce::step)
      return reader_.fail(Code::malformed_dag_text, where,
                          "sharded gradients are reduced by `microbatch` or by `unit`, not by `{}`",
                          where.text);
    value = *reduced;
  }
  void axes(std::string_view word, AxisMask& mask) {
    if (reader_.accept(trimmed(word))) mask = parse_axes(reader_, dag_.mesh);
  }
  void optional_reference(std::string_view word, Table table, auto& id) {
    if (reader_.accept(trimmed(word))) reference(table, id);
  }
  template <typename Item, typename Read>
  void list(std::string_view open, std::vector<Item>& items, std::string_view close, Read read) {
    text(open);
    reader_.list(close, [&] { read(items.emplace_back()); });
  }
  template <typename Item, typename Read>
  void sequence(std::string_view word, std::vector<Item>& items, Read read) {
    if (!reader_.accept(trimmed(word))) return;
    do {
      read(items.emplace_back());
    } while (!reader_.failed() && reader_.accept(","));
  }
  void location(LocId& loc) { loc = reader_.location(); }
  void declared_location(LocId& loc) { loc = reader_.location(declared_); }

 private:
  static std::string_view trimmed(std::string_view text) {
    if (text.starts_with(' ')) text.remove_prefix(1);
    if (text.ends_with(' ')) text.remove_suffix(1);
    return text;
  }
  llvm::StringMap<std::uint32_t>& names_of(Table table) {
    switch (table) {
      case Table::params: return names_.params;
      case Table::inputs: return names_.inputs;
      case Table::losses: return names_.losses;
      case Table::chunks: return names_.chunks;
      case Table::buckets: return names_.buckets;
      case Table::streams: break;
    }
    return names_.streams;
  }
  static std::string_view expected(Table table) {
    constexpr std::string_view kEntries[] = {"a parameter", "an input", "a loss",
                                             "a chunk",     "a bucket", "a stream"};
    return kEntries[static_cast<std::size_t>(table)];
  }

  TextReader& reader_;
  Dag& dag_;
  NodeNames& names_;
  TextReader::Token declared_;
};

}  // namespace piper::dag
