// The settings of a train: data, initial weights, optimizer, learning rate, steps, device, dtype,
// seed, intervals of checkpoints and evaluations.

#include <cmath>
#include <filesystem>
#include <limits>
#include <optional>

#include "frontend/lower/schedule/schedule_builder.h"
#include "ir/diagnostics/counted.h"
#include "ir/directive/numbers.h"

namespace piper::lower {

using llvm::cast;
using sema::Builtin;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Seconds: longer times are typing mistakes.
constexpr double kLongest = 1e9;

const ast::Expr& argument_expr(const ast::CallExpr& call, std::size_t param) {
  return *call.args[static_cast<std::size_t>(call.matched[param])].value;
}

/// One call of a setting. An argument out of range is reported, and the others are still checked.
class SettingCall {
 public:
  SettingCall(Evaluator& evaluator, Builtin id, const ast::CallExpr& expr, Frame& frame)
      : evaluator_(evaluator), id_(id), expr_(expr), frame_(frame) {}

  Value value() {
    switch (id_) {
      case Builtin::normal: return done(init(tensor::Init::Kind::normal, 0.02));
      case Builtin::uniform: return done(init(tensor::Init::Kind::uniform, 0));
      case Builtin::constant:
        return share(tensor::Init{tensor::Init::Kind::constant, number(0, 0)});
      case Builtin::cosine: return done(learning_rate(directive::LearningRate::Kind::cosine));
      case Builtin::linear: return done(learning_rate(directive::LearningRate::Kind::linear));
      case Builtin::flat: return done(learning_rate(directive::LearningRate::Kind::constant));
      case Builtin::arrays: return done(arrays());
      case Builtin::bytes: return done(bytes());
      case Builtin::synthetic: return done(synthetic());
      case Builtin::tokens: return done(tokens());
      case Builtin::every: return done(every());
      case Builtin::weights: return done(weights());
      case Builtin::device: return done(device());
      case Builtin::link: return done(link());
      default: break;
    }
    if (const auto kind = sema::optimizer_of(id_)) return done(optimizer(*kind));
    evaluator_.set_failed();
    return {};
  }

 private:
  template <typename Made>
  Value done(Made made) {
    if (wrong_) evaluator_.set_failed();
    return evaluator_.failed() ? Value() : share(std::move(made));
  }

  bool given(std::size_t i) const { return expr_.matched[i] >= 0; }
  std::optional<Value> argument(std::size_t i) { return evaluator_.argument(expr_, i, frame_); }
  double number(std::size_t i, double otherwise) {
    const auto value = argument(i);
    return value ? evaluator_.to_float(*value) : otherwise;
  }
  /// A number that may be left out, then 0.
  std::int64_t count(std::size_t i, std::int64_t least, std::int64_t most = std::int64_t{1} << 50) {
    const auto value = argument(i);
    const std::int64_t n = value ? evaluator_.to_int(*value) : 0;
    if (value)
      within(i, n, least, most + 1,
             n > most ? "at most " + std::to_string(most) : "at least " + std::to_string(least));
    return n;
  }
  /// Checks that argument i lies in [low, high).
  template <typename Number>
  bool within(std::size_t i, Number value, std::type_identity_t<Number> low,
              std::type_identity_t<Number> high, std::string_view rule) {
    if (evaluator_.failed() || (value >= low && value < high)) return true;
    wrong_ = true;
    evaluator_.fail(Code::setting_out_of_range,
                    given(i) ? argument_expr(expr_, i).range : expr_.range, frame_,
                    "`{}` of `{}` is `{}`; it must be {}", sema::signature(id_).params[i].name,
                    sema::signature(id_).name, value, rule);
    evaluator_.resume();
    return false;
  }

  tensor::Init init(tensor::Init::Kind kind, double otherwise) {
    const tensor::Init init{kind, number(0, otherwise)};
    within(0, init.scale, 0, kInfinity, "at least 0");
    return init;
  }

