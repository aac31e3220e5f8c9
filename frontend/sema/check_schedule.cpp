// Directives, orders, steps, and the settings of a train.

#include <algorithm>

#include "frontend/sema/analyser.h"
#include "ir/diagnostics/suggestion.h"

namespace piper::sema {

namespace {

SourceRange first_word(SourceRange range, std::string_view word) {
  return {range.file, range.begin, range.begin + static_cast<std::uint32_t>(word.size())};
}

/// The word that `name` abbreviates; empty if several begin with it.
std::string_view cut_short(std::string_view name, const std::vector<std::string_view>& known) {
  const auto begins = [&](std::string_view each) { return each.starts_with(name); };
  return std::count_if(known.begin(), known.end(), begins) == 1
             ? *std::find_if(known.begin(), known.end(), begins)
             : std::string_view();
}

/// The name that was meant, or else all that there are.
void suggest_one_of(DiagnosticBuilder& diagnostic, std::string_view name,
                    const std::vector<std::string_view>& known) {
  const std::string_view longer = cut_short(name, known);
  if (const std::string_view best = !longer.empty() ? longer : nearest_name(name, known);
      !best.empty()) {
    diagnostic.did_you_mean(best, name);
    return;
  }
  std::string all;
  for (const std::string_view each : known)
    all += (all.empty() ? "`" : ", `") + std::string(each) + "`";
  diagnostic.hint("it has {}", all);
}

Type type_of_setting(directive::SettingType type) {
  switch (type) {
    case directive::SettingType::count: return kInt;
    case directive::SettingType::bytes: return kBytes;
    case directive::SettingType::counts: return kInts;
    case directive::SettingType::factor: return kFloat;
    case directive::SettingType::word: return {TypeKind::dimension};
  }
  return kError;
}

}  // namespace

void Analyser::directive(ast::Stmt& stmt) {
  switch (stmt.kind) {
    case ast::StmtKind::directive: line(llvm::cast<ast::DirectiveStmt>(stmt)); break;
    case ast::StmtKind::order: order(llvm::cast<ast::OrderStmt>(stmt)); break;
    case ast::StmtKind::rank: rank(llvm::cast<ast::RankStmt>(stmt)); break;
    case ast::StmtKind::cursor: cursor(llvm::cast<ast::CursorStmt>(stmt)); break;
    case ast::StmtKind::at: {
      const auto& node = llvm::cast<ast::AtStmt>(stmt);
      expect(*node.slot, kInt, {.what = "`at`"});
      step(node.step);
      break;
    }
    case ast::StmtKind::step: step(llvm::cast<ast::StepStmt>(stmt).step); break;
    case ast::StmtKind::error:
    case ast::StmtKind::let:
    case ast::StmtKind::var:
    case ast::StmtKind::assign:
    case ast::StmtKind::expr:
    case ast::StmtKind::for_loop:
    case ast::StmtKind::repeat:
    case ast::StmtKind::conditional:
    case ast::StmtKind::return_value:
    case ast::StmtKind::require:
    case ast::StmtKind::setting:
    case ast::StmtKind::input:
    case ast::StmtKind::weight:
    case ast::StmtKind::region:
    case ast::StmtKind::loss: break;  // those of every body
  }
}

namespace {

/// The number of devices of a mesh with literal sizes; otherwise an example of a number.
std::int64_t devices_of(const ast::MeshItem* mesh) {
  constexpr std::int64_t kExample = 8, kMax = 1 << 20;
  std::int64_t product = 1;
  for (const ast::Pair& axis : mesh != nullptr ? mesh->axes : std::span<const ast::Pair>()) {
    const auto* size = llvm::dyn_cast<ast::NumberExpr>(axis.value);
    if (size == nullptr || !size->is_integer || size->integer < 1 || size->integer > kMax ||
        product > kMax)
      return kExample;
    product *= size->integer;
  }
  return product > 1 ? product : kExample;
}

}  // namespace

bool Analyser::report_several_axes(ast::Expr& devices) {
  const ast::Expr* first = &devices;
  if (auto* both = llvm::dyn_cast<ast::BinaryExpr>(&devices);
      both != nullptr && both->op == ast::BinaryOp::logical_and)
    first = both->left;
  if (auto* selector = llvm::dyn_cast<ast::SelectorExpr>(&devices)) first = selector->head;
  if (auto* outer = llvm::dyn_cast<ast::IndexExpr>(&devices)) first = outer->base;
  const auto* at = llvm::dyn_cast<ast::IndexExpr>(first);
  const auto* axis = at != nullptr ? llvm::dyn_cast<ast::NameExpr>(at->base) : nullptr;
  Local* local = axis != nullptr && first != &devices ? find_local(axis->name) : nullptr;
  if (local == nullptr || local->type != kAxis) return false;
  local->used = true;
  const Declaration self = declaration_of(body_.node);
  const MeshId on = self.kind == DeclKind::train     ? program_.trains[self.index].mesh
                    : self.kind == DeclKind::machine ? program_.machines[self.index].mesh
                                                     : MeshId();
  const ast::MeshItem* mesh = on.valid() ? program_.meshes[on.index()].syntax : nullptr;
  const std::int64_t devices_in_all = devices_of(mesh);
  sink_.report(Code::not_indexable, devices.range, "a device set is at a coordinate of one axis")
      .hint(
          "to name a single device, run on a view of the mesh with one axis, `mesh line = {} as (device: {})`, and write `device[{}]`: devices are counted row by row",
          mesh != nullptr ? mesh->name.name : "cluster", devices_in_all, devices_in_all - 1);
  return true;
}

void Analyser::subject(const ast::DirectiveStmt& stmt) {
  switch (stmt.row().subject) {
    case directive::Subject::region: {
      const Type type = selector(*stmt.region);
      if (!type.is_error() && type != kSelector)
        sink_.report(Code::not_a_selector, stmt.region->range, "this is {}, not a region",
                     with_article(type));
      break;
    }
    case directive::Subject::dimension:
    case directive::Subject::named: bind_label(stmt.name); break;
    case directive::Subject::targets: break;
  }
  for (const ast::Target& item : stmt.targets) target(item);
}

void Analyser::extents(std::span<const ast::Pair> into) {
  for (const ast::Pair& pair : into) {
    bind_label(pair.name);
    expect(*pair.value, kInt, {.what = "the number of parts"});
  }
  for (std::size_t i = 0; i < into.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if (into[i].name.missing() || into[i].name.name != into[j].name.name) continue;
      sink_
          .report(Code::repeated_dimension, into[i].name.range, "`{}` is made twice",
                  into[i].name.name)
          .related(into[j].name.range, "the first one is here");
    }
  }
}

