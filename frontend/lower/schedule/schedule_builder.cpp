#include "frontend/lower/schedule/schedule_builder.h"

#include <algorithm>
#include <concepts>
#include <optional>
#include <span>
#include <type_traits>

#include "ir/diagnostics/counted.h"

namespace piper::lower {

using llvm::cast;

namespace {

/// Stages times microbatches. Each is several operations, messages and buffers, which take some
/// kilobytes together.
constexpr std::uint64_t kMaxInstances = 1u << 19;
// No product of two such overflows.
constexpr std::uint64_t kUncountedInstances = std::uint64_t{1} << 32;

}  // namespace

void ScheduleBuilder::directive(const ast::Stmt& stmt, Frame& frame) {
  switch (stmt.kind) {
      // clang-format off
    case ast::StmtKind::directive: return line(cast<ast::DirectiveStmt>(stmt), frame);
    case ast::StmtKind::order: return order(cast<ast::OrderStmt>(stmt), frame);
    case ast::StmtKind::setting: return setting(cast<ast::SettingStmt>(stmt), frame);
    case ast::StmtKind::error: case ast::StmtKind::let: case ast::StmtKind::var:
    case ast::StmtKind::assign: case ast::StmtKind::expr: case ast::StmtKind::for_loop:
    case ast::StmtKind::repeat: case ast::StmtKind::conditional: case ast::StmtKind::return_value:
    case ast::StmtKind::require: case ast::StmtKind::input: case ast::StmtKind::weight:
    case ast::StmtKind::region: case ast::StmtKind::loss: case ast::StmtKind::rank:
    case ast::StmtKind::cursor: case ast::StmtKind::at: case ast::StmtKind::step:
      // clang-format on
      evaluator_->set_failed();  // refused by the analysis
  }
}

void ScheduleBuilder::require(directive::Require require) { add(std::move(require)); }

void ScheduleBuilder::call(const sema::Function& function, const ast::CallExpr& expr,
                           Frame& frame) {
  Frame callee = evaluator_->bind(function, expr, frame);
  if (evaluator_->failed()) return;
  parents_.push_back(scope_);
  scope_ = static_cast<std::uint32_t>(parents_.size() - 1);
  evaluator_->run(function, callee);
  scope_ = parents_[scope_];
}

std::int64_t ScheduleBuilder::number(const ast::Expr& expr, const directive::Number& number,
                                     Frame& frame) {
  const Value value = evaluator_->convert(evaluator_->eval(expr, frame), {sema::TypeKind::number},
                                          expr.range, frame);
  return evaluator_->failed() ? number.min_value : allowed(value, expr, number, frame);
}

double ScheduleBuilder::factor(const ast::Expr& expr, const directive::Number& number,
                               Frame& frame) {
  const Value value = evaluator_->convert(evaluator_->eval(expr, frame), {sema::TypeKind::floating},
                                          expr.range, frame);
  if (evaluator_->failed()) return 1;
  const double found = evaluator_->to_float(value);
  if (!number.allows_factor(found))
    evaluator_->fail(number.code, expr.range, frame, "{} is `{}`; {}", number.what, found,
                     number.rule);
  return found;
}

std::int64_t ScheduleBuilder::allowed(const Value& value, const ast::Expr& from,
                                      const directive::Number& number, const Frame& frame) {
  const std::int64_t amount =
      value.get<ByteCount>() ? value.get<ByteCount>()->bytes : evaluator_->to_int(value);
  if (number.allows(amount)) return amount;
  DiagnosticBuilder report =
      evaluator_->fail(number.code, from.range, frame, "{}",
                       number.refusal(describe(value), amount < number.min_value));
  if (!number.hint.empty()) report.hint("{}", number.hint);
  return number.min_value;
}

directive::NamedExtent ScheduleBuilder::extent(const ast::Pair& pair,
                                               const directive::Number& allowed, Frame& frame) {
  const std::uint32_t value = count(*pair.value, allowed, frame);
  lacks_extents_ = lacks_extents_ || evaluator_->failed();
  return {evaluator_->context().symbol(pair.name.name), value, evaluator_->here(pair.range, frame)};
}

std::uint64_t ScheduleBuilder::Instances::parts() const {
  std::uint64_t product = 1;
  for (const auto& [dim, into] : splits) product = std::min(product * into, kUncountedInstances);
  return product;
}

void ScheduleBuilder::Instances::split(Symbol dim, std::uint64_t into) {
  const auto known = std::find_if(splits.begin(), splits.end(),
                                  [&](const auto& split) { return split.first == dim; });
  if (known == splits.end()) {
    splits.emplace_back(dim, into);
  } else {
    known->second = std::max(known->second, into);
  }
}

void ScheduleBuilder::take(Instances instances, const directive::NamedExtent& last) {
  const std::uint64_t parts = instances.parts();
  if (instances.stages * parts <= kMaxInstances) {
    instances_ = std::move(instances);
    return;
  }
  lacks_extents_ = true;
  const std::string more = parts == kUncountedInstances ? "more than " : "";
  evaluator_
      ->fail_at(Code::too_many_instances, last.loc,
                "{} in {} are {} pieces of work; a program has at most {}",
                counted(instances.stages, "stage"),
                more + counted(parts, "part of the batch", "parts of the batch"),
                more + std::to_string(instances.stages * parts), kMaxInstances)
      .hint("make `{}` smaller: each piece is several operations, with their messages and buffers",
            evaluator_->context().text(last.name));
}

bool ScheduleBuilder::admits(directive::Partition& line) {
  if (evaluator_->failed()) return false;
  Instances instances = instances_;
  instances.stages = std::max<std::uint64_t>(instances.stages, line.into.extent);
  take(std::move(instances), line.into);
  return !evaluator_->failed();
}

bool ScheduleBuilder::admits(directive::Split& line) {
  if (evaluator_->failed()) return false;
  if (!line.targets.empty()) return true;
  std::uint64_t into = 1;
  for (const directive::NamedExtent& part : line.into)
    into = std::min(into * part.extent, kUncountedInstances);
  Instances instances = instances_;
  instances.split(line.dim, into);
  take(std::move(instances), line.into.back());
  return !evaluator_->failed();
}

bool ScheduleBuilder::admits(directive::Place& line) {
  line.depth = depth(scope_);
  return true;
}

/// Evaluates the subject and the clauses of a line before its settings.
class ScheduleBuilder::ClauseValues : public directive::IgnoreFields {
 public:
  ClauseValues(ScheduleBuilder& builder, const ast::DirectiveStmt& stmt, Frame& frame)
      : builder_(builder), evaluator_(*builder.evaluator_), stmt_(stmt), frame_(frame) {}