  directive::LearningRate learning_rate(directive::LearningRate::Kind kind) {
    directive::LearningRate rate;
    rate.kind = kind;
    rate.base = number(0, 0);
    const bool positive = within(0, rate.base, 0, kInfinity, "at least 0");
    rate.warmup =
        static_cast<std::uint32_t>(count(1, 0, std::numeric_limits<std::uint32_t>::max()));
    if (given(1)) rate.warmup_loc = evaluator_.here(argument_expr(expr_, 1).range, frame_);
    if (kind != directive::LearningRate::Kind::constant) {
      rate.floor = number(2, 0);
      if (positive)
        within(2, rate.floor, 0, std::nextafter(rate.base, kInfinity), "between 0 and the base");
    }
    return rate;
  }

  directive::Optimizer optimizer(directive::Optimizer::Kind kind) {
    directive::Optimizer optimizer;
    optimizer.loc = evaluator_.here(expr_.range, frame_);
    optimizer.kind = kind;
    const auto lr = argument(0);
    if (evaluator_.failed()) {  // the rate is reported
      wrong_ = true;
      if (!evaluator_.resume()) return optimizer;
    } else if (const auto* rate = lr->shared<directive::LearningRate>()) {
      optimizer.lr = *rate;
    } else {
      optimizer.lr.base = evaluator_.to_float(*lr);
      within(0, optimizer.lr.base, 0, kInfinity, "at least 0");
    }
    std::size_t next = 1;
    switch (optimizer.kind) {
      case directive::Optimizer::Kind::sgd:
        optimizer.momentum = number(1, 0);
        within(1, optimizer.momentum, 0, 1, "at least 0 and below 1");
        next = 2;
        break;
      case directive::Optimizer::Kind::adamw:
        if (!betas(optimizer)) return optimizer;
        optimizer.eps = number(2, 1e-8);
        within(2, optimizer.eps, 0, kInfinity, "at least 0");
        next = 3;
        break;
    }
    optimizer.weight_decay = number(next, 0);
    within(next, optimizer.weight_decay, 0, kInfinity, "at least 0");
    if (given(next + 1)) {
      optimizer.clip = number(next + 1, 0);
      within(next + 1, *optimizer.clip, std::numeric_limits<double>::min(), kInfinity, "positive");
    }
    if (const auto decay = argument(next + 2)) {
      const auto* const known = decay->get<directive::Decay>();
      if (known != nullptr) optimizer.decay = *known;
    }
    return optimizer;
  }

  bool betas(directive::Optimizer& optimizer) {
    const auto given_betas = argument(1);
    if (!given_betas) return true;
    const SourceRange range = argument_expr(expr_, 1).range;
    const Values pair = evaluator_.elements(*given_betas, range, frame_);
    if (evaluator_.failed()) return false;
    if (pair.size() != 2) {
      evaluator_
          .fail(Code::wrong_number_of_values, range, frame_, "`betas` has {}; it takes 2",
                counted(pair.size(), "value"))
          .hint("write `betas: [0.9, 0.999]`");
      return false;
    }
    optimizer.beta1 = evaluator_.to_float(pair[0]);
    optimizer.beta2 = evaluator_.to_float(pair[1]);
    within(1, optimizer.beta1, 0, 1, "at least 0 and below 1");
    within(1, optimizer.beta2, 0, 1, "at least 0 and below 1");
    return true;
  }

  double positive(std::size_t i) {
    const double value = number(i, 0);
    within(i, value, std::numeric_limits<double>::min(), kInfinity, "positive and finite");
    return value;
  }

  std::int64_t byte_count(std::size_t i, std::string_view rule) {
    const auto value = argument(i);
    const ByteCount* bytes = value ? value->get<ByteCount>() : nullptr;
    if (bytes == nullptr) return 1;  // the missing rate was reported
    within(i, bytes->bytes, 1, std::numeric_limits<std::int64_t>::max(), rule);
    return bytes->bytes;
  }

