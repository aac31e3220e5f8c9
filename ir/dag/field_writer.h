#pragma once
// Writes the fields of statements (fields.h).

#include <vector>

#include "ir/dag/fields.h"
#include "ir/dag/print_plan.h"
#include "ir/text/print_text.h"

namespace piper::dag {

class FieldWriter {
 public:
  explicit FieldWriter(NamePrinter& names)
      : names_(names), dag_(names.dag()), os_(names.stream()) {}

  void text(std::string_view text) { os_ << text; }
  void declare(Table, Symbol name) { names_.symbol(name); }
  void symbol(Symbol name, std::string_view) { names_.symbol(name); }
  void integer(std::integral auto value, std::string_view, std::int64_t, std::int64_t) {
    os_ << static_cast<std::int64_t>(value);
  }
  void bytes(std::int64_t value, std::string_view) { os_ << value; }
  void number(double value, std::string_view) { print_number(os_, value); }
  void type(const tensor::Type& type) { os_ << tensor::print(type, dag_.context->symbols); }
  void devices(DeviceSetId set) { names_.devices(set); }
  template <typename Enum, std::size_t n>
  void choice(Enum value, const std::string_view (&words)[n], std::string_view) {
    text(words[static_cast<std::size_t>(value)]);
  }
  void reference(Table table, auto id) { names_.symbol(name_of(table, id.index())); }

  /// The word if the flag is set.
  void flag(std::string_view word, bool value) {
    if (value) text(word);
  }
  /// Writes the word and returns true if there is a value.
  bool present(std::string_view word, const auto& value) {
    flag(word, value.has_value());
    return value.has_value();
  }
  /// Nothing for 0.
  void count(std::string_view word, std::uint32_t value, std::string_view expected) {
    if (value == 0) return;
    text(word);
    integer(value, expected, 0, kMax32);
  }
  /// Nothing for 0.
  void optional_bytes(std::string_view word, std::int64_t value, std::string_view expected) {
    if (value == 0) return;
    text(word);
    bytes(value, expected);
  }
  /// Nothing for 1.
  void factor(std::string_view word, double value, std::string_view expected) {
    if (value == 1) return;
    text(word);
    number(value, expected);
  }
  /// Nothing for a replicated one.
  void layout(std::string_view word, LayoutId layout) {
    if (layout.replicated()) return;
    text(word);
    print_layout(os_, layout, *dag_.context);
  }
  void reduced(std::string_view word, directive::Reduce value) {
    text(word);
    text(directive::reduce_name(value));
  }
  /// Nothing for no axes.
  void axes(std::string_view word, AxisMask mask) {
    if (mask == 0) return;
    text(word);
    names_.axes(mask);
  }
  void optional_reference(std::string_view word, Table table, auto id) {
    if (!id.valid()) return;
    text(word);
    reference(table, id);
  }
  template <typename Item, typename Write>
  void list(std::string_view open, const std::vector<Item>& items, std::string_view close,
            Write write) {
    text(open);
    sequence("", items, write);
    text(close);
  }
  /// The word before the first item, and commas between items.
  template <typename Item, typename Write>
  void sequence(std::string_view word, const std::vector<Item>& items, Write write) {
    for (std::size_t i = 0; i < items.size(); ++i) {
      text(i == 0 ? word : ", ");
      write(items[i]);
    }
  }
  void location(LocId loc) { names_.location(loc); }
  void declared_location(LocId loc) { names_.location(loc); }

 private:
  Symbol name_of(Table table, std::size_t index) const {
    switch (table) {
      case Table::params: return dag_.params[index].name;
      case Table::inputs: return dag_.inputs[index].name;
      case Table::losses: return dag_.losses[index].name;
      case Table::chunks: return dag_.chunks[index].name;
      case Table::buckets: return dag_.buckets[index].name;
      case Table::streams: return dag_.streams[index].name;
    }
    return {};
  }

  NamePrinter& names_;
  const Dag& dag_;
  llvm::raw_ostream& os_;
};

}  // namespace piper::dag
