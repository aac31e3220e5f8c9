// The settings of a train: data, optimizer, learning rate, steps, dtype, seed.

#include <cmath>
#include <filesystem>

#include "frontend/lower/schedule_builder.h"

namespace piper::lower {

using llvm::cast;
using sema::Builtin;

namespace {

const ast::Expr& argument_expr(const ast::CallExpr& call, std::size_t param) {
  return *call.args[static_cast<std::size_t>(call.matched[param])].value;
}

}  // namespace

Value Evaluator::eval_setting_call(Builtin id, const ast::CallExpr& expr, Frame& frame) {
  const auto given = [&](std::size_t i) { return expr.matched[i] >= 0; };
  const auto number = [&](std::size_t i, double otherwise) {
    const auto value = argument(expr, i, frame);
    return value ? to_float(*value) : otherwise;
  };
  // Checks that argument i lies in [low, high).
  bool wrong = false;  // the other arguments are looked at all the same
  const auto within = [&](std::size_t i, double value, double low, double high, std::string_view rule) {
    if (failed_ || (value >= low && value < high)) return true;
    wrong = true;
    fail(Code::setting_out_of_range, given(i) ? argument_expr(expr, i).range : expr.range, frame, "`{}` of `{}` is `{}`; it must be {}",
         sema::signature(id).params[i].name, sema::signature(id).name, value, rule);
    resume();
    return false;
  };
  /// A number that may be left out, then 0.
  const auto count = [&](std::size_t i, std::int64_t least) {
    const auto value = argument(expr, i, frame);
    const std::int64_t n = value ? to_int(*value) : 0;
    if (value) within(i, static_cast<double>(n), static_cast<double>(least), 9e15, least > 0 ? "at least 1" : "at least 0");
    return n;
  };
  const auto done = [&](auto made) {
    if (wrong) set_failed();
    return failed_ ? Value() : share(std::move(made));
  };
  const double inf = std::numeric_limits<double>::infinity();
  switch (id) {
    case Builtin::normal: {
      tensor::Init init{tensor::Init::Kind::normal, number(0, 0.02)};
      within(0, init.scale, 0, inf, "at least 0");
      return done(init);
    }
    case Builtin::uniform: {
      tensor::Init init{tensor::Init::Kind::uniform, number(0, 0)};
      within(0, init.scale, 0, inf, "at least 0");
      return done(init);
    }
    case Builtin::constant: return share(tensor::Init{tensor::Init::Kind::constant, number(0, 0)});
    case Builtin::cosine:
    case Builtin::linear:
    case Builtin::flat: {
      directive::LearningRate rate;
      rate.kind = id == Builtin::cosine   ? directive::LearningRate::Kind::cosine
                  : id == Builtin::linear ? directive::LearningRate::Kind::linear
                                          : directive::LearningRate::Kind::constant;
      rate.base = number(0, 0);
      const bool positive = within(0, rate.base, 0, inf, "at least 0");
      rate.warmup = static_cast<std::uint32_t>(count(1, 0));
      if (id != Builtin::flat) {
        rate.floor = number(2, 0);
        if (positive) within(2, rate.floor, 0, std::nextafter(rate.base, inf), "between 0 and the base");
      }
      return done(rate);
    }
    case Builtin::adamw:
    case Builtin::sgd: {
      directive::Optimizer optimizer;
      optimizer.loc = here(expr.range, frame);
      optimizer.kind = id == Builtin::adamw ? directive::Optimizer::Kind::adamw : directive::Optimizer::Kind::sgd;
      const auto lr = argument(expr, 0, frame);
      if (failed_) {  // the rate is told
        wrong = true;
        if (!resume()) return {};
      } else if (const auto* rate = lr->shared<directive::LearningRate>()) {
        optimizer.lr = *rate;
      } else {
        optimizer.lr.base = to_float(*lr);
        within(0, optimizer.lr.base, 0, inf, "at least 0");
      }
      std::size_t next = 1;
      if (id == Builtin::adamw) {
        if (const auto betas = argument(expr, 1, frame)) {
          const Values pair = elements(*betas, argument_expr(expr, 1).range, frame);
          if (failed_) return {};
          if (pair.size() != 2) {
            fail(Code::wrong_number_of_values, argument_expr(expr, 1).range, frame, "`betas` has {} values; it takes 2", pair.size())
                .hint("write `betas: [0.9, 0.999]`");
            return {};
          }
          optimizer.beta1 = to_float(pair[0]);
          optimizer.beta2 = to_float(pair[1]);
          within(1, optimizer.beta1, 0, 1, "at least 0 and below 1");
          within(1, optimizer.beta2, 0, 1, "at least 0 and below 1");
        }
        optimizer.eps = number(2, 1e-8);
        within(2, optimizer.eps, 0, inf, "at least 0");
        next = 3;
      } else {
        optimizer.momentum = number(1, 0);
        within(1, optimizer.momentum, 0, 1, "at least 0 and below 1");
        next = 2;
      }
      optimizer.weight_decay = number(next, 0);
      within(next, optimizer.weight_decay, 0, inf, "at least 0");
      if (given(next + 1)) {
        optimizer.clip = number(next + 1, 0);
        within(next + 1, *optimizer.clip, std::numeric_limits<double>::min(), inf, "positive");
      }
      return done(optimizer);
    }
    case Builtin::bytes: {
      directive::Data data;
      data.loc = here(expr.range, frame);
      data.kind = directive::Data::Kind::bytes;
      data.path_loc = here(argument_expr(expr, 0).range, frame);
      const auto path = argument(expr, 0, frame);
      if (failed_) return {};
      const std::string& text = *path->shared<std::string>();
      const bool from_command_line = override_strings.contains(&text);
      const std::filesystem::path folder =
          std::filesystem::path(context_->locations.files().name(context_->locations.primary(data.loc).file)).parent_path();
      data.path = from_command_line || text.empty() ? text : (folder / text).lexically_normal().string();
      data.batch = count(1, 1);
      const std::int64_t seq = count(2, 1);
      data.extents.emplace_back(context_->symbol("seq"), seq);
      return done(std::move(data));
    }
    case Builtin::synthetic: {
      directive::Data data;
      data.loc = here(expr.range, frame);
      data.kind = directive::Data::Kind::synthetic;
      data.batch = count(0, 1);
      data.classes = count(1, 1);
      if (given(1)) data.classes_loc = here(argument_expr(expr, 1).range, frame);
      for (const std::uint32_t position : expr.rest) {
        const ast::Arg& extent = expr.args[position];
        const std::int64_t size = eval_int(*extent.value, frame);
        if (failed_) return {};
        if (size < 1) {
          fail(Code::setting_out_of_range, extent.value->range, frame, "the extent of `{}` is `{}`; it must be at least 1", extent.name.name, size);
          wrong = true;
          if (!resume()) return {};
        }
        data.extents.emplace_back(context_->symbol(extent.name.name), size);
        data.extent_locs.push_back(here(extent.name.range, frame));
      }
      return done(std::move(data));
    }
    default: break;
  }
  set_failed();
  return {};
}

void ScheduleBuilder::setting(const ast::SettingStmt& stmt, Frame& frame) {
  const ast::Pair& pair = stmt.setting;
  const std::string_view name = pair.name.name;
  directive::Settings& settings = strategy_->settings;
  const Value value = evaluator_->eval(*pair.value, frame);
  if (evaluator_->failed()) return failed_settings_.push_back(name);
  if (name == "data" || name == "held_out") {
    (name == "data" ? settings.data : settings.held_out) = *value.shared<directive::Data>();
  } else if (name == "optim") {
    settings.optimizer = *value.shared<directive::Optimizer>();
  } else if (name == "dtype") {
    settings.dtype = *value.get<tensor::DType>();
  } else if (name == "steps" || name == "seed") {
    const std::int64_t number = evaluator_->to_int(value);
    if (number < 0) {
      evaluator_->fail(Code::setting_out_of_range, pair.value->range, frame, "`{}` is `{}`; it must be at least 0", name, number);
      return failed_settings_.push_back(name);
    }
    (name == "steps" ? settings.steps : settings.seed) = static_cast<std::uint64_t>(number);
    settings.steps_given = settings.steps_given || name == "steps";
  } else {
    evaluator_->set_failed();  // refused by the analysis
  }
}

}  // namespace piper::lower