  MachineDevice device() {
    MachineDevice device;
    device.at.at.assign(evaluator_.mesh->axes.size(), DeviceSet::kWhole);
    if (given(0)) device.memory = byte_count(0, "at least 1 byte");
    if (given(1)) device.speed = positive(1);
    if (given(2)) {
      device.overlap = positive(2);
      within(2, *device.overlap, 1, kInfinity,
             "at least 1: how much longer work takes while a communication runs beside it");
    }
    if (given(3)) device.host = static_cast<double>(byte_count(3, "at least 1 byte per second"));
    if (given(4)) {
      const DeviceSetId at = evaluator_.eval_devices(argument_expr(expr_, 4), frame_);
      if (!evaluator_.failed()) device.at = (*evaluator_.device_sets)[at];
    }
    device.rates = rates();
    return device;
  }

  /// The rates of the data sheet, each replaced by the rate of the line, if any.
  DeviceRates rates() {
    DeviceRates rates;
    if (const auto kind = argument(5)) {
      const Processor* const* known = kind->get<const Processor*>();
      if (known != nullptr) rates = (*known)->rates();
    }
    if (given(6)) {
      rates.efficiency = positive(6);
      within(6, *rates.efficiency, 0, std::nextafter(1.0, 2.0),
             "at most 1: the part of its rates that the device reaches");
    }
    if (given(7)) {
      rates.flops_f32 = positive(7);
      if (!given(8)) rates.flops_bf16 = rates.flops_f32;
      if (!given(9)) rates.flops_f64 = rates.flops_f32;
    }
    if (given(8)) rates.flops_bf16 = positive(8);
    if (given(9)) rates.flops_f64 = positive(9);
    if (given(10))
      rates.bandwidth = static_cast<double>(byte_count(10, "at least 1 byte per second"));
    return rates;
  }

  MachineLink link() {
    MachineLink link;
    link.bandwidth = static_cast<double>(byte_count(0, "at least 1 byte per second"));
    link.latency = number(1, 0);
    within(1, link.latency, 0, kLongest, "at least 0 and below 1e9 seconds");
    if (given(2))
      link.shared =
          static_cast<std::uint32_t>(count(2, 1, std::numeric_limits<std::int32_t>::max()));
    return link;
  }

  /// The path of argument i, which is one beside the program at `loc`, unless it comes from the
  /// command line. Empty after a failure.
  std::string path(std::size_t i, LocId loc) {
    const auto value = argument(i);
    if (evaluator_.failed()) return {};
    const std::string& text = *value->shared<std::string>();
    const bool from_command_line = evaluator_.override_strings.contains(&text);
    const LocationTable& locations = evaluator_.context().locations;
    const std::filesystem::path folder =
        std::filesystem::path(locations.files().name(locations.primary(loc).file)).parent_path();
    return from_command_line || text.empty() ? text : (folder / text).lexically_normal().string();
  }

  /// Data of a file: the path and the batch.
  directive::Data file(directive::Data::Kind kind) {
    directive::Data data;
    data.loc = evaluator_.here(expr_.range, frame_);
    data.kind = kind;
    data.path_loc = evaluator_.here(argument_expr(expr_, 0).range, frame_);
    data.path = path(0, data.loc);
    if (evaluator_.failed()) return data;
    data.batch = count(1, 1);
    return data;
  }

  directive::Data bytes() {
    directive::Data data = file(directive::Data::Kind::bytes);
    if (evaluator_.failed()) return data;
    window(data, 2);
    batches(data, 3);
    sampling(data, 4);
    return data;
  }

  directive::Data tokens() {
    directive::Data data = file(directive::Data::Kind::tokens);
    if (evaluator_.failed()) return data;
    window(data, 2);
    if (const auto type = argument(3)) {
      const auto* const known = type->get<directive::TokenType>();
      if (known != nullptr) data.token_type = *known;
    }
    batches(data, 4);
    sampling(data, 5);
    return data;
  }