  void region(directive::Selector& region) {
    region = evaluator_.eval_selector(*stmt_.region, frame_);
  }
  void dimension(Symbol& dim, LocId& loc) {
    name(dim);
    loc = evaluator_.here(stmt_.name.range, frame_);
  }
  void name(Symbol& name) { name = evaluator_.context().symbol(stmt_.name.name); }
  void targets(std::vector<directive::Selector>& targets) { evaluate(stmt_.targets, targets); }
  void into(directive::NamedExtent& extent, const directive::Number& bounds) {
    extent = builder_.extent(stmt_.into.front(), bounds, frame_);
  }
  void into(std::vector<directive::NamedExtent>& extents, const directive::Number& bounds) {
    for (const ast::Pair& pair : stmt_.into)
      extents.push_back(builder_.extent(pair, bounds, frame_));
  }
  void in(std::vector<directive::Selector>& targets) { evaluate(stmt_.in, targets); }
  void on(DeviceSetId& devices) { devices = evaluator_.eval_devices(*stmt_.devices, frame_); }
  void over(std::vector<Symbol>& axes) {
    for (const ast::Identifier& name : stmt_.axes) {
      // An axis parameter of a schedule means the axis that was passed.
      const AxisValue* axis =
          name.binding == ast::kUnbound ? nullptr : frame_.slots[name.binding].get<AxisValue>();
      if (!axis) return evaluator_.set_failed();
      const Symbol symbol = evaluator_.mesh->axes[axis->axis].name;
      if (std::find(axes.begin(), axes.end(), symbol) != axes.end()) {
        evaluator_.fail(Code::axis_named_twice, name.range, frame_,
                        "the axis `{}` is named twice here", evaluator_.context().text(symbol));
        return;
      }
      axes.push_back(symbol);
    }
  }

