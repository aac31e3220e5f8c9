// Reads the settings of a train: data, optimizer, numbers, intervals, initial weights.

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "ir/directive/numbers.h"
#include "ir/directive/parse.h"
#include "ir/directive/parse_words.h"

namespace piper::directive {

namespace {

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
      optimizer.lr.warmup = parse_count(reader, "a number of steps");
    } else {
      reader.expect("floor");
      reader.expect(":");
      optimizer.lr.floor = reader.number("a learning rate");
    }
  }
  reader.expect(")");
  while (!reader.failed() && reader.accept(",")) {
    if (at_field(reader, "decay")) {
      optimizer.decay = choose<Decay>(reader, "a choice of parameters that decay", kDecayNames);
      continue;
    }
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

/// `every 100 keep 3 best`
Every parse_every(TextReader& reader) {
  Every every;
  reader.expect("every");
  every.steps =
      static_cast<std::uint64_t>(reader.integer("a number of steps", 0, kEverySteps.max_value));
  if (reader.accept("keep"))
    every.keep = static_cast<std::uint64_t>(
        reader.integer("a number of checkpoints", 0, kKeptCheckpoints.max_value));
  every.best = reader.accept("best");
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
    {"ema",
     [](TextReader& reader, Settings& settings) {
       settings.ema = reader.number("the decay of an average");
       settings.ema_loc = reader.location();
     }},
    {"skip_step",
     [](TextReader& reader, Settings& settings) {
       reader.expect("norm");
       reader.expect(">");
       settings.skip_above = reader.number("a gradient norm");
       settings.skip_loc = reader.location();
     }},
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
