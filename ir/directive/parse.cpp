#include "ir/directive/parse.h"

#include <algorithm>
#include <array>
#include <concepts>
#include <limits>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

#include "ir/directive/numbers.h"

namespace piper::directive {

namespace {

/// Deeper steps are refused, so that no text overflows the stack.
constexpr int kMaxDepth = 200;

std::uint32_t small(TextReader& reader, std::string_view what, std::int64_t low = 0) {
  return static_cast<std::uint32_t>(reader.integer(what, low, kMaxCounted));
}

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
      while (!reader.failed() && !reader.at("]")) {
        coordinate.indices.push_back(small(reader, "an index"));
        if (!reader.at("]")) reader.expect(",");
      }
      reader.expect("]");
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
    trim.bound = small(reader_, "a bound", 1);
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
        coordinate.index = small(reader_, "an index");
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

/// Reports a word that is none of those that are expected.
void fail_choice(TextReader& reader, std::string_view what) {
  const TextReader::Token where = reader.peek();
  if (reader.at_end()) {
    reader.fail(Code::malformed_dag_text, where, "the text ends where {} is expected", what);
  } else {
    reader.fail(Code::unknown_dag_name, where, "`{}` is not {}", where.text, what);
  }
}

template <typename Enum, std::size_t n>
Enum choose(TextReader& reader, std::string_view what, const std::string_view (&texts)[n]) {
  for (std::size_t i = 0; i < n; ++i) {
    if (reader.accept(texts[i])) return static_cast<Enum>(i);
  }
  fail_choice(reader, what);
  return {};
}

Require parse_require(TextReader& reader) {
  Require require{};
  require.measure = choose<Measure>(reader, "a measure", kMeasureNames);
  require.compare = choose<Compare>(reader, "a comparison", kCompareNames);
  require.bound = reader.number("a bound");
  if (reader.accept("else")) require.message = reader.string("a message");
  require.loc = reader.location();
  return require;
}

/// `name: ` of a setting in brackets.
bool at_field(TextReader& reader, std::string_view name) {
  if (!reader.accept(name)) return false;
  reader.expect(":");
  return true;
}

Data parse_data(TextReader& reader) {
  Data data;
  data.kind = choose<Data::Kind>(reader, "a source of data", kDataNames);
  reader.expect("(");
  const bool reads = data.kind != Data::Kind::synthetic, ids = data.kind == Data::Kind::tokens;
  if (reads) data.path = reader.string("a path");
  while (!reader.failed() && !reader.at(")")) {
    if (reads || reader.previous().text != "(") reader.expect(",");
    if (at_field(reader, "batch")) {
      data.batch = reader.integer("a number of samples", 0, kMaxCounted);
    } else if (at_field(reader, "batches")) {
      data.batches = reader.integer("a number of batches", 0, kMaxCounted);
    } else if (ids && at_field(reader, "dtype")) {
      data.token_type = choose<TokenType>(reader, "a type of ids", kTokenTypeNames);
    } else if (reads && at_field(reader, "sampling")) {
      data.sampling = choose<Sampling>(reader, "an order of samples", kSamplingNames);
    } else if (at_field(reader, "classes")) {
      data.classes =
          reader.integer("a number of classes", 0, std::numeric_limits<std::int64_t>::max());
    } else {
      const Symbol name = reader.symbol("a dimension");
      reader.expect(":");
      data.extents.emplace_back(name, reader.integer("an extent", 0, kMaxCounted));
    }
  }
  reader.expect(")");
  data.loc = reader.location();
  return data;
}

Optimizer parse_optimizer(TextReader& reader) {
  Optimizer optimizer;
  optimizer.kind = choose<Optimizer::Kind>(reader, "an optimizer", kOptimizerNames);
  reader.expect("(");
  reader.expect("lr");
  reader.expect(":");
  optimizer.lr.kind =
      choose<LearningRate::Kind>(reader, "a learning rate", {"constant", "cosine", "linear"});
  reader.expect("(");
  optimizer.lr.base = reader.number("a learning rate");
  while (!reader.failed() && reader.accept(",")) {
    if (at_field(reader, "warmup")) {
      optimizer.lr.warmup = small(reader, "a number of steps");
    } else {
      reader.expect("floor");
      reader.expect(":");
      optimizer.lr.floor = reader.number("a learning rate");
    }
  }
  reader.expect(")");
  while (!reader.failed() && reader.accept(",")) {
    struct Field {
      std::string_view name;
      double* value;
    };
    double clip = 0;
    const Field fields[] = {{"momentum", &optimizer.momentum},
                            {"beta1", &optimizer.beta1},
                            {"beta2", &optimizer.beta2},
                            {"eps", &optimizer.eps},
                            {"weight_decay", &optimizer.weight_decay},
                            {"clip", &clip}};
    const Field* found = nullptr;
    for (const Field& field : fields) {
      if (reader.at(field.name)) found = &field;
    }
    if (found == nullptr) {
      reader.fail(Code::unknown_dag_name, reader.peek(), "an optimizer has no setting `{}`",
                  reader.peek().text);
      break;
    }
    reader.next();
    reader.expect(":");
    *found->value = reader.number("a number");
    if (found->value == &clip) optimizer.clip = clip;
  }
  reader.expect(")");
  optimizer.loc = reader.location();
  return optimizer;
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
    value = small(reader_, "a number");
  }