 private:
  void evaluate(std::span<const ast::Target> written, std::vector<directive::Selector>& targets) {
    for (const ast::Target& target : written)
      targets.push_back(evaluator_.eval_target(target, frame_));
  }

  ScheduleBuilder& builder_;
  Evaluator& evaluator_;
  const ast::DirectiveStmt& stmt_;
  Frame& frame_;
};

/// Evaluates one setting, as it is written.
class ScheduleBuilder::SettingValue : public directive::IgnoreFields {
 public:
  SettingValue(ScheduleBuilder& builder, directive::DirectiveKind kind, const ast::Pair& pair,
               Frame& frame)
      : builder_(builder), kind_(kind), pair_(pair), frame_(frame) {}

  void setting(std::string_view name, auto& value, auto&... loc) {
    if (name != pair_.name.name) return;
    const directive::SettingRow& row = *directive::find_setting(kind_, name);
    const bool list = row.type == directive::SettingType::counts;
    ((loc = builder_.evaluator_->here(list ? pair_.value->range : pair_.range, frame_)), ...);
    evaluate(value, row);
  }

 private:
  void evaluate(double& value, const directive::SettingRow& row) {
    value = builder_.factor(*pair_.value, *row.number, frame_);
  }
  void evaluate(std::integral auto& value, const directive::SettingRow& row) {
    value = static_cast<std::remove_reference_t<decltype(value)>>(
        builder_.number(*pair_.value, *row.number, frame_));
  }
  template <typename Value>
  void evaluate(std::optional<Value>& value, const directive::SettingRow& row) {
    evaluate(value.emplace(), row);
  }
  void evaluate(std::vector<std::uint32_t>& values, const directive::SettingRow& row) {
    Evaluator& evaluator = *builder_.evaluator_;
    for (const Value& value :
         evaluator.elements(evaluator.eval(*pair_.value, frame_), pair_.value->range, frame_)) {
      values.push_back(
          static_cast<std::uint32_t>(builder_.allowed(value, *pair_.value, *row.number, frame_)));
      if (evaluator.failed()) return;
    }
  }
  template <typename Word>
    requires std::is_enum_v<Word>
  void evaluate(Word& value, const directive::SettingRow& row) {
    const std::span<const std::string_view> words = directive::words_of(row);
    const auto* written = llvm::dyn_cast<ast::NameExpr>(pair_.value);
    const auto found = std::find(words.begin(), words.end(),
                                 written != nullptr ? written->name : std::string_view());
    if (found == words.end()) return builder_.evaluator_->set_failed();  // refused by the analysis
    value = static_cast<Word>(found - words.begin());
  }

  ScheduleBuilder& builder_;
  const directive::DirectiveKind kind_;
  const ast::Pair& pair_;
  Frame& frame_;
};

template <typename Line>
void ScheduleBuilder::build(const ast::DirectiveStmt& stmt, Frame& frame) {
  Line line{};
  line.loc = evaluator_->here(stmt.range, frame);
  ClauseValues clauses(*this, stmt, frame);
  line.fields(clauses, line);
  if (!admits(line)) return;
  for (const ast::Pair& pair : stmt.settings) {
    SettingValue setting(*this, stmt.directive, pair, frame);
    line.fields(setting, line);
    if (evaluator_->failed()) return;
  }
  add(std::move(line));
}

void ScheduleBuilder::line(const ast::DirectiveStmt& stmt, Frame& frame) {
  switch (stmt.directive) {
#define DIRECTIVE(keyword, Line, ...) \
  case directive::DirectiveKind::keyword: return build<directive::Line>(stmt, frame);
#define REFUSED(keyword, ...) \
  case directive::DirectiveKind::keyword: return evaluator_->set_failed();  // by the analysis
#include "ir/directive/directives.def"
  }
}

void ScheduleBuilder::order(const ast::OrderStmt& stmt, Frame& frame) {
  orders_.push_back({&stmt, frame, entries_.size(), evaluator_->in_function()});
  entries_.push_back({directive::Order(), scope_, true});
}

}  // namespace piper::lower
