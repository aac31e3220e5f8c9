#include "ir/directive/parse.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "ir/directive/numbers.h"

namespace piper::directive {

namespace {

constexpr std::string_view kKinds[] = {"partition", "split", "place", "replicate", "stream", "order", "require", "recompute", "offload", "freeze"};
static_assert(std::size(kKinds) == std::variant_size_v<Directive>, "a kind of directive has no text");
/// Deeper steps are refused, so that no text overflows the stack.
constexpr int kMaxDepth = 200;

std::uint32_t small(TextReader& reader, std::string_view what, std::int64_t low = 0) {
  return static_cast<std::uint32_t>(reader.integer(what, low, kMostCounted));
}

std::int64_t number(TextReader& reader, const Number& number, std::string_view what) { return reader.integer(what, number.least, number.most); }
std::uint32_t count(TextReader& reader, const Number& number, std::string_view what) { return static_cast<std::uint32_t>(directive::number(reader, number, what)); }

/// A communication, after the dot.
Part parse_part(TextReader& reader) {
  const TextReader::Token where = reader.peek();
  const std::string_view text = reader.name("a part");
  for (std::uint8_t i = 1; i <= static_cast<std::uint8_t>(Part::leave); ++i) {
    if (text == part_name(static_cast<Part>(i))) return static_cast<Part>(i);
  }
  reader.fail(Code::unknown_dag_name, where, "no communication is called `{}`", where.text);
  return Part::none;
}

/// Whether the word can begin a coordinate: words that continue a directive or begin the next one cannot.
bool at_coordinate(const TextReader& reader) {
  const TextReader::Token& token = reader.peek();
  if (token.kind == TextReader::Kind::string) return true;
  return token.kind == TextReader::Kind::name && !is_directive_word(token.text);
}

/// Reads coordinates, calling `add(name, rest)` for each to read its indices, and the part behind them. `model` gives no
/// coordinate.
template <typename Add>
Part parse_coordinates(TextReader& reader, const auto& more, Add add) {
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
  return Part::none;
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
    if (reader_.name("`rank` or `trim`") != "trim") return reader_.fail(Code::unknown_dag_name, where, "no transform of orders is called `{}`", where.text);
    Order::Trim trim;
    trim.dim = reader_.symbol("a dimension");
    trim.bound = small(reader_, "a bound", 1);
    trim.loc = reader_.location();
    order_.trims.push_back(trim);
  }

