#pragma once
// The parts of candidates: the words and names that fit a type at one place.

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "frontend/lsp/builtin_meanings.h"
#include "frontend/lsp/candidates.h"
#include "frontend/lsp/describe.h"
#include "frontend/lsp/names.h"

namespace piper::lsp {

/// Whether a value of a type may be used where another type is expected; one of an unknown type may
/// almost everywhere.
bool fits(sema::Type value, sema::Type place);
/// Whether only some places take values of the type.
bool is_special(sema::TypeKind kind);

inline constexpr sema::Type kAny{};

class CandidateNames {
 public:
  CandidateNames(Request& request, const StatementAt& statement, std::uint32_t at)
      : request_(request),
        statement_(statement),
        at_(at),
        program_(*request.program()),
        locals_(locals_at(request, statement.typed.begin)) {
    bind_comprehensions();
  }

 protected:
  /// The names of a list that is being typed.
  void bind_comprehensions() {
    for (std::size_t i = 0; i + 2 < statement_.words.size(); ++i) {
      if (statement_.word(i) != "[" || statement_.word(i + 1) != "for") continue;
      for (std::size_t j = i + 2; j + 1 < statement_.words.size(); ++j) {
        if (statement_.word(j + 1) == "in")
          locals_.push_back({std::string(statement_.word(j)), {sema::TypeKind::integer}, "for"});
      }
    }
  }

  // ---- words
  void word(std::string_view text) {
    list_.push_back({std::string(text),
                     CandidateKind::keyword,
                     {},
                     std::string(meaning_of_word(text)),
                     {},
                     "7"});
  }
  void words(std::initializer_list<std::string_view> list) {
    for (const std::string_view text : list) word(text);
  }
  void passes() {
    for (const std::string_view pass : {"F", "B", "BI", "BW"})
      list_.push_back(
          {pass.data(), CandidateKind::keyword, {}, std::string(meaning_of_word(pass)), {}, "3"});
  }
  /// `name:` of a setting or an argument.
  void name_of_pair(std::string_view name, std::string_view detail) {
    name_of_pair(name, detail, meaning_of_word(name));
  }
  void name_of_pair(std::string_view name, std::string_view detail, std::string_view doc) {
    list_.push_back({std::string(name) + ":", CandidateKind::property, std::string(detail),
                     std::string(doc), std::string(name) + ": ", "2"});
  }

