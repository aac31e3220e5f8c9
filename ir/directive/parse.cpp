#include "ir/directive/parse.h"

#include <algorithm>
#include <concepts>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "ir/directive/numbers.h"
#include "ir/directive/parse_words.h"

namespace piper::directive {

namespace {

/// Deeper steps are refused, so that no text overflows the stack.
constexpr int kMaxDepth = 200;

/// A communication, after the dot.
CommClass parse_part(TextReader& reader) {
  const TextReader::Token where = reader.peek();
  const std::string_view text = reader.name("a part");
  for (std::uint8_t i = 1; i <= static_cast<std::uint8_t>(CommClass::leave); ++i) {
    if (text == part_name(static_cast<CommClass>(i))) return static_cast<CommClass>(i);
  }
  reader.fail(Code::unknown_dag_name, where, "no communication is called `{}`", where.text);
  return CommClass::none;
}

/// Whether the word can begin a coordinate: words that continue a directive or begin the next one
/// cannot.
bool at_coordinate(const TextReader& reader) {
  const TextReader::Token& token = reader.peek();
  if (token.kind == TextReader::Kind::string) return true;
  return token.kind == TextReader::Kind::name && !is_directive_word(token.text);
}

/// Reads coordinates, calling `add(name, rest)` for each to read its indices, and the part behind
/// them. `model` gives no coordinate.
template <typename Add>
CommClass parse_coordinates(TextReader& reader, const auto& more, Add add) {
  Symbol region = reader.context().symbol("model");
  while (!reader.failed()) {
    if (reader.accept(".")) {
      if (!reader.accept("rest")) return parse_part(reader);
      add(region, true);
    } else if (more()) {
      region = reader.symbol("a region or a dimension");
      add(region, false);
    } else {
      break;
    }
  }
  return CommClass::none;
}

Selector parse_selector(TextReader& reader) {
  Selector selector;
  if (reader.peek().kind == TextReader::Kind::name) {
    selector.pass = parse_pass(reader.peek().text);
    if (selector.pass) reader.next();
  }
  bool any = reader.accept("model");
  const auto more = [&] { return at_coordinate(reader) || !std::exchange(any, true); };
  selector.part = parse_coordinates(reader, more, [&](Symbol name, bool rest) {
    any = true;
    Coordinate coordinate;
    coordinate.name = name;
    coordinate.rest = rest;
    if (reader.accept("[")) {
      coordinate.all = false;
      reader.list("]", [&] { coordinate.indices.push_back(parse_count(reader, "an index")); });
    }
    selector.coordinates.push_back(std::move(coordinate));
  });
  selector.loc = reader.location();
  return selector;
}

std::vector<Selector> parse_selectors(TextReader& reader) {
  std::vector<Selector> list;
  do {
    list.push_back(parse_selector(reader));
  } while (!reader.failed() && reader.accept(","));
  return list;
}

class OrderParser {
 public:
  OrderParser(TextReader& reader, const Mesh& mesh, DeviceSetTable& device_sets)
      : reader_(reader), mesh_(mesh), device_sets_(device_sets) {}

  Order parse() {
    reader_.expect("{");
    while (!reader_.failed() && reader_.accept("rank")) {
      RankSteps rank;
      rank.devices = device_sets_.intern(reader_.device_set(mesh_));
      rank.loc = reader_.location();
      reader_.expect("{");
      std::vector<std::uint32_t> steps;
      while (!reader_.failed() && !reader_.at("}")) steps.push_back(step(0));
      reader_.expect("}");
      rank.first_step = append(steps);
      rank.num_steps = static_cast<std::uint32_t>(steps.size());
      order_.ranks.push_back(rank);
    }
    while (!reader_.failed() && !reader_.at("}")) trim();
    reader_.expect("}");
    order_.loc = reader_.location();
    return std::move(order_);
  }

 private:
  std::uint32_t append(const std::vector<std::uint32_t>& steps) {
    const auto first = static_cast<std::uint32_t>(order_.children.size());
    order_.children.insert(order_.children.end(), steps.begin(), steps.end());
    return first;
  }

  void trim() {
    const TextReader::Token where = reader_.peek();
    if (reader_.name("`rank` or `trim`") != "trim")
      return reader_.fail(Code::unknown_dag_name, where, "no transform of orders is called `{}`",
                          where.text);
    Order::Trim trim;
    trim.dim = reader_.symbol("a dimension");
    trim.bound = parse_count(reader_, "a bound", 1);
    trim.loc = reader_.location();
    order_.trims.push_back(trim);
  }

