#include "frontend/lsp/candidates.h"

#include "frontend/ast/walk.h"
#include "frontend/lsp/call_at.h"
#include "frontend/lsp/candidate_names.h"
#include "frontend/lsp/names_candidates.h"
#include "ir/directive/directive.h"

namespace piper::lsp {

namespace {

using sema::BodySort;
using sema::Type;
using sema::TypeKind;

class Completer : CandidateNames {
 public:
  using CandidateNames::CandidateNames;

  std::vector<Candidate> run() {
    if (statement_.first() == "use") {
      modules();
    } else if (statement_.in_body && statement_.item == "names") {
      list_ = names_candidates(request_, statement_);
    } else if (!statement_.in_body) {
      header();
    } else {
      body();
    }
    return std::move(list_);
  }

 private:
  // ---- declarations
  void modules() {
    if (statement_.words.size() % 2 == 0) return;  // a `.` follows a name
    std::string prefix;
    for (std::size_t i = 1; i < statement_.words.size(); ++i) prefix += statement_.word(i);
    std::set<std::string> next;
    const auto add = [&](const std::string& name) {
      if (!name.starts_with(prefix)) return;
      const std::string rest = name.substr(prefix.size());
      const std::size_t dot = rest.find('.');
      if (next.insert(rest.substr(0, dot)).second) {
        list_.push_back({rest.substr(0, dot),
                         CandidateKind::module,
                         dot == std::string::npos ? name : "",
                         {},
                         {},
                         "1"});
      }
    };
    for (const std::string& name : sema::library_modules()) add(name);
    const std::string own = service::normal_path(request_.document().path());
    const std::string folder = own.substr(0, own.rfind('/') + 1);
    for (const std::string& path : request_.project().paths()) {
      if (!path.starts_with(folder) || path == own || !path.ends_with(".pipe")) continue;
      std::string name = path.substr(folder.size(), path.size() - folder.size() - 5);
      std::replace(name.begin(), name.end(), '/', '.');
      const bool is_name = std::all_of(name.begin(), name.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
      });
      if (is_name) add(name);
    }
  }

  void types(std::initializer_list<std::string_view> names, std::string_view end = "") {
    for (const std::string_view name : names)
      list_.push_back({std::string(name),
                       CandidateKind::type,
                       {},
                       {},
                       end.empty() ? "" : std::string(name) + std::string(end),
                       "1"});
  }
  void tensor_types() { types({"tensor", "i64", "f32", "f64", "bf16"}, "["); }

  void types() {
    const bool tensors = statement_.item == "model";
    if (statement_.last() == "->") {
      if (tensors) types({"tensor"}, "[");
      if (statement_.item == "def")
        types({"int", "float", "bool", "string", "bytes", "devices", "selector", "order", "steps"});
      return;
    }
    types({"int", "float", "bool", "string", "bytes"});
    if (tensors) return tensor_types();
    types({"axis", "devices", "selector"});
    if (statement_.item == "def") types({"cursor", "order"});
  }

  void header() {
    const std::string_view first = statement_.first(), last = statement_.last();
    if (statement_.words.empty()) {
      return words(
          {"def", "machine", "mesh", "model", "names", "param", "schedule", "train", "use"});
    }
    if (statement_.words.size() == 1) return;  // a name of one's own
    if (in_shape()) return dimensions();
    if (first == "train") {
      if (last == "=") {
        functions([](const sema::Function& function) {
          return function.sort() == ast::FunctionSort::model && !function.result.is_tensor();
        });
        return unused_library("model");
      }
      if (last == "on") return meshes();
      if (statement_.depth() > 0) return arguments();
      if (last == ")") word("on");
      return;
    }
    if (first == "machine") {
      if (last == "on") return meshes();
      if (statement_.words.size() == 2) word("on");
      return;
    }
    if (first == "mesh") {
      if (last == "=") return meshes();
      if (statement_.depth() == 0 && statement_.has("=") && statement_.words.size() == 4)
        word("as");
      if (statement_.depth() > 0 && last == ":") expr({TypeKind::integer});
      return;
    }
    if (first == "param") return expr(kAny);
    if (first == "def" || first == "schedule" || first == "model") {
      if (last == "->") return types();
      if (last == ":" && statement_.innermost() < statement_.words.size() &&
          statement_.word(statement_.innermost()) == "[")
        return expr({TypeKind::integer});
      if (last == ":" && statement_.depth() == 1) return types();
      if (last == "[" && begins_type(statement_.words.size() - 1))
        return types({"int", "float", "selector"});
      if (statement_.in_default() && !statement_.after_value()) return expr(kAny);
    }
  }

