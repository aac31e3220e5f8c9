// Recovery after a failure: the statement that is left out, the names that lose their values, the
// diagnostics that are reported or only counted.

#include <algorithm>

#include "frontend/lower/schedule/schedule_builder.h"
#include "ir/diagnostics/forward.h"

namespace piper::lower {

using llvm::cast;

namespace {

constexpr std::uint64_t kStepsOfFailure = 5000;

/// The deepest call of a location and the place in it: the same in each iteration of a loop.
SourceRange place_of(const LocationTable& locations, LocId loc) {
  return loc.valid() ? locations.range(loc) : SourceRange();
}

/// Follows from how often a cursor was read, so ranks that run one body disagree in their numbers
/// about one mistake.
bool counts_operations(Code code) {
  return code == Code::cursor_exhausted || code == Code::cursor_not_used_up ||
         code == Code::no_pending_gradient || code == Code::weight_gradients_left;
}

/// Calls `give` with the slot of every name of the function's frame that running `stmt` gives a
/// value.
template <typename Give>
void names_given(const ast::Stmt& stmt, const Give& give) {
  const auto block = [&](const ast::Block& body) {
    for (const ast::Stmt* inner : body.statements) names_given(*inner, give);
  };
  switch (stmt.kind) {
    case ast::StmtKind::let:
      for (const ast::Identifier& name : cast<ast::LetStmt>(stmt).names) give(name);
      break;
    case ast::StmtKind::var: give(cast<ast::VarStmt>(stmt).name); break;
    case ast::StmtKind::assign: give(cast<ast::AssignStmt>(stmt).name); break;
    case ast::StmtKind::for_loop: block(*cast<ast::ForStmt>(stmt).body); break;
    case ast::StmtKind::repeat: block(*cast<ast::RepeatStmt>(stmt).body); break;
    case ast::StmtKind::region: block(*cast<ast::RegionStmt>(stmt).body); break;
    case ast::StmtKind::conditional: {
      const auto& conditional = cast<ast::IfStmt>(stmt);
      for (const ast::Branch& branch : conditional.branches) block(*branch.body);
      if (conditional.otherwise) block(*conditional.otherwise);
      break;
    }
    default: break;
  }
}

}  // namespace

bool may_return(const ast::Block& body) {
  return std::any_of(body.statements.begin(), body.statements.end(),
                     [](const ast::Stmt* stmt) { return may_return(*stmt); });
}

bool may_return(const ast::Stmt& stmt) {
  switch (stmt.kind) {
    case ast::StmtKind::return_value: return true;
    case ast::StmtKind::for_loop: return may_return(*cast<ast::ForStmt>(stmt).body);
    case ast::StmtKind::repeat: return may_return(*cast<ast::RepeatStmt>(stmt).body);
    case ast::StmtKind::region: return may_return(*cast<ast::RegionStmt>(stmt).body);
    case ast::StmtKind::conditional: {
      const auto& conditional = cast<ast::IfStmt>(stmt);
      for (const ast::Branch& branch : conditional.branches) {
        if (may_return(*branch.body)) return true;
      }
      return conditional.otherwise && may_return(*conditional.otherwise);
    }
    default: return false;
  }
}

void ScheduleBuilder::note_missing(const ast::Stmt& stmt) {
  const auto block = [&](const ast::Block& body) {
    for (const ast::Stmt* inner : body.statements) note_missing(*inner);
  };
  if (stmt.damaged) {  // it may have been anything, and more than one
    lacks_places_ = miswritten_setting_ = true;
    return;
  }
  switch (stmt.kind) {
    case ast::StmtKind::expr:  // a schedule
      lacks_places_ = true;
      break;
    case ast::StmtKind::directive: {  // one that makes parts or places them
      const directive::Clauses clauses = cast<ast::DirectiveStmt>(stmt).row().clauses;
      lacks_places_ = lacks_places_ || clauses.needs(directive::Clause::into) ||
                      clauses.needs(directive::Clause::on);
      break;
    }
    case ast::StmtKind::assign:
      miswritten_setting_ =
          miswritten_setting_ || cast<ast::AssignStmt>(stmt).name.binding == ast::kUnbound;
      break;
    case ast::StmtKind::setting: {
      const ast::Identifier& written = cast<ast::SettingStmt>(stmt).setting.name;
      miswritten_setting_ = miswritten_setting_ || written.binding == ast::kUnbound;
      failed_settings_.push_back(written.name);
      break;
    }
    case ast::StmtKind::for_loop: block(*cast<ast::ForStmt>(stmt).body); break;
    case ast::StmtKind::repeat: block(*cast<ast::RepeatStmt>(stmt).body); break;
    case ast::StmtKind::conditional: {
      const auto& conditional = cast<ast::IfStmt>(stmt);
      for (const ast::Branch& branch : conditional.branches) block(*branch.body);
      if (conditional.otherwise) block(*conditional.otherwise);
      break;
    }
    case ast::StmtKind::error:
    case ast::StmtKind::let:
    case ast::StmtKind::var:
    case ast::StmtKind::return_value:
    case ast::StmtKind::require:
    case ast::StmtKind::input:
    case ast::StmtKind::weight:
    case ast::StmtKind::region:
    case ast::StmtKind::loss:
    case ast::StmtKind::order:
    case ast::StmtKind::rank:
    case ast::StmtKind::cursor:
    case ast::StmtKind::at:
    case ast::StmtKind::step:
      break;  // declares names, whose users are left out too, or has no effect on others
  }
}

bool ScheduleBuilder::setting_failed(std::string_view name) const {
  const auto among = [&](const std::vector<std::string_view>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  return among(failed_settings_) || (miswritten_setting_ && !among(given_settings_));
}

bool Evaluator::leave_out(const ast::Stmt& stmt, Frame& frame) {
  if (!skips_statements || abandons_ || !resume()) return false;
  // A requirement of a schedule or model applies to all of it: if it fails, the rest is not
  // checked.
  if (stmt.kind == ast::StmtKind::require && functions_ > 0) {
    abandons_ = true;
    failed_requirement_ = &stmt;
  }
  const bool returns = stmt.kind != ast::StmtKind::return_value && may_return(stmt);
  if (abandons_ || returns) {
    set_failed();
    return false;
  }
  names_given(stmt, [&](const ast::Identifier& name) {
    // A name that the analysis did not find is given nothing.
    if (name.binding != ast::kUnbound) frame.slots[name.binding] = Value();
  });
  if (schedule != nullptr) schedule->note_missing(stmt);
  return true;
}

bool Evaluator::resume() {
  if (exhausted_) return false;
  failed_ = false;
  return true;
}

DiagnosticSink& Evaluator::sink_for(Code code, LocId loc) {
  set_failed();
  exhausted_ = exhausted_ || code == Code::evaluation_too_long || code == Code::calls_too_deep;
  // A failure costs as much time as many steps, and a loop may fail each time it comes by.
  steps_ += std::min(kStepsOfFailure, kMaxSteps - steps_);
  exhausted_ = exhausted_ || steps_ == kMaxSteps;
  const bool cursors = counts_operations(code);
  const bool fresh = !(cursors && cursors_reported) &&
                     reported_.insert({code, place_of(context_->locations, loc)}).second;
  if (fresh && reported_.size() <= kShownErrors) return *sink_;
  if (fresh) {
    ++not_shown_;
    last_not_shown_ = loc;
  }
  unread_.emplace(context_->locations);
  return *unread_;
}

bool Evaluator::first_warning(Code code, LocId loc) {
  return warned_.insert({code, context_->locations.primary(loc)}).second;
}

void Evaluator::finish_reports() {
  report_not_shown(*sink_, last_not_shown_, not_shown_, "train or schedule");
}

}  // namespace piper::lower