void Analyser::line(const ast::DirectiveStmt& stmt) {
  subject(stmt);
  extents(stmt.into);
  for (const ast::Target& item : stmt.in) target(item);
  if (stmt.devices != nullptr && !report_several_axes(*stmt.devices))
    expect(*stmt.devices, kDevices, {.what = "`on`"});
  for (const ast::Identifier& axis : stmt.axes) use_local(axis, kAxis, "axis");
  for (const ast::Identifier& dim : stmt.dims) bind_label(dim);
  const directive::DirectiveRow& row = stmt.row();
  if (!row.works()) {
    sink_
        .report(Code::not_available, first_word(stmt.range, row.keyword),
                "`{}` is not available in this version", row.keyword)
        .hint("{}", row.instead);
    return;
  }
  std::vector<SettingRow> rows;
  for (const directive::SettingRow& setting : directive::settings_of(row.kind))
    rows.push_back({setting.name, type_of_setting(setting.type)});
  settings(stmt.settings, rows, row.keyword);
  for (const directive::SettingRow& setting : directive::settings_of(row.kind)) {
    if (setting.type == directive::SettingType::word) word_of(stmt.settings, setting);
  }
}

void Analyser::word_of(std::span<const ast::Pair> pairs, const directive::SettingRow& setting) {
  const std::span<const std::string_view> words = directive::words_of(setting);
  for (const ast::Pair& pair : pairs) {
    if (pair.name.name != setting.name || llvm::isa<ast::ErrorExpr>(pair.value)) continue;
    const auto* word = llvm::dyn_cast<ast::NameExpr>(pair.value);
    if (word != nullptr && std::find(words.begin(), words.end(), word->name) != words.end())
      continue;
    sink_.report(Code::unknown_setting, pair.value->range, "{}", setting.refusal);
  }
}

