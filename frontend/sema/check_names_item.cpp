// The rules that make a line of `names` invertible, as far as they hold for every model: each name
// of the left side occurs once on the right side.

#include <algorithm>

#include "frontend/sema/analyser.h"
#include "ir/diagnostics/suggestion.h"

namespace piper::sema {

namespace {

/// A name of the right side.
struct RightName {
  const ast::Identifier* name = nullptr;
  bool in_hole = false;
};

std::vector<RightName> right_names(const ast::NamesLine& line) {
  std::vector<RightName> list;
  for (const ast::FileNamePiece& piece : line.file.pieces) {
    if (!piece.hole.missing()) list.push_back({&piece.hole, true});
  }
  for (const ast::FileDim& dim : line.file_dims) {
    for (const ast::Identifier& name : dim.names) {
      if (!name.missing()) list.push_back({&name, false});
    }
  }
  return list;
}

std::vector<const ast::Identifier*> indices_of(const ast::NamesLine& line) {
  std::vector<const ast::Identifier*> list;
  for (const ast::NamesPart& part : line.parts) {
    if (!part.index.missing()) list.push_back(&part.index);
  }
  return list;
}

/// The names that the written dimensions have on the right side: those of their factors.
std::vector<const ast::Identifier*> leaves_of(const ast::NamesLine& line) {
  std::vector<const ast::Identifier*> list;
  for (const ast::NamesDim& dim : line.dims) {
    if (dim.factors.empty()) list.push_back(&dim.name);
    for (const ast::NamesFactor& factor : dim.factors) list.push_back(&factor.name);
  }
  std::erase_if(list, [](const ast::Identifier* name) { return name->missing(); });
  return list;
}

bool has(const std::vector<const ast::Identifier*>& list, std::string_view name) {
  return std::any_of(list.begin(), list.end(),
                     [&](const ast::Identifier* known) { return known->name == name; });
}

/// Whether text of the line did not parse, so that names may be missing.
bool is_broken(const ast::NamesLine& line) {
  const auto missing = [](const ast::Identifier& name) { return name.missing(); };
  return line.kind != ast::NamesLineKind::map || line.file.pieces.empty() ||
         line.file_dims.empty() || std::any_of(line.last.begin(), line.last.end(), missing) ||
         std::any_of(line.parts.begin(), line.parts.end(),
                     [&](const ast::NamesPart& part) { return part.name.missing(); }) ||
         std::any_of(line.file_dims.begin(), line.file_dims.end(), [&](const ast::FileDim& dim) {
           return std::any_of(dim.names.begin(), dim.names.end(), missing);
         });
}

/// The checks of one line.
class LineCheck {
 public:
  LineCheck(const ast::NamesLine& line, SelectedReports& sink)
      : line_(line),
        sink_(sink),
        indices_(indices_of(line)),
        leaves_(leaves_of(line)),
        right_(right_names(line)) {}

  void run() {
    if (!left_is_clear()) return;
    splits();
    for (std::size_t i = 0; i < right_.size(); ++i) right_name(i);
    for (const ast::Identifier* index : indices_)
      require_on_right(*index, "the index",
                       "write `{" + std::string(index->name) + "}` into the name of the tensor");
    for (const ast::Identifier* leaf : leaves_)
      require_on_right(*leaf, "the dimension", "write it among the dimensions of the tensor");
    if (line_.is_tuple && !on_right("of")) {
      sink_
          .report(Code::names_not_invertible, line_.path_range,
                  "the tensor holds several parameters, and no `of` says where each of them is")
          .hint("write `of` into a dimension of the tensor, as in `[dim, of heads width]`");
    }
  }

 private:
  /// Whether no name stands for two things on the left.
  bool left_is_clear() {
    std::vector<const ast::Identifier*> names = indices_;
    names.insert(names.end(), leaves_.begin(), leaves_.end());
    return no_repetition(names) && no_repetition([&] {
             std::vector<const ast::Identifier*> parameters;
             for (const ast::Identifier& name : line_.last) parameters.push_back(&name);
             return parameters;
           }());
  }