  /// Whether a type begins at that word: behind `->` or the `:` of a parameter.
  bool begins_type(std::size_t i) const {
    const std::string_view before = i > 0 ? statement_.word(i - 1) : std::string_view();
    return before == "->" || (before == ":" && statement_.depth() == 2);
  }

  // ---- bodies
  void body() {
    const std::string_view first = statement_.first(), last = statement_.last();
    if (statement_.words.empty()) return begin_statement();
    if (last == ".") return parts();
    // `data:`, `mb:`, `up[dim, hidden:`: see below; arguments of calls first, because they can be
    // nested in all the others.
    if (in_comprehension()) return comprehension();
    if (in_shape()) return dimensions();
    if (statement_.depth() > 0 && in_call()) return arguments();
    if (first == "let" || first == "var") {
      if (!statement_.has("=")) return;
      if (statement_.body != BodySort::model && open_bracket_is_list()) labels(false);
      return expr(kAny);
    }
    if (first == "return" || first == "loss") {
      if (statement_.body != BodySort::model && open_bracket_is_list()) labels(false);
      return expr(result_type(first));
    }
    if (first == "else") return last == "else" ? word("if") : expr(kAny);
    if (first == "repeat" || first == "at")
      return first == "at" && statement_.has(":") ? operation() : expr({TypeKind::integer});
    if (first == "if") return expr(kAny);
    if (first == "require") {
      if (statement_.has("else")) return;
      expr(kAny);
      const bool strategy =
          statement_.body == BodySort::schedule || statement_.body == BodySort::train;
      if (strategy && statement_.words.size() == 1) {
        for (const std::string_view measure : directive::kMeasureNames)
          list_.push_back(
              {measure.data(), CandidateKind::value, "measure of the plan", {}, {}, "2"});
      }
      return;
    }
    if (first == "for" || first == "rank") return binding(first == "rank");
    if (first == "input") {
      if (last == ":" && statement_.depth() == 0) tensor_types();
      return;
    }
    if (first == "weight") {
      if (statement_.has("=")) return expr({TypeKind::initializer});
      if (statement_.depth() > 0) expr({TypeKind::integer});
      return;
    }
    if (first == "region") return;
    if (const directive::DirectiveRow* const row = directive_row()) return directive(*row);
    if (first == "order") return expr_or_labels({TypeKind::order});
    if (first == "cursor") {
      if (!statement_.has("=")) return;
      return expr_or_labels({TypeKind::selector});
    }
    if (statement_.words[0].kind == parse::LexemeKind::pass || last == "&") return operation();
    if (statement_.words.size() >= 2 && statement_.word(1) == ":" &&
        statement_.body == BodySort::train)
      return setting(first);
    if (statement_.words.size() >= 2 && statement_.word(1) == ":" &&
        statement_.body == BodySort::machine)
      return machine_line();
    if (statement_.words.size() >= 2 && statement_.word(1) == "=") return expr(kAny);
    if (statement_.after_value()) return after_value();
    if (statement_.depth() == 0) return;
    if (open_bracket_is_list()) labels(false);
    expr(kAny);
  }