void Analyser::settings(std::span<const ast::Pair> pairs, std::span<const SettingRow> rows,
                        std::string_view owner) {
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const ast::Pair& pair = pairs[i];
    for (std::size_t j = 0; j < i; ++j) {
      if (pair.name.missing() || pair.name.name != pairs[j].name.name) continue;
      sink_.report(Code::repeated_setting, pair.name.range, "`{}` is set twice", pair.name.name)
          .related(pairs[j].range, "the first one is here");
    }
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const SettingRow& known) {
      return known.name == pair.name.name;
    });
    if (row == rows.end()) {
      if (pair.name.missing()) continue;
      std::vector<std::string_view> names;
      for (const SettingRow& known : rows) names.push_back(known.name);
      auto diagnostic = sink_.report(Code::unknown_setting, pair.name.range,
                                     "`{}` has no setting `{}`", owner, pair.name.name);
      if (rows.empty()) {
        diagnostic.hint("it has none: leave out `with` and its settings");
      } else {
        suggest_one_of(diagnostic, pair.name.name, names);
      }
      // A lone name may be a word of the setting that was meant.
      if (!llvm::isa<ast::NameExpr>(pair.value)) infer(*pair.value);
      continue;
    }
    bind_label(pair.name);
    if (row->type.is(TypeKind::dimension)) {
      if (llvm::isa<ast::NameExpr>(pair.value)) infer(*pair.value, row->type);
      continue;
    }
    if (row->type.is(TypeKind::norm_test)) {
      norm_test(*pair.value);
      continue;
    }
    const std::string what = "`" + std::string(row->name) + "`";
    expect(*pair.value, row->type, {.what = what});
  }
}

void Analyser::norm_test(ast::Expr& expr) {
  if (llvm::isa<ast::ErrorExpr>(&expr)) return;
  auto* const test = llvm::dyn_cast<ast::BinaryExpr>(&expr);
  auto* const norm = test != nullptr ? llvm::dyn_cast<ast::NameExpr>(test->left) : nullptr;
  if (norm == nullptr || norm->name != "norm" || test->op != ast::BinaryOp::greater) {
    sink_.report(Code::unknown_setting, expr.range, "a step is skipped by its gradient norm")
        .hint("write `skip_step: norm > 10`");
    return;
  }
  infer(*norm, {TypeKind::dimension});
  expect(*test->right, kFloat, {.what = "the norm"});
}

std::span<const Analyser::SettingRow> Analyser::train_settings() {
  static constexpr SettingRow kRows[] = {
      {"checkpoint", {TypeKind::every}},
      {"data", {TypeKind::data}},
      {"device", {TypeKind::platform}},
      {"dtype", {TypeKind::dtype}},
      {"ema", kFloat},
      {"evaluate", {TypeKind::every}},
      {"held_out", {TypeKind::data}},
      {"init", {TypeKind::weights}},
      {"optim", {TypeKind::optimizer}},
      {"seed", kInt},
      {"skip_step", {TypeKind::norm_test}},
      {"steps", kInt},
  };
  static_assert(std::ranges::equal(kRows, ast::kTrainSettings, {}, &SettingRow::name));
  return kRows;
}

void Analyser::train_setting(const ast::SettingStmt& stmt) {
  settings({&stmt.setting, 1}, train_settings(), "train");
  is_new_setting(stmt, "train");
}

bool Analyser::is_new_setting(const ast::SettingStmt& stmt, std::string_view owner) {
  if (stmt.setting.name.missing()) return false;
  if (body_.depth > 1) {
    sink_
        .report(Code::misplaced_statement, stmt.setting.name.range,
                "the setting `{}` is inside a block", stmt.setting.name.name)
        .hint("it belongs directly in the `{}`; its value may be `if ... then ... else ...`",
              owner);
    return false;
  }
  for (const auto& [name, range] : settings_seen_) {
    if (name != stmt.setting.name.name) continue;
    sink_.report(Code::repeated_setting, stmt.setting.name.range, "`{}` is set twice", name)
        .related(range, "the first one is here");
    return false;
  }
  settings_seen_.emplace_back(stmt.setting.name.name, stmt.range);
  return true;
}

