#include "frontend/lower/schedule_builder.h"

#include <algorithm>

#include "ir/diagnostics/counted.h"

namespace piper::lower {

using llvm::cast;

namespace {

constexpr std::int64_t kMost = 0x7FFFFFFF;  // of whatever is counted

}  // namespace

void ScheduleBuilder::directive(const ast::Stmt& stmt, Frame& frame) {
  switch (stmt.kind) {
    case ast::StmtKind::partition: return partition(cast<ast::PartitionStmt>(stmt), frame);
    case ast::StmtKind::split: return split(cast<ast::SplitStmt>(stmt), frame);
    case ast::StmtKind::place: return place(cast<ast::PlaceStmt>(stmt), frame);
    case ast::StmtKind::replicate: return replicate(cast<ast::ReplicateStmt>(stmt), frame);
    case ast::StmtKind::stream: return stream(cast<ast::StreamStmt>(stmt), frame);
    case ast::StmtKind::order: return order(cast<ast::OrderStmt>(stmt), frame);
    case ast::StmtKind::setting: return setting(cast<ast::SettingStmt>(stmt), frame);
    default: evaluator_->set_failed();  // refused by the analysis
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

std::uint32_t ScheduleBuilder::positive(const ast::Expr& expr, std::string_view what, Frame& frame) {
  const std::int64_t value = evaluator_->eval_int(expr, frame);
  return evaluator_->failed() ? 1 : positive(value, expr, what, frame);
}

std::uint32_t ScheduleBuilder::positive(std::int64_t value, const ast::Expr& from, std::string_view what, const Frame& frame) {
  if (value >= 1 && value <= kMost) return static_cast<std::uint32_t>(value);
  evaluator_->fail(Code::not_positive, from.range, frame, "{} is `{}`; it must be at {} {}", what, value, value < 1 ? "least" : "most", value < 1 ? 1 : kMost);
  return 1;
}

directive::NamedExtent ScheduleBuilder::extent(const ast::Pair& pair, std::string_view what, Frame& frame) {
  const std::uint32_t value = positive(*pair.value, what, frame);
  lacks_extents_ = lacks_extents_ || evaluator_->failed();
  return {evaluator_->context().symbol(pair.name.name), value, evaluator_->here(pair.range, frame)};
}

void ScheduleBuilder::partition(const ast::PartitionStmt& stmt, Frame& frame) {
  directive::Partition partition;
  partition.loc = evaluator_->here(stmt.range, frame);
  partition.region = evaluator_->eval_selector(*stmt.region, frame);
  partition.into = extent(stmt.into, "the number of stages", frame);
  for (const ast::Pair& pair : stmt.settings) {
    if (pair.name.name != "sizes") continue;
    partition.sizes_loc = evaluator_->here(pair.value->range, frame);
    for (const Value& size : evaluator_->elements(evaluator_->eval(*pair.value, frame), pair.value->range, frame)) {
      partition.sizes.push_back(positive(evaluator_->to_int(size), *pair.value, "the number of units of a stage of `sizes`", frame));
      if (evaluator_->failed()) return;
    }
    if (!evaluator_->failed() && partition.sizes.size() != partition.into.extent) {
      evaluator_->fail(Code::sizes_do_not_match, pair.value->range, frame, "`sizes` has {} for {}", counted(partition.sizes.size(), "entry", "entries"),
                       counted(partition.into.extent, "stage"));
    }
  }
  add(std::move(partition));
}

void ScheduleBuilder::split(const ast::SplitStmt& stmt, Frame& frame) {
  directive::Split split;
  split.loc = evaluator_->here(stmt.range, frame);
  split.dim = evaluator_->context().symbol(stmt.dimension.name);
  split.dim_loc = evaluator_->here(stmt.dimension.range, frame);
  for (const ast::Pair& pair : stmt.into) split.into.push_back(extent(pair, "the number of parts", frame));
  for (const ast::Target& target : stmt.targets) split.targets.push_back(evaluator_->eval_target(target, frame));
  add(std::move(split));
}

void ScheduleBuilder::place(const ast::PlaceStmt& stmt, Frame& frame) {
  directive::Place place;
  place.loc = evaluator_->here(stmt.range, frame);
  for (const ast::Target& target : stmt.targets) place.targets.push_back(evaluator_->eval_target(target, frame));
  place.devices = evaluator_->eval_devices(*stmt.devices, frame);
  add(std::move(place));
}

void ScheduleBuilder::replicate(const ast::ReplicateStmt& stmt, Frame& frame) {
  directive::Replicate replicate;
  replicate.loc = evaluator_->here(stmt.range, frame);
  for (const ast::Target& target : stmt.targets) replicate.targets.push_back(evaluator_->eval_target(target, frame));
  for (const ast::Identifier& name : stmt.axes) {
    // An axis parameter of a schedule stands for the axis it was given.
    const AxisValue* axis = name.binding == ast::kUnbound ? nullptr : frame.slots[name.binding].get<AxisValue>();
    if (!axis) return evaluator_->set_failed();
    const Symbol symbol = evaluator_->mesh->axes[axis->axis].name;
    if (std::find(replicate.axes.begin(), replicate.axes.end(), symbol) != replicate.axes.end()) {
      evaluator_->fail(Code::axis_named_twice, name.range, frame, "the axis `{}` stands twice here", evaluator_->context().text(symbol));
      return;
    }
    replicate.axes.push_back(symbol);
  }
  for (const ast::Pair& pair : stmt.settings) {
    const Value value = evaluator_->eval(*pair.value, frame);
    if (evaluator_->failed()) return;
    const double number = evaluator_->to_float(value);
    if (pair.name.name == "bucket") {
      if (number < 1) {
        evaluator_->fail(Code::not_positive, pair.value->range, frame, "the size of a bucket is `{}`; it must be positive", describe(value))
            .hint("write `bucket: 25MiB`");
        return;
      }
      replicate.bucket_bytes = static_cast<std::int64_t>(number);
    } else if (pair.name.name == "zero") {
      // The analysis refuses 1 to 3 where they stand as numbers.
      if (number < 0 || number > 3) {
        evaluator_->fail(Code::setting_out_of_range, pair.value->range, frame, "`zero` is `{}`; it must be 0, 1, 2 or 3", describe(value));
        return;
      }
      if (number > 0) {
        evaluator_->fail(Code::not_available, pair.range, frame, "sharded state (`zero` above 0) is not available in this version")
            .hint("write `zero: 0` or leave it out: every replica holds the whole state");
        return;
      }
    } else if (pair.name.name == "prefetch") {
      replicate.prefetch = static_cast<std::uint32_t>(number);
    }
  }
  add(std::move(replicate));
}

void ScheduleBuilder::stream(const ast::StreamStmt& stmt, Frame& frame) {
  directive::Stream stream;
  stream.loc = evaluator_->here(stmt.range, frame);
  stream.name = evaluator_->context().symbol(stmt.name.name);
  for (const ast::Target& target : stmt.targets) stream.targets.push_back(evaluator_->eval_target(target, frame));
  for (const ast::Pair& pair : stmt.settings) {
    if (pair.name.name == "window") {
      stream.window = positive(*pair.value, "the window", frame);
      stream.window_loc = evaluator_->here(pair.range, frame);
    }
    if (pair.name.name == "priority") {
      const auto* name = llvm::dyn_cast<ast::NameExpr>(pair.value);
      stream.high_priority = name && name->name == "high";
    }
  }
  add(std::move(stream));
}

void ScheduleBuilder::order(const ast::OrderStmt& stmt, Frame& frame) {
  // An order walks through what the cuts make: without their extents its mistakes would be theirs.
  if (lacks_extents_) return evaluator_->set_failed();
  OrderValue value;
  if (stmt.value) {
    Value order = evaluator_->eval(*stmt.value, frame);
    if (evaluator_->failed()) return;
    value = unshare<OrderValue>(std::move(order));
  } else {
    OrderBuilder builder(*evaluator_);
    OrderBuilder* const outer = std::exchange(evaluator_->order, &builder);
    evaluator_->execute(*stmt.body, frame);
    evaluator_->order = outer;
    if (evaluator_->failed()) return;
    value = builder.take();
  }
  // A block is shown by its first word.
  const std::uint32_t end = stmt.value ? stmt.range.end : stmt.range.begin + static_cast<std::uint32_t>(std::string_view("order").size());
  value.order.loc = evaluator_->here({stmt.range.file, stmt.range.begin, end}, frame);
  if (!value.pending.empty()) {
    const PendingGradient& first = value.pending.front();
    std::string text;
    for (std::uint32_t c = 0; c < first.op.num_coordinates; ++c) {
      const directive::OrderCoordinate& at = value.order.coordinates[first.op.first_coordinate + c];
      text += directive::coordinate_text(evaluator_->context().text(at.name), at.rest, c == 0);
      if (!at.all) text += "[" + std::to_string(at.index) + "]";
    }
    evaluator_
        ->fail_at(Code::weight_gradients_left, first.op.loc, "{} weight gradient{} still pending when the order ends, the oldest is `BW {}`",
                value.pending.size(), value.pending.size() == 1 ? " is" : "s are", text)
        .related(value.order.loc, "the order is applied here")
        .hint("end the rank with `repeat left(BW) { BW }`");
    note_missing(stmt);
    leave_out_ranks_of(value, 0);
    evaluator_->resume();
  }
  add(std::move(value.order));
}

}  // namespace piper::lower
