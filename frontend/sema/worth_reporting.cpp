// Diagnostics of the analysis for a file with syntax errors, or that uses a missing file. Those
// errors are reported; further errors only if they do not look like consequences.

#include <algorithm>

#include "frontend/sema/analyser.h"
#include "ir/diagnostics/forward.h"

namespace piper::sema {

namespace {

/// The first item that begins after `at`, as a position among the items.
std::size_t item_behind(const ast::Module& module, std::uint32_t at) {
  const auto behind = std::upper_bound(
      module.items.begin(), module.items.end(), at,
      [](std::uint32_t offset, const ast::Item* item) { return offset < item->range.begin; });
  return static_cast<std::size_t>(behind - module.items.begin());
}

/// The beginning of the item after `at`, or one past the end of the text.
std::uint32_t next_item(const ast::Module& module, std::uint32_t at) {
  const std::size_t behind = item_behind(module, at);
  return behind < module.items.size() ? module.items[behind]->range.begin : module.range.end + 1;
}

/// The statements or lines in braces; null: it has none.
const SourceRange* body_of(const ast::Item& item) {
  const ast::Block* block = nullptr;
  if (const auto* function = llvm::dyn_cast<ast::FunctionItem>(&item)) block = function->body;
  if (const auto* train = llvm::dyn_cast<ast::TrainItem>(&item)) block = train->body;
  if (const auto* machine = llvm::dyn_cast<ast::MachineItem>(&item)) block = machine->body;
  if (const auto* names = llvm::dyn_cast<ast::NamesItem>(&item)) return &names->body;
  return block != nullptr ? &block->range : nullptr;
}

/// Whether the code is about a missing declaration or use, which may be in the text that did not
/// parse.
bool speaks_of_others(Code code) {
  switch (code) {
    case Code::unknown_name:
    case Code::repeated_local:
    case Code::used_before_declaration:
    case Code::unknown_dimension:
    case Code::missing_return:
    case Code::unexpected_return:
    case Code::not_a_variable:
    case Code::unused_value:
    case Code::unused_local:
    case Code::unreachable_code:
    case Code::misplaced_statement:
    case Code::train_without_model: return true;
    default: return false;
  }
}

}  // namespace

void Analyser::note_damage() {
  for (const auto& loaded : program_.modules) {
    const ast::Module& module = loaded->syntax;
    if (module.faults.empty()) continue;
    damage_.emplace(module.file.value(), &module);
    bool missing =
        module.brackets_differ ||
        (!module.items.empty() && module.faults.front() < module.items.front()->range.begin);
    for (std::size_t i = 0; i < module.items.size(); ++i) {
      const ast::Item& item = *module.items[i];
      const SourceRange* const body = body_of(item);
      const std::uint32_t next =
          i + 1 < module.items.size() ? module.items[i + 1]->range.begin : module.range.end + 1;
      // Text around a body that did not parse may have had declarations; an item without a body is
      // a declaration itself.
      if (body == nullptr) missing = missing || damaged(module.file, item.range.begin, next);
      if (body != nullptr)
        missing = missing || damaged(module.file, item.range.begin, body->begin) ||
                  damaged(module.file, body->end, next);
    }
    declarations_missing_ = declarations_missing_ || missing || module.items.empty();
  }
}

bool Analyser::damaged(FileId file, std::uint32_t begin, std::uint32_t end) const {
  const auto found = damage_.find(file.value());
  if (found == damage_.end()) return false;
  const std::vector<std::uint32_t>& faults = found->second->faults;
  const auto first = std::lower_bound(faults.begin(), faults.end(), begin);
  return first != faults.end() && *first < end;
}

bool Analyser::header_damaged(const ast::FunctionItem& item) const {
  return damaged(item.range.file, item.range.begin,
                 item.body != nullptr ? item.body->range.begin + 1 : item.range.end + 1);
}

bool Analyser::item_damaged(const ast::Module& module, const ast::Item& item) const {
  return module.brackets_differ ||
         damaged(module.file, item.range.begin, next_item(module, item.range.begin));
}

bool Analyser::statements_damaged(const ast::Module& module, const ast::Item& item) const {
  const std::uint32_t end = next_item(module, item.range.begin);
  return !module.brackets_differ &&
         std::all_of(module.faults.begin(), module.faults.end(), [&](std::uint32_t fault) {
           return fault < item.range.begin || fault >= end ||
                  std::any_of(
                      damaged_statements_.begin(), damaged_statements_.end(),
                      [&](SourceRange statement) {
                        return statement.file == module.file && statement.begin <= fault &&
                               fault < statement.end;
                      });
         });
}

bool Analyser::shows_no_more(FileId file) const {
  const auto found = reported_.find(file);
  return found != reported_.end() && found->second.errors >= shown_errors_;
}

bool Analyser::shows(Code code, SourceRange at) {
  if (severity_of(code) != Severity::error) return true;
  const bool shown = !shows_no_more(at.file);
  Reported& reported = reported_[at.file];
  ++reported.errors;
  if (!shown) reported.last = at;
  return shown;
}

void Analyser::report_how_many_more() {
  for (const auto& [file, reported] : reported_)
    report_not_shown(all_, reported.last,
                     reported.errors - std::min(reported.errors, shown_errors_), "file");
}

bool Analyser::worth_reporting(Code code, SourceRange at) const {
  // The file that was not found may declare the name.
  const auto lacks = [&](const auto& module) {
    return module->lacks_uses && module->syntax.file == at.file;
  };
  if (code == Code::unknown_name &&
      std::any_of(program_.modules.begin(), program_.modules.end(), lacks))
    return false;
  if (damage_.empty()) return true;
  if (in_damaged_statement_) return false;
  if (declarations_missing_ &&
      (code == Code::unknown_name || code == Code::unknown_type || code == Code::not_callable))
    return false;
  const auto found = damage_.find(at.file.value());
  if (found == damage_.end()) return true;
  const ast::Module& module = *found->second;
  if (module.brackets_differ && (speaks_of_others(code) || code == Code::misplaced_call))
    return false;
  const std::size_t behind = item_behind(module, at.begin);
  const std::uint32_t end = next_item(module, at.begin);
  const std::uint32_t begin = behind > 0 ? module.items[behind - 1]->range.begin : 0;
  if (!damaged(at.file, begin, end)) return true;
  const SourceRange* const body = behind > 0 ? body_of(*module.items[behind - 1]) : nullptr;
  if (body == nullptr || damaged(at.file, begin, body->begin + 1)) return false;
  const bool after = damaged(at.file, begin, at.end);
  if (speaks_of_others(code))
    return !after && code != Code::missing_return && code != Code::unused_local;
  return !(after && module.brackets_differ);
}

}  // namespace piper::sema