void Analyser::machine_line(const ast::SettingStmt& stmt) {
  const ast::Identifier& name = stmt.setting.name;
  bind_label(name);
  const Type type = infer(*stmt.setting.value);
  if (!is_new_setting(stmt, "machine") || type.is_error()) return;
  if (type.is(TypeKind::device)) return;
  if (!type.is(TypeKind::link)) {
    sink_
        .report(Code::bad_machine_line, stmt.setting.value->range,
                "this is {}; a line of a machine is a `device(...)` or a `link(...)`",
                with_article(type))
        .hint(
            "write `{}: device(memory: 80GiB, speed: 1.0)`, or `AXIS: link(latency: 5us, bandwidth: 50GiB)`",
            name.name);
    return;
  }
  const ast::MeshItem& mesh =
      *program_.meshes[program_.machines[declaration_of(body_.node).index].mesh.index()].syntax;
  std::vector<std::string_view> axes;
  for (const ast::Pair& axis : mesh.axes) axes.push_back(axis.name.name);
  if (std::find(axes.begin(), axes.end(), name.name) != axes.end()) return;
  auto diagnostic = sink_.report(Code::link_without_axis, name.range,
                                 "the mesh `{}` has no axis `{}`; a link is one of an axis",
                                 mesh.name.name, name.name);
  diagnostic.related(mesh.name.range, "`{}` is declared here", mesh.name.name);
  suggest_one_of(diagnostic, name.name, axes);
}

void Analyser::order(const ast::OrderStmt& stmt) {
  if (stmt.value != nullptr) expect(*stmt.value, kOrder, {.what = "`order`"});
  if (stmt.body == nullptr) return;
  const Body outer = body_;
  body_.sort = BodySort::order;
  body_.own_from = locals_.size();
  body_.function = nullptr;
  block(*stmt.body);
  const std::uint32_t next_slot = body_.next_slot;
  body_ = outer;
  body_.next_slot = next_slot;
}

void Analyser::rank(const ast::RankStmt& stmt) {
  if (!body_.first_rank.valid()) body_.first_rank = first_word(stmt.range, "rank");
  const Body outer = body_;
  const std::size_t before = locals_.size();
  std::vector<Type> axes;
  for (const ast::Binding& binding : stmt.bindings) {
    // `p[0..2]`, `p[0, 3]`: some coordinates of an axis.
    auto* some = llvm::dyn_cast<ast::IndexExpr>(binding.values);
    const Type type = infer(*binding.values, some != nullptr ? kCoordinates : kAxis);
    if (some == nullptr || type != kDevices)
      report_mismatch(*binding.values, type, kAxis, {.what = "`rank ... in`"});
  }
  for (const ast::Binding& binding : stmt.bindings)
    declare_local(binding.name, kInt, LocalKind::loop);
  body_.sort = BodySort::steps;
  body_.own_from = before;
  body_.function = nullptr;
  block(*stmt.body);
  pop_locals(before);
  const std::uint32_t next_slot = body_.next_slot;
  body_ = outer;
  body_.next_slot = next_slot;
}

void Analyser::cursor(const ast::CursorStmt& stmt) {
  const auto sequence = [&](ast::Expr& expr) {
    const Type type = selector(expr);
    if (type.is_error() || type.kind == TypeKind::selector) return;
    if (type == kCursor) {
      sink_.report(Code::cursor_is_no_value, expr.range,
                   "a cursor is made from selectors, not from another cursor");
    } else if (type != Type{TypeKind::any, true}) {
      sink_.report(Code::not_a_selector, expr.range, "this is {}; a cursor walks through selectors",
                   with_article(type));
    }
  };
  sequence(*stmt.forward);
  if (stmt.backward != nullptr) sequence(*stmt.backward);
  declare_local(stmt.name, kCursor, LocalKind::cursor);
}

void Analyser::step(const ast::Step& step) {
  for (const ast::StepMember& member : step.members) {
    if (member.op != nullptr) operation(*member.op);
    if (member.block != nullptr) block(*member.block);
  }
}

}  // namespace piper::sema