  // ---- names
  void local_names(sema::Type place) {
    for (const LocalName& local : locals_) {
      // An element of the list may be meant.
      const bool element =
          !fits(local.type, place) && local.type.list && fits(local.type.element(), place);
      if (!element && !fits(local.type, place)) continue;
      const std::string type =
          local.type.is_error() ? "" : ": " + std::string(sema::type_name(local.type));
      list_.push_back({local.name,
                       CandidateKind::variable,
                       local.detail + type,
                       {},
                       element ? local.name + "[" : "",
                       "1"});
    }
  }
  bool visible(sema::ModuleId module) const {
    const auto& uses = program_.modules.front()->uses;
    return module.index() == 0 || std::find(uses.begin(), uses.end(), module) != uses.end();
  }
  void add_function(const sema::Function& function) {
    const CandidateKind kind = function.sort() == ast::FunctionSort::model      ? CandidateKind::class_
                               : function.sort() == ast::FunctionSort::schedule ? CandidateKind::interface
                                                                                : CandidateKind::function;
    list_.push_back({std::string(function.name()),
                     kind,
                     headline(*function.syntax),
                     std::string(function.syntax->doc),
                     {},
                     "4"});
  }
  template <typename Wanted>
  void functions(const Wanted& wanted) {
    const NodesAt nodes = nodes_at(*request_.module(), statement_.typed.begin);
    for (const sema::Function& function : program_.functions) {
      // No function calls itself.
      if (visible(function.module) && function.syntax != nodes.item && !function.name().empty() &&
          wanted(function))
        add_function(function);
    }
  }
  /// The schedules or models of the library in files that the text does not use: their `use` comes
  /// with them.
  void unused_library(std::string_view item) {
    for (const std::string& module : sema::library_modules(item)) {
      const std::string name = module.substr(module.rfind('.') + 1);
      const bool known = std::any_of(list_.begin(), list_.end(), [&](const Candidate& candidate) {
        return candidate.label == name;
      });
      if (!known)
        list_.push_back({name, CandidateKind::module, "use " + module, {}, {}, "8", module});
    }
  }
  void params_of_file(sema::Type place) {
    for (const sema::Param& param : program_.params) {
      if (visible(param.module) && fits(param.type, place)) {
        list_.push_back({std::string(param.syntax->name.name),
                         CandidateKind::constant,
                         headline(*param.syntax),
                         std::string(param.syntax->doc),
                         {},
                         "4"});
      }
    }
  }
  void names_items() {
    for (const sema::Names& names : program_.names) {
      if (visible(names.module))
        list_.push_back({std::string(names.name()),
                         CandidateKind::module,
                         headline(*names.syntax),
                         std::string(names.syntax->doc),
                         {},
                         "1"});
    }
  }
  void meshes() {
    for (const sema::Mesh& mesh : program_.meshes) {
      if (visible(mesh.module))
        list_.push_back({std::string(mesh.syntax->name.name),
                         CandidateKind::struct_,
                         headline(*mesh.syntax),
                         std::string(mesh.syntax->doc),
                         {},
                         "1"});
    }
  }
  void builtins(sema::Type place) {
    for (const std::string_view name : sema::builtin_names(false)) {
      if (sema::find_unavailable(name) != nullptr) continue;
      for (const sema::Signature* row : sema::find_builtins(name, false)) {
        if (!stands_here(*row) || !fits(row->result, place)) continue;
        list_.push_back({std::string(name),
                         row->is_value ? CandidateKind::value : CandidateKind::function,
                         std::string(row->text),
                         std::string(meaning_of(row->id)),
                         {},
                         "6"});
        break;
      }
    }
  }
  bool stands_here(const sema::Signature& row) const {
    const bool model = statement_.in_body && statement_.body == sema::BodySort::model;
    const bool of_tensors =
        row.result.is_tensor() ||
        std::any_of(row.params.begin(), row.params.end(),
                    [](const sema::BuiltinParam& param) { return param.type.is_tensor(); });
    if (of_tensors) return model;
    if (row.id == sema::Builtin::left)
      return statement_.in_body && statement_.body == sema::BodySort::steps;
    if (row.id == sema::Builtin::held)
      return statement_.in_body && statement_.body != sema::BodySort::model &&
             statement_.body != sema::BodySort::value;
    return true;
  }
  void labels(bool with_model) {
    const Labels found = labels_at(request_, statement_.typed.begin);
    if (with_model)
      list_.push_back({"model", CandidateKind::keyword, "all of the model", {}, {}, "2"});
    for (const std::string& region : found.regions)
      list_.push_back({region, CandidateKind::struct_, "region", {}, {}, "2"});
    if (with_model) return;
    for (const std::string& name : found.dimensions)
      list_.push_back({name, CandidateKind::property, "dimension of the batch", {}, {}, "2"});
  }

  /// An expression of a type.
  void expr(sema::Type place) {
    if (statement_.after_value()) return after_value();
    // After an operator on numbers only a number can follow.
    const std::string_view last = statement_.last();
    const bool computes = last == "+" || last == "-" || last == "*" || last == "/" || last == "%" ||
                          last == ".." || last == "by" || last == "<" || last == ">" ||
                          last == "<=" || last == ">=" || last == "==" || last == "!=";
    if (computes)
      place = statement_.body == sema::BodySort::model && statement_.in_body
                  ? kAny
                  : sema::Type{sema::TypeKind::number};
    if (last == "not" || last == "and" || last == "or") place = kAny;
    local_names(place);
    if (place.is(sema::TypeKind::names)) names_items();
    params_of_file(place);
    functions([&](const sema::Function& function) {
      if (function.sort() == ast::FunctionSort::schedule) return false;
      if (function.sort() == ast::FunctionSort::model)
        return statement_.body == sema::BodySort::model && function.result.is_tensor() &&
               fits(function.result, place);
      return fits(function.result, place);
    });
    builtins(place);
    if (fits({sema::TypeKind::boolean}, place) && !computes) words({"true", "false"});
    if (!computes && (place.is_error() || place.is(sema::TypeKind::boolean))) word("not");
    if (!is_special(place.kind)) word("if");
    if (last == "[" && open_bracket_is_list()) word("for");
  }

  /// The row of the directive that is being written; null if the statement is no directive that
  /// works.
  const directive::DirectiveRow* directive_row() const {
    const directive::DirectiveRow* const row = directive::find_directive(statement_.first());
    return row != nullptr && row->works() ? row : nullptr;
  }

  /// The clause of a directive behind the last one that is present.
  void next_clause() {
    const directive::DirectiveRow* const row = directive_row();
    if (row == nullptr || (row->subject == directive::Subject::named && !statement_.has(":")))
      return;
    std::string_view next;
    for (std::size_t i = std::size(directive::kClauseWords); i-- > 0;) {
      if (!row->clauses.takes(static_cast<directive::Clause>(i))) continue;
      if (statement_.has(directive::kClauseWords[i])) break;
      next = directive::kClauseWords[i];
    }
    if (!next.empty()) word(next);
  }

