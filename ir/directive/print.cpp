#include "ir/directive/print.h"

#include <concepts>
#include <optional>
#include <span>
#include <type_traits>

#include "ir/directive/parse.h"
#include "ir/text/print_text.h"

namespace piper::directive {

namespace {

/// Region and dimension names; quoted if the plain word would be read as something else.
void print_coordinate(llvm::raw_ostream& os, std::string_view name, bool rest) {
  if (rest) {
    os << ".rest";
    return;
  }
  if (parse_pass(name) || name == "model" || is_directive_word(name)) {
    print_string(os, name);
  } else {
    print_name(os, name);
  }
}

/// A setting's value as text; empty if the setting is left out: it has no value, or the word that
/// is its default.
class ValueText {
 public:
  explicit ValueText(const SettingRow& setting) : setting_(setting) {}

  std::string operator()(std::integral auto value) const { return std::to_string(value); }
  std::string operator()(double value) const { return number_text(value); }
  template <typename Value>
  std::string operator()(const std::optional<Value>& value) const {
    return value ? (*this)(*value) : std::string();
  }
  std::string operator()(const std::vector<std::uint32_t>& values) const {
    std::string text;
    for (const std::uint32_t value : values)
      text += (text.empty() ? "[" : ", ") + std::to_string(value);
    return text.empty() ? text : text + "]";
  }
  template <typename Word>
    requires std::is_enum_v<Word>
  std::string operator()(Word value) const {
    const std::string_view word = words_of(setting_)[static_cast<std::size_t>(value)];
    return word != setting_.value ? std::string(word) : std::string();
  }

 private:
  const SettingRow& setting_;
};

/// ` with window: 2, what: optimizer`, the settings of one line.
class SettingPrinter : public IgnoreFields {
 public:
  SettingPrinter(llvm::raw_ostream& os, DirectiveKind kind) : os_(os), kind_(kind) {}

  void setting(std::string_view name, const auto& value, const auto&...) {
    write(name, ValueText(*find_setting(kind_, name))(value));
  }
  void number(std::string_view name, std::uint32_t value) {
    write(name, value > 0 ? std::to_string(value) : std::string());
  }

 private:
  void write(std::string_view name, const std::string& value) {
    if (value.empty()) return;
    os_ << separator_ << name << ": " << value;
    separator_ = ", ";
  }

  llvm::raw_ostream& os_;
  const DirectiveKind kind_;
  const char* separator_ = " with ";
};

/// The subject and the clauses of one line before its settings.
class ClausePrinter : public IgnoreFields {
 public:
  ClausePrinter(llvm::raw_ostream& os, const Surroundings& around) : os_(os), around_(around) {}

  void region(const Selector& region) {
    os_ << ' ';
    selector(region);
  }
  void dimension(Symbol dim, LocId) { symbol(" ", dim); }
  void name(Symbol name) {
    symbol(" ", name);
    os_ << ':';
  }
  void targets(const std::vector<Selector>& targets) { selectors(" ", targets); }
  void into(const NamedExtent& extent, const Number&) { into(std::span(&extent, 1)); }
  void into(const std::vector<NamedExtent>& extents, const Number&) { into(std::span(extents)); }
  void in(const std::vector<Selector>& targets) { selectors(" in ", targets); }
  void on(DeviceSetId devices) {
    os_ << " on ";
    print_device_set(os_, around_.device_sets[devices], around_.mesh, around_.context.symbols);
  }
  void over(const std::vector<Symbol>& axes) {
    for (std::size_t i = 0; i < axes.size(); ++i) symbol(i == 0 ? " over " : ", ", axes[i]);
  }

 private:
  void symbol(const char* before, Symbol name) {
    os_ << before;
    print_name(os_, around_.context.text(name));
  }
  void into(std::span<const NamedExtent> extents) {
    for (std::size_t i = 0; i < extents.size(); ++i) {
      symbol(i == 0 ? " into " : ", ", extents[i].name);
      os_ << ": " << extents[i].extent;
    }
  }
  void selectors(const char* before, const std::vector<Selector>& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      os_ << (i == 0 ? before : ", ");
      selector(list[i]);
    }
  }
  void selector(const Selector& selector) {
    print(selector, os_, around_.context.symbols);
    if (around_.locations != nullptr) around_.locations->print(os_, selector.loc);
  }

  llvm::raw_ostream& os_;
  const Surroundings& around_;
};

class Printer {
 public:
  Printer(llvm::raw_ostream& os, const Surroundings& around, unsigned indent)
      : os_(os), around_(around), indent_(indent) {}

  template <typename Line>
  void operator()(const Line& line) {
    os_ << row_of(kind_of(line)).keyword;
    ClausePrinter clauses(os_, around_);
    line.fields(clauses, line);
    SettingPrinter settings(os_, kind_of(line));
    line.fields(settings, line);
    location(line.loc);
  }