  /// `[for i in 0..m, c in 0..v: stage[c] mb[i]]`
  bool in_comprehension() const {
    const std::size_t open = statement_.innermost();
    return open + 1 < statement_.words.size() && statement_.word(open) == "[" &&
           statement_.word(open + 1) == "for";
  }
  void comprehension() {
    const std::size_t open = statement_.innermost();
    bool names = true;  // before `in`
    bool values = false;
    for (std::size_t i = open + 1; i < statement_.words.size(); ++i) {
      if (statement_.word(i) == "in") names = false;
      if (statement_.word(i) == "," && !values) names = true;
      if (statement_.word(i) == ":") values = true;
    }
    if (values) {
      if (statement_.after_value()) return after_value();
      labels(false);
      return expr(kAny);
    }
    if (names) {
      if (statement_.last() != "for" && statement_.last() != ",") word("in");
      return;
    }
    if (statement_.after_value()) return word("by");
    expr(kAny);
  }

  /// Inside the brackets of a type or of a weight: names of dimensions.
  bool in_shape() const {
    const std::size_t open = statement_.innermost();
    if (open == statement_.words.size() || statement_.word(open) != "[" || open == 0) return false;
    const std::string_view before = statement_.word(open - 1);
    const bool type = before == "tensor" || before == "i64" || before == "f32" || before == "f64" ||
                      before == "bf16";
    return (type || statement_.first() == "weight") && statement_.last() != ":" &&
           !statement_.has("=") && (statement_.last() == "[" || statement_.last() == ",");
  }
  void dimensions() {
    std::set<std::string_view> names = {"batch"};
    ast::NameVisitor visitor;
    visitor.dims = [&](const ast::Dim& dim) {
      if (!dim.name.missing() && !touches(dim.name.range, at_)) names.insert(dim.name.name);
    };
    for (const ast::Item* item : request_.module()->items) ast::walk_names(*item, visitor);
    for (const LocalName& local : locals_) {
      if (local.type.is(TypeKind::integer)) names.insert(local.name);
    }
    for (const std::string_view name : names)
      list_.push_back({std::string(name), CandidateKind::property, "dimension", {}, {}, "1"});
  }

  void begin_statement() {
    if (statement_.behind_if) word("else");
    for (const std::string_view text : sema::statement_keywords(statement_.body)) {
      if (text == "return" && statement_.body == BodySort::model && !has_result()) continue;
      word(text);
    }
    for (const LocalName& local : locals_) {
      if (local.detail == "var")
        list_.push_back({local.name, CandidateKind::variable, "var", {}, {}, "1"});
    }
    if (statement_.body == BodySort::steps) {
      passes();
      functions([](const sema::Function& function) {
        return function.sort() == ast::FunctionSort::def && function.result.is(TypeKind::steps);
      });
    }
    if (statement_.body == BodySort::schedule || statement_.body == BodySort::train) {
      functions([](const sema::Function& function) {
        return function.sort() == ast::FunctionSort::schedule;
      });
      unused_library("schedule");
    }
    if (statement_.body == BodySort::machine) {
      for (const LocalName& local : locals_) {
        if (local.type.is(TypeKind::axis)) name_of_pair(local.name, "link of the axis");
      }
      name_of_pair("all", "the devices");
    }
    if (statement_.body == BodySort::train && !statement_.in_block) {
      std::set<std::string_view> given;
      const NodesAt nodes = nodes_at(*request_.module(), statement_.typed.begin);
      if (const auto* train = llvm::dyn_cast_or_null<ast::TrainItem>(nodes.item)) {
        for (const ast::Stmt* stmt : train->body->statements) {
          if (const auto* setting = llvm::dyn_cast<ast::SettingStmt>(stmt))
            given.insert(setting->setting.name.name);
        }
      }
      for (const std::string_view name : ast::kTrainSettings) {
        if (!given.contains(name)) name_of_pair(name, "setting of the train");
      }
    }
  }

  bool has_result() const {
    const NodesAt nodes = nodes_at(*request_.module(), statement_.typed.begin);
    const auto* function = llvm::dyn_cast_or_null<ast::FunctionItem>(nodes.item);
    return function != nullptr && function->result != nullptr;
  }