  /// After a value: the words that continue the expression or the statement.
  void after_value() {
    coordinates();
    branches();
    if (statement_.depth() > 0) return;
    const std::string_view first = statement_.first();
    const auto next = [&](std::initializer_list<std::string_view> order) {
      // The one after the last that is present.
      const std::string_view last = statement_.last_of(order);
      const auto found = std::find(order.begin(), order.end(), last);
      const auto following = found == order.end() ? order.begin() : found + 1;
      if (following != order.end()) word(*following);
    };
    next_clause();
    if (first == "cursor" && statement_.has("=")) next({"backward"});
    if (first == "train" && statement_.has("=")) next({"on"});
    if ((first == "for" || first == "rank") && statement_.last_of({"in", ","}) != "in") word("in");
    if (first == "param" && statement_.last_of({"=", "in"}).empty()) word("in");
    if (first == "require" && !statement_.has("else")) word("else");
    if (statement_.has("..") && !statement_.has("by")) word("by");
  }

  /// The words behind a condition or a branch in the innermost bracket that is open.
  void branches() {
    const std::size_t open = statement_.innermost();
    const bool outside = open == statement_.words.size();
    const std::string_view first = statement_.first();
    // The `if` of a statement has a block.
    std::size_t i = outside ? 0 : open + 1;
    bool condition = outside && (first == "if" || first == "require" || first == "else");
    if (outside && first == "if") i = 1;
    if (outside && first == "else") i = 2;
    std::vector<std::string_view> begun;  // `if` without `then`, `then` without `else`
    std::size_t depth = 0;
    for (; i < statement_.words.size(); ++i) {
      const std::string_view text = statement_.word(i);
      if (statement_.words[i].kind == parse::LexemeKind::close) --depth;
      if (statement_.words[i].kind == parse::LexemeKind::open) ++depth;
      if (depth > 0) continue;
      if (text == "if") begun.push_back(text);
      if (text == "then" && !begun.empty()) begun.back() = text;
      if (text == "else" && !begun.empty()) begun.pop_back();
      if (text == "if" || decides(text)) condition = true;
      if (text == "then" || text == "else" || text == "=" || text == "," || text == ":")
        condition = false;
    }
    if (!begun.empty()) word(begun.back() == "if" ? "then" : "else");
    if (condition) words({"and", "or"});
  }

  /// Whether a word is one of a condition: an operator on values, or the name of a `bool`.
  bool decides(std::string_view text) const {
    for (const std::string_view operation :
         {"==", "!=", "<", ">", "<=", ">=", "not", "and", "or", "true", "false"}) {
      if (text == operation) return true;
    }
    return std::any_of(locals_.begin(), locals_.end(), [&](const LocalName& local) {
      return local.name == text && local.type.is(sema::TypeKind::boolean);
    });
  }

  /// `stage[r] ` goes on with ` mb[..]`.
  void coordinates() {
    if (statement_.last() != "]") return;
    const Labels found = labels_at(request_, statement_.typed.begin);
    std::set<std::string_view> given;
    std::string_view head;
    for (std::size_t i = statement_.words.size(); i > 0;) {
      std::size_t depth = 0, j = i;
      if (statement_.word(j - 1) != "]") break;
      do {
        --j;
        if (statement_.words[j].kind == parse::LexemeKind::close) ++depth;
        if (statement_.words[j].kind == parse::LexemeKind::open) --depth;
      } while (depth > 0 && j > 0);
      if (j == 0) break;
      head = statement_.word(j - 1);
      given.insert(head);
      i = j - 1;
    }
    const bool region =
        std::find(found.regions.begin(), found.regions.end(), head) != found.regions.end();
    const bool dimension =
        std::find(found.dimensions.begin(), found.dimensions.end(), head) != found.dimensions.end();
    if (!region && !dimension) return;
    for (const std::string& name : found.dimensions) {
      if (!given.contains(name))
        list_.push_back({name, CandidateKind::property, "dimension of the batch", {}, {}, "1"});
    }
    for (const std::string& name : found.regions) {
      if (dimension && !given.contains(name))
        list_.push_back({name, CandidateKind::struct_, "region", {}, {}, "1"});
    }
  }

  /// Whether the innermost bracket is that of a list, and no index.
  bool open_bracket_is_list() const {
    const std::size_t open = statement_.innermost();
    if (open == statement_.words.size() || statement_.word(open) != "[" || open == 0) return false;
    const parse::LexemeKind before = statement_.words[open - 1].kind;
    return before != parse::LexemeKind::name && before != parse::LexemeKind::close;
  }

  Request& request_;
  const StatementAt& statement_;
  const std::uint32_t at_;
  const sema::Program& program_;
  std::vector<LocalName> locals_;
  std::vector<Candidate> list_;
};

}  // namespace piper::lsp