  std::uint32_t step(int depth) {
    OrderStep step;
    if (depth > kMaxDepth) {
      reader_.fail(Code::malformed_dag_text, reader_.peek(), "steps are nested deeper than `{}`",
                   kMaxDepth);
      return 0;
    }
    const bool sequence = reader_.accept("{");
    if (sequence || reader_.accept("(")) {
      step.kind = sequence ? OrderStep::Kind::sequence : OrderStep::Kind::group;
      const std::string_view close = sequence ? "}" : ")";
      std::vector<std::uint32_t> steps;
      while (!reader_.failed() && !reader_.at(close)) {
        steps.push_back(this->step(depth + 1));
        if (!reader_.at(close)) reader_.expect(sequence ? ";" : "&");
      }
      reader_.expect(close);
      step.first = append(steps);
      step.count = static_cast<std::uint32_t>(steps.size());
    } else {
      step.first = static_cast<std::uint32_t>(order_.ops.size());
      do {
        op();
      } while (!reader_.failed() && reader_.accept(","));
      step.count = static_cast<std::uint32_t>(order_.ops.size()) - step.first;
      if (!order_.ops.empty()) step.loc = order_.ops.back().loc;
    }
    if (const LocId loc = reader_.location(); loc.valid()) step.loc = loc;
    order_.steps.push_back(step);
    return static_cast<std::uint32_t>(order_.steps.size() - 1);
  }

  void op() {
    OrderOp op;
    const TextReader::Token where = reader_.peek();
    const std::optional<Pass> pass = parse_pass(reader_.name("an operation"));
    if (reader_.failed()) return;
    if (!pass)
      return reader_.fail(Code::unknown_dag_name, where,
                          "`{}` is no pass: `F`, `R`, `B`, `BI` or `BW`", where.text);
    op.pass = *pass;
    op.first_coordinate = static_cast<std::uint32_t>(order_.coordinates.size());
    // The next operation begins with a pass, which is no legal name of a coordinate.
    const auto more = [&] {
      return at_coordinate(reader_) &&
             (reader_.peek().kind == TextReader::Kind::string || !parse_pass(reader_.peek().text));
    };
    op.part = parse_coordinates(reader_, more, [&](Symbol name, bool rest) {
      OrderCoordinate coordinate;
      coordinate.name = name;
      coordinate.rest = rest;
      coordinate.all = !reader_.accept("[");
      if (!coordinate.all) {
        coordinate.index = parse_count(reader_, "an index");
        reader_.expect("]");
      }
      order_.coordinates.push_back(coordinate);
    });
    op.num_coordinates =
        static_cast<std::uint32_t>(order_.coordinates.size()) - op.first_coordinate;
    op.loc = reader_.location();
    order_.ops.push_back(op);
  }

  TextReader& reader_;
  const Mesh& mesh_;
  DeviceSetTable& device_sets_;
  Order order_;
};

Require parse_require(TextReader& reader) {
  Require require{};
  require.measure = choose<Measure>(reader, "a measure", kMeasureNames);
  require.compare = choose<Compare>(reader, "a comparison", kCompareNames);
  require.bound = reader.number("a bound");
  if (reader.accept("else")) require.message = reader.string("a message");
  require.loc = reader.location();
  return require;
}

/// Reads the subject and the clauses of one line before its settings.
class ClauseReader : public IgnoreFields {
 public:
  ClauseReader(TextReader& reader, const Mesh& mesh, DeviceSetTable& device_sets)
      : reader_(reader), mesh_(mesh), device_sets_(device_sets) {}

  void region(Selector& region) { region = parse_selector(reader_); }
  void dimension(Symbol& dim, LocId&) { dim = reader_.symbol("a dimension"); }
  void name(Symbol& name) {
    name = reader_.symbol("a stream");
    reader_.expect(":");
  }
  void targets(std::vector<Selector>& targets) { targets = parse_selectors(reader_); }
  void into(NamedExtent& extent, const Number&) {
    reader_.expect("into");
    extent = parse_extent(reader_);
  }
  void into(std::vector<NamedExtent>& extents, const Number& bounds) {
    into(extents.emplace_back(), bounds);
    while (!reader_.failed() && reader_.accept(",")) extents.push_back(parse_extent(reader_));
  }
  void in(std::vector<Selector>& targets) {
    if (reader_.accept("in")) targets = parse_selectors(reader_);
  }
  void on(DeviceSetId& devices) {
    reader_.expect("on");
    devices = device_sets_.intern(reader_.device_set(mesh_));
  }
  void over(std::vector<Symbol>& axes) {
    reader_.expect("over");
    do {
      axes.push_back(reader_.symbol("an axis"));
    } while (!reader_.failed() && reader_.accept(","));
  }