  /// The length of a sample of a text.
  void window(directive::Data& data, std::size_t i) {
    const std::int64_t seq = count(i, 1);
    data.extents.emplace_back(evaluator_.context().symbol("seq"), seq);
  }

  directive::Data synthetic() {
    directive::Data data;
    data.loc = evaluator_.here(expr_.range, frame_);
    data.kind = directive::Data::Kind::synthetic;
    data.batch = count(0, 1);
    data.classes = count(1, 1);
    if (given(1)) data.classes_loc = evaluator_.here(argument_expr(expr_, 1).range, frame_);
    batches(data, 2);
    extents(data);
    return data;
  }

  directive::Data arrays() {
    directive::Data data = file(directive::Data::Kind::arrays);
    if (evaluator_.failed()) return data;
    batches(data, 2);
    sampling(data, 3);
    extents(data);
    return data;
  }

  directive::Every every() {
    directive::Every every;
    every.steps = counted_by(directive::kEverySteps, 0);
    every.keep = counted_by(directive::kKeptCheckpoints, 1);
    if (given(1)) every.keep_loc = evaluator_.here(argument_expr(expr_, 1).range, frame_);
    if (const auto best = argument(2)) every.best = best->get<bool>() && *best->get<bool>();
    if (given(2)) every.best_loc = evaluator_.here(argument_expr(expr_, 2).range, frame_);
    return every;
  }

  WeightsValue weights() {
    WeightsValue value;
    directive::InitialWeights& weights = value.weights;
    weights.loc = evaluator_.here(expr_.range, frame_);
    const SourceRange range = argument_expr(expr_, 0).range;
    weights.path_loc = evaluator_.here(range, frame_);
    weights.path = path(0, weights.loc);
    if (!evaluator_.failed() && weights.path.empty()) {
      evaluator_
          .fail(Code::setting_out_of_range, range, frame_,
                "`path` of `weights` is empty; it must name a file or a folder")
          .hint("write `weights(\"model.safetensors\")`");
      return value;
    }
    if (const auto names = argument(1)) {
      if (const auto* const item = names->get<NamesValue>()) {
        value.names = *item;
        weights.names = std::string(evaluator_.program().names[item->item].name());
      }
    }
    weights.keeps_missing = argument(2).has_value();
    return value;
  }

  /// A number with bounds of its own; 0 if it is left out.
  std::uint64_t counted_by(const directive::Number& bounds, std::size_t i) {
    return static_cast<std::uint64_t>(count(i, bounds.min_value, bounds.max_value));
  }

  /// A limit on held-out data.
  void batches(directive::Data& data, std::size_t i) {
    data.batches = count(i, 1);
    if (given(i)) data.batches_loc = evaluator_.here(argument_expr(expr_, i).range, frame_);
  }

  /// The order of training samples.
  void sampling(directive::Data& data, std::size_t i) {
    const auto order = argument(i);
    const auto* const known = order ? order->get<directive::Sampling>() : nullptr;
    if (known == nullptr) return;
    data.sampling = *known;
    data.sampling_loc = evaluator_.here(argument_expr(expr_, i).range, frame_);
  }

  /// Sizes of dimensions by name.
  void extents(directive::Data& data) {
    for (const std::uint32_t position : expr_.rest) {
      const ast::Arg& extent = expr_.args[position];
      const std::int64_t size = evaluator_.eval_int(*extent.value, frame_);
      if (evaluator_.failed()) return;
      if (size < 1) {
        evaluator_.fail(Code::setting_out_of_range, extent.value->range, frame_,
                        "the extent of `{}` is `{}`; it must be at least 1", extent.name.name,
                        size);
        wrong_ = true;
        if (!evaluator_.resume()) return;
      }
      data.extents.emplace_back(evaluator_.context().symbol(extent.name.name), size);
      data.extent_locs.push_back(evaluator_.here(extent.name.range, frame_));
    }
  }

  Evaluator& evaluator_;
  const Builtin id_;
  const ast::CallExpr& expr_;
  Frame& frame_;
  bool wrong_ = false;  // an argument is out of range
};

}  // namespace