  bool no_repetition(const std::vector<const ast::Identifier*>& names) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        if (names[i]->name != names[j]->name) continue;
        sink_
            .report(Code::names_repeated, names[i]->range, "`{}` occurs twice in this path",
                    names[i]->name)
            .related(names[j]->range, "the first one is here")
            .hint("each index, dimension and parameter of a line has a name of its own");
        return false;
      }
    }
    return true;
  }

  void splits() {
    for (const ast::NamesDim& dim : line_.dims) {
      if (dim.factors.empty()) continue;
      if (dim.factors.size() == 1) {
        sink_.report(Code::names_split, dim.range, "`{}` is split into one factor", dim.name.name)
            .hint("factors are written without commas: `{} = {}: 2 rest`", dim.name.name,
                  dim.factors[0].name.name);
        continue;
      }
      const auto is_open = [](const ast::NamesFactor& factor) { return factor.extent == 0; };
      const auto first = std::find_if(dim.factors.begin(), dim.factors.end(), is_open);
      const auto second =
          first == dim.factors.end() ? first : std::find_if(first + 1, dim.factors.end(), is_open);
      if (second == dim.factors.end()) continue;
      sink_
          .report(Code::names_split, second->range,
                  "`{}` and `{}` have no extents, so that the split of `{}` is not known",
                  first->name.name, second->name.name, dim.name.name)
          .related(first->range, "the first one is here")
          .hint("write the extents of all factors but one: `{}: 2`", first->name.name);
    }
  }

  void right_name(std::size_t position) {
    const auto& [name, in_hole] = right_[position];
    for (std::size_t i = 0; i < position; ++i) {
      if (right_[i].name->name != name->name) continue;
      sink_
          .report(Code::names_not_invertible, name->range, "`{}` occurs twice on the right",
                  name->name)
          .related(right_[i].name->range, "the first one is here")
          .hint("each name of the left side occurs once on the right side");
      return;
    }
    const bool index = has(indices_, name->name);
    if (index && !in_hole) {
      sink_
          .report(Code::names_not_invertible, name->range,
                  "`{}` is an index, and no dimension of a parameter", name->name)
          .hint("an index is a hole in the name of the tensor: `{{}}`", name->name);
    } else if (line_.is_tuple && name->name == "of") {
      if (in_hole)
        sink_
            .report(Code::names_not_invertible, name->range,
                    "`of` is a position in a tensor, and not a part of its name")
            .hint("write a line for each parameter");
    } else if (!index && in_hole && line_.optional) {
      sink_
          .report(Code::names_not_invertible, name->range,
                  "a model may lack this parameter, so that the extent of `{}` is not known",
                  name->name)
          .hint("a line that ends with `or none` has no holes but indices");
    } else if (!index && !line_.dims.empty() && !has(leaves_, name->name)) {
      std::vector<std::string_view> known;
      for (const ast::Identifier* leaf : leaves_) known.push_back(leaf->name);
      for (const ast::Identifier* index : indices_) known.push_back(index->name);
      auto report = sink_.report(Code::names_not_invertible, name->range, "`{}` is not on the left",
                                 name->name);
      if (const std::string_view best = nearest_name(name->name, known); !best.empty())
        report.did_you_mean(best, name->name);
    }
  }

  bool on_right(std::string_view name) const {
    return std::any_of(right_.begin(), right_.end(),
                       [&](const RightName& right) { return right.name->name == name; });
  }

  void require_on_right(const ast::Identifier& name, std::string_view noun,
                        const std::string& hint) {
    if (on_right(name.name)) return;
    sink_
        .report(Code::names_not_invertible, name.range, "{} `{}` is not on the right", noun,
                name.name)
        .hint("{}", hint);
  }

  const ast::NamesLine& line_;
  SelectedReports& sink_;
  const std::vector<const ast::Identifier*> indices_, leaves_;
  const std::vector<RightName> right_;
};

}  // namespace

void Analyser::check_names_item(Names& names, std::uint32_t node) {
  begin_body(BodySort::value, names.module, nullptr, node);
  for (const ast::NamesLine& line : names.syntax->lines) {
    if (!is_broken(line)) LineCheck(line, sink_).run();
  }
  names_facts(*names.syntax);
  names_ignored(*names.syntax);
}

void Analyser::names_facts(const ast::NamesItem& item) {
  std::vector<const ast::Identifier*> keys;
  for (const ast::NamesLine& line : item.lines) {
    for (const ast::Pair& fact : line.facts) {
      fact_value(*fact.value);
      if (fact.name.missing()) continue;
      const auto before = std::find_if(keys.begin(), keys.end(), [&](const ast::Identifier* key) {
        return key->name == fact.name.name;
      });
      if (before != keys.end()) {
        sink_.report(Code::names_fact, fact.name.range, "`{}` is stated twice", fact.name.name)
            .related((*before)->range, "the first one is here");
      }
      keys.push_back(&fact.name);
    }
  }
}

bool Analyser::fact_value(ast::Expr& value) {
  const auto refuse = [&] {
    sink_
        .report(Code::names_fact, value.range,
                "a fact is a number, a text, a truth value, a name or a list of them")
        .hint(
            "a name is an argument of the model, a dimension (its extent) or an index (their number)");
    return false;
  };
  switch (value.kind) {
    case ast::ExprKind::error:
    case ast::ExprKind::string:
    case ast::ExprKind::boolean: return true;
    case ast::ExprKind::number:
      return llvm::cast<ast::NumberExpr>(value).unit == ast::Unit::none || refuse();
    case ast::ExprKind::name: {
      // The model that gives it a value is not known here.
      auto& name = llvm::cast<ast::NameExpr>(value);
      name.referent = ast::Referent::label;
      name.target = label(name.name);
      return true;
    }
    case ast::ExprKind::unary: {
      auto& unary = llvm::cast<ast::UnaryExpr>(value);
      return (unary.op == ast::UnaryOp::negate && llvm::isa<ast::NumberExpr>(unary.operand) &&
              fact_value(*unary.operand)) ||
             refuse();
    }
    case ast::ExprKind::list:
      for (ast::Expr* element : llvm::cast<ast::ListExpr>(value).elements) {
        if (!fact_value(*element)) return false;
      }
      return true;
    default: return refuse();
  }
}

void Analyser::names_ignored(const ast::NamesItem& item) {
  std::vector<std::string_view> known;
  for (const ast::NamesLine& line : item.lines) {
    for (const ast::Identifier* index : indices_of(line)) known.push_back(index->name);
  }
  for (const ast::NamesLine& line : item.lines) {
    for (const ast::FileName& name : line.ignored) {
      for (const ast::FileNamePiece& piece : name.pieces) {
        if (piece.hole.missing() ||
            std::find(known.begin(), known.end(), piece.hole.name) != known.end())
          continue;
        auto report = sink_.report(Code::names_not_invertible, piece.hole.range,
                                   "no line has an index `{}`", piece.hole.name);
        if (const std::string_view best = nearest_name(piece.hole.name, known); !best.empty())
          report.did_you_mean(best, piece.hole.name);
      }
    }
  }
}

}  // namespace piper::sema
