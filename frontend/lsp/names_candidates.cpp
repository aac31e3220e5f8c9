#include "frontend/lsp/names_candidates.h"

#include <algorithm>
#include <set>

#include "frontend/ast/source_text.h"
#include "frontend/lsp/describe.h"
#include "frontend/lsp/weight_paths.h"

namespace piper::lsp {

namespace {

class LineCompleter {
 public:
  LineCompleter(Request& request, const StatementAt& statement)
      : request_(request), statement_(statement), paths_(weight_paths(*request.program())) {}

  std::vector<Candidate> run() {
    if (statement_.in_block) return std::move(list_);  // facts: keys of a file that is not known
    if (statement_.words.empty()) {
      begin_line();
    } else if (statement_.has(":")) {
      right_side();
    } else if (statement_.last() == ".") {
      next_part();
    } else if (statement_.depth() > 0) {
      in_brackets();
    } else if (statement_.last() == "or") {
      word("none", "a model may lack the parameter");
    }
    return std::move(list_);
  }

 private:
  void word(std::string_view text, std::string_view meaning) {
    list_.push_back({std::string(text), CandidateKind::keyword, std::string(meaning), {}, {}, "7"});
  }

  void begin_line() {
    word("config", "facts of the model: `config { rope_theta: 10000 }`");
    word("ignore", "tensors that a file may have besides: `ignore \"lm_head.weight\"`");
    std::set<std::string> written = written_paths();
    for (const WeightPath& path : paths_) {
      if (std::string text = text_of(path); written.insert(text).second) add(text, path, {});
    }
  }

  /// The paths of the lines of the item, one for each parameter of a tuple.
  std::set<std::string> written_paths() {
    std::set<std::string> written;
    for (const ast::Item* item : request_.module()->items) {
      const auto* names = llvm::dyn_cast<ast::NamesItem>(item);
      if (names == nullptr || !touches(names->range, statement_.typed.begin)) continue;
      for (const ast::NamesLine& line : names->lines) {
        ast::NamesLine one = line;
        one.dims = {};
        one.is_tuple = false;
        for (const ast::Identifier& parameter : line.last) {
          one.last = {&parameter, 1};
          written.insert(ast::path_text(one));
        }
      }
    }
    return written;
  }

  /// The names of the parts before the cursor; those of a tuple that is being written are none.
  std::vector<std::string_view> parts() const {
    std::vector<std::string_view> names;
    std::size_t depth = 0;
    for (std::size_t i = 0; i < statement_.words.size() && statement_.word(i) != ":"; ++i) {
      const parse::LexemeKind kind = statement_.words[i].kind;
      if (kind == parse::LexemeKind::open) ++depth;
      if (kind == parse::LexemeKind::close && depth > 0) --depth;
      if (kind == parse::LexemeKind::name && depth == 0) names.push_back(statement_.word(i));
    }
    return names;
  }

  static bool begins_with(const WeightPath& path, const std::vector<std::string_view>& names) {
    if (path.parts.size() < names.size()) return false;
    return std::equal(
        names.begin(), names.end(), path.parts.begin(),
        [](std::string_view name, const WeightPath::Part& part) { return name == part.name; });
  }

  void next_part() {
    const std::vector<std::string_view> names = parts();
    for (const WeightPath& path : paths_) {
      if (!begins_with(path, names)) continue;
      if (path.parts.size() == names.size()) {
        add(std::string(path.weight->name.name), path, {});
      } else {
        const WeightPath::Part& part = path.parts[names.size()];
        list_.push_back({part.name,
                         CandidateKind::struct_,
                         "call of the model `" + part.name + "`",
                         {},
                         part.repeated ? part.name + "[l]" : "",
                         "1"});
      }
    }
  }

  void in_brackets() {
    const std::size_t open = statement_.innermost();
    if (statement_.word(open) == "(") {
      const std::vector<std::string_view> names = parts();
      for (const WeightPath& path : paths_) {
        if (path.parts.size() == names.size() && begins_with(path, names))
          add(std::string(path.weight->name.name), path, {});
      }
    } else if (statement_.word(open) == "[") {
      dimensions();
    }
  }

  void right_side() {
    if (statement_.depth() == 0) {
      if (statement_.last() == "]") word("or", "`or none`: a model may lack the parameter");
      if (statement_.last() == "or") word("none", "a model may lack the parameter");
      return;
    }
    dimensions();
    for (std::size_t i = 0; i < statement_.words.size() && statement_.word(i) != ":"; ++i) {
      if (statement_.word(i) == "(") return word("of", "the position of the parameter");
    }
  }

  /// The dimensions of the parameter of the line that are not written yet on this side.
  void dimensions() {
    std::vector<std::string_view> names = parts();
    std::set<std::string_view> given;
    for (std::size_t i = statement_.innermost(); i < statement_.words.size(); ++i)
      given.insert(statement_.word(i));
    for (const WeightPath& path : paths_) {
      const bool tuple = path.parts.size() == names.size() && begins_with(path, names);
      const bool one = path.parts.size() + 1 == names.size() &&
                       names.back() == path.weight->name.name &&
                       begins_with(path, {names.begin(), names.end() - 1});
      if (!tuple && !one) continue;
      for (const ast::Dim& dim : path.weight->dims) {
        if (given.insert(dim.name.name).second)
          list_.push_back(
              {std::string(dim.name.name), CandidateKind::property, "dimension", {}, {}, "1"});
      }
      return;
    }
  }

  void add(const std::string& label, const WeightPath& path, std::string insert) {
    list_.push_back(
        {label,
         CandidateKind::variable,
         "weight " + std::string(path.weight->name.name) + ast::source_text(path.weight->dims),
         {},
         std::move(insert),
         "1"});
  }

  Request& request_;
  const StatementAt& statement_;
  const std::vector<WeightPath> paths_;
  std::vector<Candidate> list_;
};

}  // namespace

std::vector<Candidate> names_candidates(Request& request, const StatementAt& statement) {
  return LineCompleter(request, statement).run();
}

}  // namespace piper::lsp