  Type result_type(std::string_view first) const {
    if (first == "loss") return {TypeKind::tensor};
    const NodesAt nodes = nodes_at(*request_.module(), statement_.typed.begin);
    for (const sema::Function& function : program_.functions) {
      if (function.syntax == nodes.item && statement_.words.size() == 1) return function.result;
    }
    return kAny;
  }

  void device_sets() {
    local_names({TypeKind::axis});
    local_names({TypeKind::devices});
  }

  void binding(bool rank) {
    if (statement_.last_of({"in", ","}) != "in") {
      if (statement_.after_value()) word("in");
      return;
    }
    if (!rank) return expr(kAny);
    if (statement_.after_value()) return;
    device_sets();
  }

  void expr_or_labels(Type type) {
    if (statement_.after_value()) return after_value();
    if (statement_.depth() > 0) {
      // The elements of a list are selectors, unless the list is an argument.
      const bool selectors = open_bracket_is_list() && statement_.depth() == 1;
      if (open_bracket_is_list()) labels(false);
      return expr(selectors ? Type{TypeKind::selector} : kAny);
    }
    if (type.is(TypeKind::selector)) {
      labels(false);
      for (const LocalName& local : locals_) {
        if (local.type.is(TypeKind::selector) || local.type == Type{TypeKind::selector, true})
          list_.push_back({local.name, CandidateKind::variable, local.detail, {}, {}, "1"});
      }
      functions([](const sema::Function& function) {
        return function.result.kind == TypeKind::selector;
      });
      return;
    }
    expr(type);
  }

  void operation() {
    if (statement_.depth() > 0) return expr(kAny);
    const std::string_view last = statement_.last();
    if (last == "&" || last == ":") return passes();
    if (statement_.words.back().kind == parse::LexemeKind::pass) {
      local_names({TypeKind::cursor});
      for (const LocalName& local : locals_) {
        if (local.type.is(TypeKind::selector))
          list_.push_back({local.name, CandidateKind::variable, local.detail, {}, {}, "1"});
      }
      return labels(false);
    }
    coordinates();
  }

  void directive(const directive::DirectiveRow& row) {
    using directive::Subject;
    const std::string_view last = statement_.last();
    const std::string_view part = statement_.last_of({"into", "with", "on", "over", "in", ":"});
    if (statement_.depth() > 0) return expr(kAny);
    if (statement_.has("with")) {
      if (last == "with" || last == ",") return settings_of(row);
      if (last == ":")
        value_of_setting(
            statement_.words.size() > 1 ? statement_.word(statement_.words.size() - 2) : "", row);
      return;
    }
    if (statement_.after_value() && last != "model") return after_value();
    if (last == "model" && statement_.words.size() > 1) return after_value();
    if (part == "on") {
      device_sets();
      functions(
          [](const sema::Function& function) { return function.result.is(TypeKind::devices); });
      return;
    }
    if (part == "over") return local_names({TypeKind::axis});
    if (part == "into" ||
        (row.subject != Subject::named && part == ":" && statement_.has("into"))) {
      if (statement_.last_of({"into", ",", ":"}) == ":") return expr({TypeKind::integer});
      if (row.subject == Subject::region) name_of_pair("stage", "the name of the parts");
      if (row.subject == Subject::dimension) {
        name_of_pair("mb", "microbatches");
        name_of_pair("copy", "copies of the model, each with its part of the batch");
      }
      return;
    }
    if (row.subject == Subject::dimension && statement_.words.size() == 1) {
      list_.push_back({"batch", CandidateKind::property, "dimension of the batch", {}, {}, "1"});
      return;
    }
    if (row.subject == Subject::named && !statement_.has(":")) return;
    if (row.kind == directive::DirectiveKind::place &&
        (statement_.words.size() == 1 || last == ","))
      passes();
    labels(true);
  }