 private:
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
    while (!reader_.failed() && !reader_.at("]")) {
      read(values.emplace_back(), row);
      if (!reader_.at("]")) reader_.expect(",");
    }
    reader_.expect("]");
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

namespace {

tensor::DType parse_dtype(TextReader& reader) {
  const TextReader::Token where = reader.peek();
  const std::optional<tensor::DType> dtype = tensor::parse_dtype(reader.name("a type"));
  if (!dtype) reader.fail(Code::unknown_dag_name, where, "`{}` is no element type", where.text);
  return dtype.value_or(tensor::DType::f32);
}

Platform parse_platform(TextReader& reader) {
  const TextReader::Token where = reader.peek();
  const std::string_view name = reader.name("a device");
  const auto found = std::find(std::begin(kPlatformNames), std::end(kPlatformNames), name);
  if (found != std::end(kPlatformNames))
    return static_cast<Platform>(found - std::begin(kPlatformNames));
  reader.fail(Code::unknown_dag_name, where, "`{}` is no device", where.text);
  return Platform::cpu;
}

/// `every 100 keep 3`
Every parse_every(TextReader& reader) {
  Every every;
  reader.expect("every");
  every.steps =
      static_cast<std::uint64_t>(reader.integer("a number of steps", 0, kEverySteps.max_value));
  if (reader.accept("keep"))
    every.keep = static_cast<std::uint64_t>(
        reader.integer("a number of checkpoints", 0, kKeptCheckpoints.max_value));
  every.loc = reader.location();
  return every;
}

/// `weights("model.safetensors", names: hf_llama, missing: init)`
InitialWeights parse_initial_weights(TextReader& reader) {
  InitialWeights weights;
  reader.expect("weights");
  reader.expect("(");
  weights.path = reader.string("a path");
  bool more = reader.accept(",");
  if (more && reader.accept("names")) {
    reader.expect(":");
    weights.names = reader.name("a `names` item");
    more = reader.accept(",");
  }
  if (more) {
    for (const char* const word : {"missing", ":", "init"}) reader.expect(word);
    weights.keeps_missing = true;
  }
  reader.expect(")");
  weights.loc = reader.location();
  return weights;
}

constexpr std::pair<std::string_view, void (*)(TextReader&, Settings&)> kSettings[] = {
    {"steps",
     [](TextReader& reader, Settings& settings) {
       settings.steps = static_cast<std::uint64_t>(
           reader.integer("a number of steps", 0, std::numeric_limits<std::int64_t>::max()));
       settings.steps_given = !settings.train.empty();  // a schedule by itself has no steps
     }},
    {"dtype", [](TextReader& reader, Settings& settings) { settings.dtype = parse_dtype(reader); }},
    {"seed",
     [](TextReader& reader, Settings& settings) {
       settings.seed = static_cast<std::uint64_t>(
           reader.integer("a seed", 0, std::numeric_limits<std::int64_t>::max()));
     }},
    {"device",
     [](TextReader& reader, Settings& settings) { settings.device = parse_platform(reader); }},
    {"data", [](TextReader& reader, Settings& settings) { settings.data = parse_data(reader); }},
    {"held_out",
     [](TextReader& reader, Settings& settings) { settings.held_out = parse_data(reader); }},
    {"optim",
     [](TextReader& reader, Settings& settings) { settings.optimizer = parse_optimizer(reader); }},
    {"checkpoint",
     [](TextReader& reader, Settings& settings) { settings.checkpoint = parse_every(reader); }},
    {"evaluate",
     [](TextReader& reader, Settings& settings) { settings.evaluate = parse_every(reader); }},
    {"init",
     [](TextReader& reader, Settings& settings) { settings.init = parse_initial_weights(reader); }},
};

}  // namespace

Settings parse_settings(TextReader& reader) {
  std::array<bool, std::size(kSettings)> seen{};
  Settings settings;
  settings.train = std::string(reader.name("a train"));
  settings.loc = reader.location();
  reader.expect("{");
  while (!reader.failed() && !reader.accept("}")) {
    const TextReader::Token where = reader.peek();
    const auto setting = std::find_if(std::begin(kSettings), std::end(kSettings),
                                      [&](const auto& each) { return reader.accept(each.first); });
    if (setting == std::end(kSettings)) {
      reader.fail(Code::malformed_dag_text, where, "expected a setting of the train, found `{}`",
                  where.text);
    } else if (std::exchange(seen[static_cast<std::size_t>(setting - kSettings)], true)) {
      reader.fail(Code::repeated_dag_name, where, "`{}` was set before", where.text);
    } else {
      setting->second(reader, settings);
    }
  }
  // Steps, dtype and seed have no default in a text.
  for (std::size_t i = 0; i < 3 && !reader.failed(); ++i) {
    if (!seen[i])
      reader.fail(Code::malformed_dag_text, reader.previous(), "the train says no `{}`",
                  kSettings[i].first);
  }
  return settings;
}

}  // namespace piper::directive