  void operator()(const Require& require) {
    os_ << "require " << kMeasureNames[static_cast<std::size_t>(require.measure)] << ' '
        << kCompareNames[static_cast<std::size_t>(require.compare)] << ' ';
    print_number(os_, require.bound);
    if (!require.message.empty()) {
      os_ << " else ";
      print_string(os_, require.message);
    }
    location(require.loc);
  }

  void operator()(const Order& order) {
    order_ = &order;
    os_ << "order {\n";
    for (const RankSteps& rank : order.ranks) {
      os_.indent(indent_ + 2) << "rank ";
      devices(rank.devices);
      location(rank.loc);
      os_ << " {\n";
      for (std::uint32_t i = 0; i < rank.num_steps; ++i) {
        os_.indent(indent_ + 4);
        step(order.children[rank.first_step + i]);
        os_ << '\n';
      }
      os_.indent(indent_ + 2) << "}\n";
    }
    for (const Order::Trim& trim : order.trims) {
      os_.indent(indent_ + 2) << "trim ";
      symbol(trim.dim);
      os_ << ' ' << trim.bound;
      location(trim.loc);
      os_ << '\n';
    }
    os_.indent(indent_) << "}";
    location(order.loc);
  }

 private:
  void symbol(Symbol name) { print_name(os_, around_.context.text(name)); }
  void devices(DeviceSetId id) {
    print_device_set(os_, around_.device_sets[id], around_.mesh, around_.context.symbols);
  }
  void location(LocId loc) {
    if (around_.locations != nullptr) around_.locations->print(os_, loc);
  }

  /// Prints operations, those of one step separated by commas, and braces; a group inside a group
  /// gets braces of its own.
  void step(std::uint32_t index) {
    const OrderStep& step = order_->steps[index];
    switch (step.kind) {
      case OrderStep::Kind::op:
        for (std::uint32_t i = 0; i < step.count; ++i) {
          if (i > 0) os_ << ", ";
          op(order_->ops[step.first + i]);
        }
        break;
      case OrderStep::Kind::sequence:
        os_ << "{ ";
        children(step, "; ");
        os_ << " }";
        break;
      case OrderStep::Kind::group:
        os_ << "( ";
        children(step, " & ");
        os_ << " )";
        break;
    }
    if (step.kind != OrderStep::Kind::op ||
        step.loc != order_->ops[step.first + step.count - 1].loc)
      location(step.loc);
  }

  void children(const OrderStep& parent, llvm::StringRef separator) {
    for (std::uint32_t i = 0; i < parent.count; ++i) {
      if (i > 0) os_ << separator;
      step(order_->children[parent.first + i]);
    }
  }

  void op(const OrderOp& op) {
    os_ << pass_name(op.pass);
    for (std::uint32_t i = 0; i < op.num_coordinates; ++i) {
      const OrderCoordinate& each = order_->coordinates[op.first_coordinate + i];
      os_ << ' ';
      print_coordinate(os_, around_.context.text(each.name), each.rest);
      if (!each.all) os_ << '[' << each.index << ']';
    }
    if (op.part != CommClass::none) os_ << " ." << part_name(op.part);
    location(op.loc);
  }

  llvm::raw_ostream& os_;
  const Surroundings& around_;
  unsigned indent_;
  const Order* order_ = nullptr;
};

}  // namespace

void print(const Selector& selector, llvm::raw_ostream& os, const SymbolTable& symbols) {
  const char* separator = "";
  if (selector.pass) {
    os << pass_name(*selector.pass);
    separator = " ";
  }
  if (selector.coordinates.empty() || selector.coordinates.front().rest) {
    os << separator << "model";
    separator = " ";
  }
  for (const Coordinate& coordinate : selector.coordinates) {
    os << separator;
    separator = " ";
    print_coordinate(os, symbols.text(coordinate.name), coordinate.rest);
    if (coordinate.all) continue;
    os << '[';
    for (std::size_t i = 0; i < coordinate.indices.size(); ++i)
      os << (i > 0 ? ", " : "") << coordinate.indices[i];
    os << ']';
  }
  if (selector.part != CommClass::none) os << " ." << part_name(selector.part);
}

void print_settings(const Directive& directive, llvm::raw_ostream& os) {
  const DirectiveRow* const row = find_row(directive);
  if (row != nullptr) visit_fields(SettingPrinter(os, row->kind), directive);
}

void print(const Directive& directive, llvm::raw_ostream& os, const Surroundings& surroundings,
           unsigned indent) {
  os.indent(indent);
  std::visit(Printer(os, surroundings, indent), directive);
  os << '\n';
}

std::string print(const Directive& directive, const Surroundings& surroundings) {
  std::string text;
  llvm::raw_string_ostream os(text);
  print(directive, os, surroundings);
  os.flush();
  return text;
}

}  // namespace piper::directive