  void value_of_setting(std::string_view name, const directive::DirectiveRow& row) {
    const directive::SettingRow* const setting = directive::find_setting(row.kind, name);
    const auto type = setting != nullptr ? setting->type : directive::SettingType::count;
    if (type == directive::SettingType::bytes) return expr({TypeKind::bytes});
    if (type == directive::SettingType::factor) return expr({TypeKind::floating});
    if (type != directive::SettingType::word) return expr({TypeKind::integer});
    for (const std::string_view text : directive::words_of(*setting)) word(text);
  }

  void settings_of(const directive::DirectiveRow& row) {
    for (const directive::SettingRow& setting : directive::settings_of(row.kind))
      name_of_pair(setting.name, setting_text(setting), setting.meaning);
  }

  void setting(std::string_view name) {
    if (name == "data" || name == "held_out") expr({TypeKind::data});
    if (name == "checkpoint" || name == "evaluate") expr({TypeKind::every});
    if (name == "ema") expr({TypeKind::floating});
    if (name == "init") expr({TypeKind::weights});
    if (name == "skip_step") word("norm");
    if (name == "optim") expr({TypeKind::optimizer});
    if (name == "device") expr({TypeKind::platform});
    if (name == "dtype") expr({TypeKind::dtype});
    if (name == "seed" || name == "steps") expr({TypeKind::integer});
  }

  /// The links of a machine have the names of axes, its devices any.
  void machine_line() {
    expr({TypeKind::device});
    const bool axis = std::any_of(locals_.begin(), locals_.end(), [&](const LocalName& local) {
      return local.name == statement_.first() && local.type.is(TypeKind::axis);
    });
    if (axis) expr({TypeKind::link});
  }

  /// Behind a `.`: parts of regions, methods of orders.
  void parts() {
    const std::size_t count = statement_.words.size();
    const bool call = count >= 2 && statement_.word(count - 2) == ")";
    if (call || (statement_.first() == "order" && statement_.body != BodySort::steps)) {
      for (const std::string_view name : sema::builtin_names(true)) {
        for (const sema::Signature* row : sema::find_builtins(name, true))
          list_.push_back({std::string(name),
                           CandidateKind::function,
                           std::string(row->text),
                           std::string(meaning_of(row->id)),
                           {},
                           "1"});
      }
      return;
    }
    const auto communication = [&](std::initializer_list<std::string_view> parts) {
      for (const std::string_view part : parts)
        list_.push_back({std::string(part), CandidateKind::property, "communication", {}, {}, "1"});
    };
    if (const directive::DirectiveRow* const named = directive_row();
        named != nullptr && named->subject == directive::Subject::named)
      return communication({"send", "recv", "reduce", "gather"});
    const bool whole = count >= 2 && statement_.word(count - 2) == "model";
    if (!whole && (count < 2 || statement_.word(count - 2) != "]")) return;
    // After a region in an operation or a directive.
    const std::string_view pass = pass_before();
    const directive::DirectiveRow* const row = directive_row();
    const bool names_regions = row != nullptr ? row->subject == directive::Subject::region ||
                                                    row->subject == directive::Subject::targets
                                              : statement_.first() == "cursor";
    if (pass.empty() && !names_regions) return;
    if (!pass.empty()) communication({"gather"});
    if (!pass.empty() && pass != "BW") communication({"send", "recv"});
    if (pass == "B" || pass == "BW") communication({"reduce"});
    list_.push_back({"rest",
                     CandidateKind::struct_,
                     "what is directly inside, in no region there",
                     {},
                     {},
                     "1"});
    if (whole) return;
    std::set<std::string_view> given;
    for (std::size_t i = 0; i < count; ++i) given.insert(statement_.word(i));
    for (const std::string& region : labels_at(request_, statement_.typed.begin).regions) {
      if (!given.contains(region))
        list_.push_back({region, CandidateKind::struct_, "region", {}, {}, "1"});
    }
  }

  /// The pass of the operation at the end of the statement; empty: there is none.
  std::string_view pass_before() const {
    for (std::size_t i = statement_.words.size(); i > 0 && statement_.word(i - 1) != "&"; --i) {
      if (statement_.words[i - 1].kind == parse::LexemeKind::pass) return statement_.word(i - 1);
    }
    return {};
  }

