#include "frontend/lower/schedule/schedule_builder.h"

#include <algorithm>

#include "ir/diagnostics/counted.h"

namespace piper::lower {

using llvm::cast;

namespace {

/// Stages times microbatches. Each is several operations, messages and buffers, which take some kilobytes together.
constexpr std::uint64_t kMostPieces = 1u << 19;
constexpr std::uint64_t kUncountedPieces = std::uint64_t{1} << 32;  // no product of two such overflows

}  // namespace

void ScheduleBuilder::directive(const ast::Stmt& stmt, Frame& frame) {
  switch (stmt.kind) {
    case ast::StmtKind::directive: return line(cast<ast::DirectiveStmt>(stmt), frame);
    case ast::StmtKind::order: return order(cast<ast::OrderStmt>(stmt), frame);
    case ast::StmtKind::setting: return setting(cast<ast::SettingStmt>(stmt), frame);
    case ast::StmtKind::error: case ast::StmtKind::let: case ast::StmtKind::var: case ast::StmtKind::assign: case ast::StmtKind::expr:
    case ast::StmtKind::for_loop: case ast::StmtKind::repeat: case ast::StmtKind::conditional: case ast::StmtKind::return_value:
    case ast::StmtKind::require: case ast::StmtKind::input: case ast::StmtKind::weight: case ast::StmtKind::region: case ast::StmtKind::loss:
    case ast::StmtKind::rank: case ast::StmtKind::cursor: case ast::StmtKind::at: case ast::StmtKind::step:
      evaluator_->set_failed();  // refused by the analysis
  }
}

void ScheduleBuilder::line(const ast::DirectiveStmt& stmt, Frame& frame) {
  switch (stmt.directive) {
    case directive::DirectiveKind::partition: return partition(stmt, frame);
    case directive::DirectiveKind::split: return split(stmt, frame);
    case directive::DirectiveKind::place: return place(stmt, frame);
    case directive::DirectiveKind::replicate: return replicate(stmt, frame);
    case directive::DirectiveKind::recompute: case directive::DirectiveKind::offload: case directive::DirectiveKind::freeze: return treat(stmt, frame);
    case directive::DirectiveKind::stream: return stream(stmt, frame);
    case directive::DirectiveKind::fuse: case directive::DirectiveKind::shard: evaluator_->set_failed();  // refused by the analysis
  }
}

void ScheduleBuilder::require(directive::Require require) { add(std::move(require)); }

void ScheduleBuilder::call(const sema::Function& function, const ast::CallExpr& expr, Frame& frame) {
  Frame callee = evaluator_->bind(function, expr, frame);
  if (evaluator_->failed()) return;
  parents_.push_back(scope_);
  scope_ = static_cast<std::uint32_t>(parents_.size() - 1);
  evaluator_->run(function, callee);
  scope_ = parents_[scope_];
}

std::int64_t ScheduleBuilder::number(const ast::Expr& expr, const directive::Number& number, Frame& frame) {
  const Value value = evaluator_->convert(evaluator_->eval(expr, frame), {sema::TypeKind::number}, expr.range, frame);
  return evaluator_->failed() ? number.least : allowed(value, expr, number, frame);
}

std::int64_t ScheduleBuilder::allowed(const Value& value, const ast::Expr& from, const directive::Number& number, const Frame& frame) {
  const std::int64_t amount = value.get<ByteCount>() ? value.get<ByteCount>()->bytes : evaluator_->to_int(value);
  if (number.allows(amount)) return amount;
  DiagnosticBuilder report = evaluator_->fail(number.code, from.range, frame, "{}", number.refusal(describe(value), amount < number.least));
  if (!number.hint.empty()) report.hint("{}", number.hint);
  return number.least;
}

directive::NamedExtent ScheduleBuilder::extent(const ast::Pair& pair, const directive::Number& allowed, Frame& frame) {
  const std::uint32_t value = count(*pair.value, allowed, frame);
  lacks_extents_ = lacks_extents_ || evaluator_->failed();
  return {evaluator_->context().symbol(pair.name.name), value, evaluator_->here(pair.range, frame)};
}

std::uint64_t ScheduleBuilder::Pieces::parts() const {
  std::uint64_t product = 1;
  for (const auto& [dim, into] : splits) product = std::min(product * into, kUncountedPieces);
  return product;
}

void ScheduleBuilder::Pieces::split(Symbol dim, std::uint64_t into) {
  const auto known = std::find_if(splits.begin(), splits.end(), [&](const auto& split) { return split.first == dim; });
  if (known == splits.end()) {
    splits.emplace_back(dim, into);
  } else {
    known->second = std::max(known->second, into);
  }
}

void ScheduleBuilder::take(Pieces pieces, const directive::NamedExtent& last) {
  const std::uint64_t parts = pieces.parts();
  if (pieces.stages * parts <= kMostPieces) {
    pieces_ = std::move(pieces);
    return;
  }
  lacks_extents_ = true;
  const std::string more = parts == kUncountedPieces ? "more than " : "";
  evaluator_->fail_at(Code::too_many_pieces, last.loc, "{} in {} are {} pieces of work; a program has at most {}", counted(pieces.stages, "stage"),
                      more + counted(parts, "part of the batch", "parts of the batch"), more + std::to_string(pieces.stages * parts), kMostPieces)
      .hint("make `{}` smaller: each piece is several operations, with their messages and buffers", evaluator_->context().text(last.name));
}

void ScheduleBuilder::partition(const ast::DirectiveStmt& stmt, Frame& frame) {
  directive::Partition partition;
  partition.loc = evaluator_->here(stmt.range, frame);
  partition.region = evaluator_->eval_selector(*stmt.region, frame);
  partition.into = extent(stmt.into.front(), directive::kStages, frame);
  if (evaluator_->failed()) return;
  Pieces pieces = pieces_;
  pieces.stages = std::max<std::uint64_t>(pieces.stages, partition.into.extent);
  take(std::move(pieces), partition.into);
  if (evaluator_->failed()) return;
  for (const ast::Pair& pair : stmt.settings) {
    if (pair.name.name != "sizes") continue;
    partition.sizes_loc = evaluator_->here(pair.value->range, frame);
    for (const Value& size : evaluator_->elements(evaluator_->eval(*pair.value, frame), pair.value->range, frame)) {
      partition.sizes.push_back(static_cast<std::uint32_t>(allowed(size, *pair.value, directive::kUnits, frame)));
      if (evaluator_->failed()) return;
    }
  }
  add(std::move(partition));
}

void ScheduleBuilder::split(const ast::DirectiveStmt& stmt, Frame& frame) {
  directive::Split split;
  split.loc = evaluator_->here(stmt.range, frame);
  split.dim = evaluator_->context().symbol(stmt.name.name);
  split.dim_loc = evaluator_->here(stmt.name.range, frame);
  for (const ast::Pair& pair : stmt.into) split.into.push_back(extent(pair, directive::kParts, frame));
  for (const ast::Target& target : stmt.in) split.targets.push_back(evaluator_->eval_target(target, frame));
  if (evaluator_->failed()) return;
  if (split.targets.empty()) {  // of all work
    std::uint64_t into = 1;
    for (const directive::NamedExtent& part : split.into) into = std::min(into * part.extent, kUncountedPieces);
    Pieces pieces = pieces_;
    pieces.split(split.dim, into);
    take(std::move(pieces), split.into.back());
  }
  add(std::move(split));
}

void ScheduleBuilder::place(const ast::DirectiveStmt& stmt, Frame& frame) {
  directive::Place place;
  place.loc = evaluator_->here(stmt.range, frame);
  for (const ast::Target& target : stmt.targets) place.targets.push_back(evaluator_->eval_target(target, frame));
  place.devices = evaluator_->eval_devices(*stmt.devices, frame);
  place.depth = depth(scope_);
  add(std::move(place));
}

void ScheduleBuilder::replicate(const ast::DirectiveStmt& stmt, Frame& frame) {
  directive::Replicate replicate;
  replicate.loc = evaluator_->here(stmt.range, frame);
  for (const ast::Target& target : stmt.targets) replicate.targets.push_back(evaluator_->eval_target(target, frame));
  for (const ast::Identifier& name : stmt.axes) {
    // An axis parameter of a schedule means the axis that was passed.
    const AxisValue* axis = name.binding == ast::kUnbound ? nullptr : frame.slots[name.binding].get<AxisValue>();
    if (!axis) return evaluator_->set_failed();
    const Symbol symbol = evaluator_->mesh->axes[axis->axis].name;
    if (std::find(replicate.axes.begin(), replicate.axes.end(), symbol) != replicate.axes.end()) {
      evaluator_->fail(Code::axis_named_twice, name.range, frame, "the axis `{}` is named twice here", evaluator_->context().text(symbol));
      return;
    }
    replicate.axes.push_back(symbol);
  }
  for (const ast::Pair& pair : stmt.settings) {
    if (pair.name.name == "reduce") {
      const auto* name = llvm::dyn_cast<ast::NameExpr>(pair.value);
      if (name != nullptr) replicate.reduce = directive::parse_reduce(name->name);
      replicate.reduce_loc = evaluator_->here(pair.range, frame);
    } else if (pair.name.name == "bucket") {
      replicate.bucket_bytes = number(*pair.value, directive::kBucket, frame);
    } else if (pair.name.name == "zero") {
      replicate.zero = count(*pair.value, directive::kZero, frame);
      replicate.zero_loc = evaluator_->here(pair.range, frame);
    } else if (pair.name.name == "prefetch") {
      replicate.prefetch = count(*pair.value, directive::kPrefetch, frame);
      replicate.prefetch_loc = evaluator_->here(pair.range, frame);
    }
    if (evaluator_->failed()) return;
  }
  add(std::move(replicate));
}

void ScheduleBuilder::treat(const ast::DirectiveStmt& stmt, Frame& frame) {
  std::vector<directive::Selector> targets;
  for (const ast::Target& target : stmt.targets) targets.push_back(evaluator_->eval_target(target, frame));
  const LocId loc = evaluator_->here(stmt.range, frame);
  if (stmt.directive == directive::DirectiveKind::recompute) return add(directive::Recompute{std::move(targets), loc});
  if (stmt.directive == directive::DirectiveKind::offload) {
    directive::Offload offload{std::move(targets), 1, directive::Offload::What::activations, loc};
    for (const ast::Pair& pair : stmt.settings) {
      const auto* word = llvm::dyn_cast<ast::NameExpr>(pair.value);
      if (pair.name.name == "what" && word != nullptr && word->name == "optimizer") offload.what = directive::Offload::What::optimizer;
      if (pair.name.name == "window") offload.window = count(*pair.value, directive::kWindow, frame);
    }
    return add(std::move(offload));
  }
  if (stmt.directive == directive::DirectiveKind::freeze) return add(directive::Freeze{std::move(targets), loc});
  evaluator_->set_failed();  // refused by the analysis
}

void ScheduleBuilder::stream(const ast::DirectiveStmt& stmt, Frame& frame) {
  directive::Stream stream;
  stream.loc = evaluator_->here(stmt.range, frame);
  stream.name = evaluator_->context().symbol(stmt.name.name);
  for (const ast::Target& target : stmt.targets) stream.targets.push_back(evaluator_->eval_target(target, frame));
  for (const ast::Pair& pair : stmt.settings) {
    if (pair.name.name == "window") {
      stream.window = count(*pair.value, directive::kWindow, frame);
      stream.window_loc = evaluator_->here(pair.range, frame);
    }
    if (pair.name.name == "priority") {
      const auto* name = llvm::dyn_cast<ast::NameExpr>(pair.value);
      if (name && name->name == "high") stream.priority = directive::Priority::high;
    }
  }
  add(std::move(stream));
}

void ScheduleBuilder::order(const ast::OrderStmt& stmt, Frame& frame) {
  orders_.push_back({&stmt, frame, entries_.size(), evaluator_->in_function()});
  entries_.push_back({directive::Order(), scope_, true});
}

}  // namespace piper::lower