Value Evaluator::eval_setting_call(Builtin id, const ast::CallExpr& expr, Frame& frame) {
  return SettingCall(*this, id, expr, frame).value();
}

void ScheduleBuilder::setting(const ast::SettingStmt& stmt, Frame& frame) {
  const ast::Pair& pair = stmt.setting;
  const std::string_view name = pair.name.name;
  directive::Settings& settings = strategy_->settings;
  // `norm > 10`: the norm is no value.
  const bool skips = name == "skip_step";
  const Value value =
      evaluator_->eval(skips ? *cast<ast::BinaryExpr>(*pair.value).right : *pair.value, frame);
  if (evaluator_->failed()) return;
  if (name == "data" || name == "held_out") {
    const directive::Data& data = *value.shared<directive::Data>();
    if (name == "data" && data.batches > 0) {
      evaluator_
          ->fail_at(Code::limit_on_training_data, data.batches_loc,
                    "`batches` limits held-out data, and this is the data of training")
          .hint("leave `batches` out, and write `steps` for the length of the train");
      return;
    }
    if (name == "held_out" && data.sampling_loc.valid()) {
      evaluator_
          ->fail_at(Code::sampling_of_held_out, data.sampling_loc,
                    "`sampling` is the order of training, and held-out data is read once, in order")
          .hint("leave `sampling` out here");
      return;
    }
    (name == "data" ? settings.data : settings.held_out) = data;
  } else if (name == "optim") {
    settings.optimizer = *value.shared<directive::Optimizer>();
  } else if (name == "checkpoint" || name == "evaluate") {
    directive::Every every = *value.shared<directive::Every>();
    every.loc = evaluator_->here(pair.value->range, frame);
    if (name == "evaluate" && (every.keep > 0 || every.best)) {
      evaluator_
          ->fail_at(Code::keep_of_evaluation, every.keep > 0 ? every.keep_loc : every.best_loc,
                    "{}, and `evaluate` writes none",
                    every.keep > 0 ? "`keep` limits the number of checkpoints"
                                   : "`best` keeps a checkpoint")
          .hint("write `evaluate: every({})`", every.steps);
      return;
    }
    (name == "checkpoint" ? settings.checkpoint : settings.evaluate) = every;
  } else if (name == "init") {
    const WeightsValue& init = *value.shared<WeightsValue>();
    settings.init = init.weights;
    names_of_init_ = init.names;
  } else if (name == "device") {
    settings.device = *value.get<directive::Platform>();
  } else if (name == "dtype") {
    settings.dtype = *value.get<tensor::DType>();
  } else if (skips || name == "ema") {
    const double number = evaluator_->to_float(value);
    if (skips ? !(number > 0 && number < kInfinity) : !(number >= 0 && number < 1)) {
      evaluator_->fail(Code::setting_out_of_range, pair.value->range, frame,
                       "{} `{}`; it must be {}", skips ? "the norm of `skip_step` is" : "`ema` is",
                       number, skips ? "positive and finite" : "at least 0 and below 1");
      return;
    }
    (skips ? settings.skip_above : settings.ema) = number;
    (skips ? settings.skip_loc : settings.ema_loc) = evaluator_->here(pair.value->range, frame);
  } else if (name == "steps" || name == "seed") {
    const std::int64_t number = evaluator_->to_int(value);
    const std::int64_t least = name == "steps" ? 1 : 0;
    if (number < least) {
      auto&& report = evaluator_->fail(Code::setting_out_of_range, pair.value->range, frame,
                                       "`{}` is `{}`; it must be at least {}", name, number, least);
      if (number == 0) report.hint("to run nothing write `piper check`");
      return;
    }
    (name == "steps" ? settings.steps : settings.seed) = static_cast<std::uint64_t>(number);
    settings.steps_given = settings.steps_given || name == "steps";
  } else {
    return evaluator_->set_failed();  // refused by the analysis
  }
  given_settings_.push_back(name);
}

}  // namespace piper::lower