  bool in_call() const {
    const std::size_t open = statement_.innermost();
    return open < statement_.words.size() && statement_.word(open) == "(" &&
           call_at(request_, statement_.typed.begin).has_value();
  }

  void arguments() {
    const std::optional<CallAt> call = call_at(request_, at_);
    if (!call || call->callees.empty()) return;
    const Callee& callee = call->callees.front();
    Type place = kAny;
    const CalleeParam* param = nullptr;
    for (std::size_t i = 0; i < callee.params.size(); ++i) {
      const CalleeParam& each = callee.params[i];
      if (call->opens_name ? each.name == call->argument_name : i == call->argument) param = &each;
    }
    if (param != nullptr) place = param->type;
    // Values or one list of them, or a type that depends on the first argument.
    if (callee.variadic || call->callees.size() > 1) place = kAny;
    if (!call->opens_name && call->at_begin) {
      for (std::size_t i = call->positional; i < callee.params.size(); ++i) {
        if (!call->named.contains(callee.params[i].name))
          name_of_pair(callee.params[i].name, callee.params[i].text, callee.params[i].meaning);
      }
      if (callee.open) open_names(*call);
      if (call->follows_name || (param == nullptr && !callee.variadic)) return;
      if (param != nullptr && call->named.contains(param->name)) return;
    }
    if (place.is(TypeKind::op)) {
      if (statement_.words.back().kind == parse::LexemeKind::pass)
        return local_names({TypeKind::cursor});
      return passes();
    }
    if (place.kind == TypeKind::cursor) return local_names(place);
    if (place.is(TypeKind::dimension)) {
      for (const LocalName& local : locals_) {
        if (local.is_dimension)
          list_.push_back({local.name, CandidateKind::property, local.detail, {}, {}, "1"});
      }
      return;
    }
    if (place.kind == TypeKind::selector) {
      if (!statement_.after_value()) labels(false);
      return expr(place);
    }
    expr(place);
  }

  /// Extents of the data: the dimensions of the model's inputs.
  void open_names(const CallAt& call) {
    const NodesAt nodes = nodes_at(*request_.module(), statement_.typed.begin);
    const auto* item = llvm::dyn_cast_or_null<ast::TrainItem>(nodes.item);
    if (statement_.first() == "order") {
      for (const std::string& name : labels_at(request_, statement_.typed.begin).dimensions)
        name_of_pair(name, "dimension of the batch");
    }
    if (item == nullptr) return;
    for (const sema::Train& train : program_.trains) {
      if (train.syntax != item || !train.model.valid()) continue;
      std::set<std::string_view> reported;
      for (const ast::Stmt* stmt :
           program_.functions[train.model.index()].syntax->body->statements) {
        const auto* input = llvm::dyn_cast<ast::InputStmt>(stmt);
        if (input == nullptr) continue;
        for (const ast::Param& param : input->inputs) {
          if (param.type == nullptr) continue;
          for (const ast::Dim& dim : param.type->dims) {
            const std::string name(dim.name.name);
            if (dim.size == nullptr && name != "batch" && !call.named.contains(name) &&
                reported.insert(dim.name.name).second)
              name_of_pair(name, "extent of the data");
          }
        }
      }
    }
  }
};

}  // namespace

std::vector<Candidate> candidates(Request& request, const StatementAt& statement,
                                  std::uint32_t at) {
  std::vector<Candidate> list = Completer(request, statement, at).run();
  // The nearest of several candidates with one name is kept.
  std::stable_sort(list.begin(), list.end(),
                   [](const Candidate& a, const Candidate& b) { return a.sort < b.sort; });
  std::set<std::string> seen;
  std::erase_if(list,
                [&](const Candidate& candidate) { return !seen.insert(candidate.label).second; });
  return list;
}

}  // namespace piper::lsp