 private:
  TextReader& reader_;
  const Mesh& mesh_;
  DeviceSetTable& device_sets_;
};

/// Reads the value of the setting with that name.
class SettingReader : public IgnoreFields {
 public:
  SettingReader(TextReader& reader, DirectiveKind kind, std::string_view name)
      : reader_(reader), kind_(kind), name_(name) {}

  bool found() const { return found_; }
  void setting(std::string_view name, auto& value, auto&...) {
    if (name != name_) return;
    found_ = true;
    read(value, *find_setting(kind_, name));
  }
  void number(std::string_view name, std::uint32_t& value) {
    if (name != name_) return;
    found_ = true;
    value = parse_count(reader_, "a number");
  }

 private:
  void read(double& value, const SettingRow& row) { value = reader_.number(row.number->what); }
  void read(std::integral auto& value, const SettingRow& row) {
    value = static_cast<std::remove_reference_t<decltype(value)>>(
        reader_.integer(row.number->what, row.number->min_value, row.number->max_value));
  }
  template <typename Value>
  void read(std::optional<Value>& value, const SettingRow& row) {
    read(value.emplace(), row);
  }
  void read(std::vector<std::uint32_t>& values, const SettingRow& row) {
    reader_.expect("[");
    reader_.list("]", [&] { read(values.emplace_back(), row); });
  }
  template <typename Word>
    requires std::is_enum_v<Word>
  void read(Word& value, const SettingRow& row) {
    const TextReader::Token where = reader_.peek();
    const std::span<const std::string_view> words = words_of(row);
    const auto found = std::find(words.begin(), words.end(), reader_.name("a word"));
    if (found == words.end())
      return reader_.fail(Code::malformed_dag_text, where, "`{}` is no word of `{}`", where.text,
                          row.name);
    value = static_cast<Word>(found - words.begin());
  }

  TextReader& reader_;
  const DirectiveKind kind_;
  const std::string_view name_;
  bool found_ = false;
};

/// `zero: 1, bucket: 26214400`, in any order; what is left out keeps its default.
template <typename Line>
void parse_line_settings(TextReader& reader, Line& line) {
  std::vector<std::string> seen;
  do {
    const TextReader::Token where = reader.peek();
    const std::string name(reader.name("a setting"));
    reader.expect(":");
    if (reader.failed()) return;
    if (std::find(seen.begin(), seen.end(), name) != seen.end())
      return reader.fail(Code::repeated_dag_name, where, "`{}` was set before", name);
    seen.push_back(name);
    SettingReader setting(reader, kind_of(line), name);
    line.fields(setting, line);
    if (!setting.found())
      return reader.fail(Code::unknown_dag_name, where, "`{}` has no setting `{}`",
                         row_of(kind_of(line)).keyword, name);
  } while (!reader.failed() && reader.accept(","));
}

template <typename Line>
Line parse_line(TextReader& reader, const Mesh& mesh, DeviceSetTable& device_sets) {
  Line line{};
  ClauseReader clauses(reader, mesh, device_sets);
  line.fields(clauses, line);
  if (reader.accept("with")) parse_line_settings(reader, line);
  line.loc = reader.location();
  return line;
}

}  // namespace

NamedExtent parse_extent(TextReader& reader) {
  NamedExtent extent;
  extent.name = reader.symbol("a name");
  reader.expect(":");
  extent.extent =
      static_cast<std::uint32_t>(reader.integer("an extent", kParts.min_value, kParts.max_value));
  return extent;
}

bool is_directive_word(std::string_view word) {
  return word == "else" || word == "order" || word == "require" ||
         find_directive(word) != nullptr ||
         std::find(std::begin(kClauseWords), std::end(kClauseWords), word) !=
             std::end(kClauseWords);
}

bool at_directive(const TextReader& reader) {
  if (reader.at("order") || reader.at("require")) return true;
  const DirectiveRow* const row =
      reader.peek().kind == TextReader::Kind::name ? find_directive(reader.peek().text) : nullptr;
  return row != nullptr && row->works();
}

Directive parse_directive(TextReader& reader, const Mesh& mesh, DeviceSetTable& device_sets) {
  if (reader.accept("order")) return OrderParser(reader, mesh, device_sets).parse();
  if (reader.accept("require")) return parse_require(reader);
#define DIRECTIVE(keyword, Line, ...) \
  if (reader.accept(#keyword)) return parse_line<Line>(reader, mesh, device_sets);
#include "ir/directive/directives.def"
  fail_choice(reader, "a directive");
  return Require{};
}

}  // namespace piper::directive