  std::uint32_t step(int depth) {
    OrderStep step;
    if (depth > kMaxDepth) {
      reader_.fail(Code::malformed_dag_text, reader_.peek(), "steps are nested deeper than `{}`", kMaxDepth);
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
    if (!pass) return reader_.fail(Code::unknown_dag_name, where, "`{}` is no pass: `F`, `R`, `B`, `BI` or `BW`", where.text);
    op.pass = *pass;
    op.first_coordinate = static_cast<std::uint32_t>(order_.coordinates.size());
    // The next operation begins with a pass, which is no legal name of a coordinate.
    const auto more = [&] { return at_coordinate(reader_) && (reader_.peek().kind == TextReader::Kind::string || !parse_pass(reader_.peek().text)); };
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
    op.num_coordinates = static_cast<std::uint32_t>(order_.coordinates.size()) - op.first_coordinate;
    op.loc = reader_.location();
    order_.ops.push_back(op);
  }

  TextReader& reader_;
  const Mesh& mesh_;
  DeviceSetTable& device_sets_;
  Order order_;
};

template <typename Enum, std::size_t n>
Enum choose(TextReader& reader, std::string_view what, const std::string_view (&texts)[n]) {
  const TextReader::Token where = reader.peek();
  for (std::size_t i = 0; i < n; ++i) {
    if (reader.accept(texts[i])) return static_cast<Enum>(i);
  }
  if (reader.at_end()) {
    reader.fail(Code::malformed_dag_text, where, "the text ends where {} is expected", what);
  } else {
    reader.fail(Code::unknown_dag_name, where, "`{}` is not {}", where.text, what);
  }
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
  data.kind = choose<Data::Kind>(reader, "a source of data", {"bytes", "synthetic", "arrays"});
  reader.expect("(");
  const bool reads = data.kind != Data::Kind::synthetic;
  if (reads) data.path = reader.string("a path");
  while (!reader.failed() && !reader.at(")")) {
    if (reads || reader.previous().text != "(") reader.expect(",");
    if (at_field(reader, "batch")) {
      data.batch = reader.integer("a number of samples", 0, kMostCounted);
    } else if (at_field(reader, "batches")) {
      data.batches = reader.integer("a number of batches", 0, kMostCounted);
    } else if (at_field(reader, "classes")) {
      data.classes = reader.integer("a number of classes", 0, std::numeric_limits<std::int64_t>::max());
    } else {
      const Symbol name = reader.symbol("a dimension");
      reader.expect(":");
      data.extents.emplace_back(name, reader.integer("an extent", 0, kMostCounted));
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
  optimizer.lr.kind = choose<LearningRate::Kind>(reader, "a learning rate", {"constant", "cosine", "linear"});
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
    const Field fields[] = {{"momentum", &optimizer.momentum}, {"beta1", &optimizer.beta1},
                            {"beta2", &optimizer.beta2},       {"eps", &optimizer.eps},
                            {"weight_decay", &optimizer.weight_decay}, {"clip", &clip}};
    const Field* found = nullptr;
    for (const Field& field : fields) {
      if (reader.at(field.name)) found = &field;
    }
    if (found == nullptr) {
      reader.fail(Code::unknown_dag_name, reader.peek(), "an optimizer has no setting `{}`", reader.peek().text);
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

Partition parse_partition(TextReader& reader) {
  Partition partition;
  partition.region = parse_selector(reader);
  reader.expect("into");
  partition.into = parse_extent(reader);
  if (reader.accept("with")) {
    reader.expect("sizes");
    reader.expect(":");
    reader.expect("[");
    while (!reader.failed() && !reader.at("]")) {
      partition.sizes.push_back(count(reader, kUnits, "a size"));
      if (!reader.at("]")) reader.expect(",");
    }
    reader.expect("]");
  }
  partition.loc = reader.location();
  return partition;
}

Split parse_split(TextReader& reader) {
  Split split;
  split.dim = reader.symbol("a dimension");
  reader.expect("into");
  do {
    split.into.push_back(parse_extent(reader));
  } while (!reader.failed() && reader.accept(","));
  if (reader.accept("in")) split.targets = parse_selectors(reader);
  split.loc = reader.location();
  return split;
}

Place parse_place(TextReader& reader, const Mesh& mesh, DeviceSetTable& device_sets) {
  Place place;
  place.targets = parse_selectors(reader);
  reader.expect("on");
  place.devices = device_sets.intern(reader.device_set(mesh));
  if (reader.accept("with")) {
    reader.expect("depth");
    reader.expect(":");
    place.depth = small(reader, "a depth");
  }
  place.loc = reader.location();
  return place;
}

Replicate parse_replicate(TextReader& reader) {
  Replicate replicate;
  replicate.targets = parse_selectors(reader);
  reader.expect("over");
  do {
    replicate.axes.push_back(reader.symbol("an axis"));
  } while (!reader.failed() && reader.accept(","));
  reader.expect("with");
  reader.expect("zero");
  reader.expect(":");
  replicate.zero = count(reader, kZero, "a stage of ZeRO");
  while (!reader.failed() && reader.accept(",")) {
    if (at_field(reader, "bucket")) {
      replicate.bucket_bytes = number(reader, kBucket, "a number of bytes");
    } else if (at_field(reader, "reduce")) {
      const TextReader::Token where = reader.peek();
      replicate.reduce = parse_reduce(reader.name("when gradients are reduced"));
      if (!replicate.reduce) reader.fail(Code::malformed_dag_text, where, "gradients are reduced per `step`, `each` or `run`, not `{}`", where.text);
    } else {
      reader.expect("prefetch");
      reader.expect(":");
      replicate.prefetch = count(reader, kPrefetch, "a number of gathers");
    }
  }
  replicate.loc = reader.location();
  return replicate;
}

Stream parse_stream(TextReader& reader) {
  Stream stream;
  stream.name = reader.symbol("a stream");
  reader.expect(":");
  stream.targets = parse_selectors(reader);
  if (reader.accept("with")) {
    do {
      if (at_field(reader, "window")) {
        stream.window = count(reader, kWindow, "a window");
      } else {
        reader.expect("priority");
        reader.expect(":");
        reader.expect("high");
        stream.priority = Priority::high;
      }
    } while (!reader.failed() && reader.accept(","));
  }
  stream.loc = reader.location();
  return stream;
}

Offload parse_offload(TextReader& reader) {
  Offload offload;
  offload.targets = parse_selectors(reader);
  reader.expect("with");
  reader.expect("window");
  reader.expect(":");
  offload.window = count(reader, kWindow, "a window");
  if (reader.accept(",")) {
    for (const char* word : {"what", ":", "optimizer"}) reader.expect(word);
    offload.what = Offload::What::optimizer;
  }
  offload.loc = reader.location();
  return offload;
}

template <typename Line>
Line parse_treated(TextReader& reader) {
  Line line;
  line.targets = parse_selectors(reader);
  line.loc = reader.location();
  return line;
}

}  // namespace

NamedExtent parse_extent(TextReader& reader) {
  NamedExtent extent;
  extent.name = reader.symbol("a name");
  reader.expect(":");
  extent.extent = count(reader, kParts, "an extent");
  return extent;
}

bool is_directive_word(std::string_view word) {
  constexpr std::string_view kContinue[] = {"into", "in", "on", "over", "with", "else"};
  return std::find(std::begin(kContinue), std::end(kContinue), word) != std::end(kContinue) || std::find(std::begin(kKinds), std::end(kKinds), word) != std::end(kKinds);
}

bool at_directive(const TextReader& reader) {
  for (const std::string_view kind : kKinds) {
    if (reader.at(kind)) return true;
  }
  return false;
}

Directive parse_directive(TextReader& reader, const Mesh& mesh, DeviceSetTable& device_sets) {
  enum class Kind : std::uint8_t { partition, split, place, replicate, stream, order, require, recompute, offload, freeze };
  switch (choose<Kind>(reader, "a directive", kKinds)) {
    case Kind::partition: return parse_partition(reader);
    case Kind::split: return parse_split(reader);
    case Kind::place: return parse_place(reader, mesh, device_sets);
    case Kind::replicate: return parse_replicate(reader);
    case Kind::stream: return parse_stream(reader);
    case Kind::order: return OrderParser(reader, mesh, device_sets).parse();
    case Kind::require: return parse_require(reader);
    case Kind::recompute: return parse_treated<Recompute>(reader);
    case Kind::offload: return parse_offload(reader);
    case Kind::freeze: return parse_treated<Freeze>(reader);
  }
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
  if (found != std::end(kPlatformNames)) return static_cast<Platform>(found - std::begin(kPlatformNames));
  reader.fail(Code::unknown_dag_name, where, "`{}` is no device", where.text);
  return Platform::cpu;
}

constexpr std::pair<std::string_view, void (*)(TextReader&, Settings&)> kSettings[] = {
    {"steps", [](TextReader& reader, Settings& settings) {
       settings.steps = static_cast<std::uint64_t>(reader.integer("a number of steps", 0, std::numeric_limits<std::int64_t>::max()));
       settings.steps_given = !settings.train.empty();  // a schedule by itself has no steps
     }},
    {"dtype", [](TextReader& reader, Settings& settings) { settings.dtype = parse_dtype(reader); }},
    {"seed", [](TextReader& reader, Settings& settings) { settings.seed = static_cast<std::uint64_t>(reader.integer("a seed", 0, std::numeric_limits<std::int64_t>::max())); }},
    {"device", [](TextReader& reader, Settings& settings) { settings.device = parse_platform(reader); }},
    {"data", [](TextReader& reader, Settings& settings) { settings.data = parse_data(reader); }},
    {"held_out", [](TextReader& reader, Settings& settings) { settings.held_out = parse_data(reader); }},
    {"optim", [](TextReader& reader, Settings& settings) { settings.optimizer = parse_optimizer(reader); }},
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
    const auto setting = std::find_if(std::begin(kSettings), std::end(kSettings), [&](const auto& each) { return reader.accept(each.first); });
    if (setting == std::end(kSettings)) {
      reader.fail(Code::malformed_dag_text, where, "expected a setting of the train, found `{}`", where.text);
    } else if (std::exchange(seen[static_cast<std::size_t>(setting - kSettings)], true)) {
      reader.fail(Code::repeated_dag_name, where, "`{}` was set before", where.text);
    } else {
      setting->second(reader, settings);
    }
  }
  for (std::size_t i = 0; i < 3 && !reader.failed(); ++i) {  // steps, dtype and seed have no default in a text
    if (!seen[i]) reader.fail(Code::malformed_dag_text, reader.previous(), "the train says no `{}`", kSettings[i].first);
  }
  return settings;
}

}  // namespace piper::directive
