// Lines of `names`.

#include <charconv>

#include "frontend/parse/ast_builder.h"

namespace piper::parse {

using namespace ast;
using Grammar = AstBuilder::Grammar;
using antlr4::tree::ErrorNode;
using antlr4::tree::TerminalNode;

namespace {

bool missing(const TerminalNode* node) {
  return node == nullptr ||
         const_cast<TerminalNode*>(node)->getSymbol()->getTokenIndex() == INVALID_INDEX;
}

}  // namespace

Item* AstBuilder::names(Grammar::NamesItemContext* context) {
  auto* node = module_.make<NamesItem>(range(context));
  node->name = identifier(context->name(), behind(context));
  Grammar::NamesBodyContext* const body = context->namesBody();
  node->body = body != nullptr ? range(body) : behind(context);
  std::vector<NamesLine> lines;
  for (std::size_t i = 0; body != nullptr && i < body->children.size();) {
    if (auto* line = dynamic_cast<Grammar::NamesLineContext*>(body->children[i])) {
      lines.push_back(names_line(line));
      ++i;
    } else if (dynamic_cast<ErrorNode*>(body->children[i]) != nullptr) {
      const SourceRange skipped = error_range(body->children, i);
      if (skipped.valid()) lines.emplace_back().range = skipped;
    } else {
      ++i;
    }
  }
  node->lines = module_.copy(lines);
  return node;
}

NamesLine AstBuilder::names_line(Grammar::NamesLineContext* context) {
  NamesLine line;
  line.range = range(context);
  if (context->exception != nullptr) return line;
  const Identifier word = identifier(context->name(), line.range);
  if (Grammar::FactsBodyContext* const body = context->factsBody()) {
    if (word.name != "config") {
      sink_
          .report(Code::unexpected_token, word.range, "`{}` begins no part of a `names`", word.name)
          .did_you_mean("config", word.name);
      return line;
    }
    std::vector<Pair> facts;
    for (Grammar::FactsContext* const list : body->facts()) {
      for (Grammar::PairContext* const fact : list->pair())
        facts.push_back(pair(fact, range(fact)));
    }
    line.kind = NamesLineKind::config;
    line.facts = module_.copy(facts);
  } else if (!context->STRING().empty()) {
    if (word.name != "ignore") {
      sink_
          .report(Code::unexpected_token, word.range, "`{}` begins no line of a `names`", word.name)
          .did_you_mean("ignore", word.name);
      return line;
    }
    line.kind = NamesLineKind::ignore;
    line.ignored = file_names(context);
  } else {
    map_line(context, line);
  }
  return line;
}

std::span<const FileName> AstBuilder::file_names(Grammar::NamesLineContext* context) {
  std::vector<FileName> list;
  for (TerminalNode* const name : context->STRING()) {
    if (!missing(name)) list.push_back(file_name(name->getSymbol()));
  }
  return module_.copy(list);
}

void AstBuilder::map_line(Grammar::NamesLineContext* context, NamesLine& line) {
  struct Step {
    Grammar::NameContext* name;
    Grammar::TupleContext* tuple;
    Grammar::PathIndexContext* index;
    SourceRange range;
  };
  std::vector<Step> steps;
  SourceRange first;
  if (context->name() != nullptr) first = range(context->name());
  if (context->tuple() != nullptr) first = range(context->tuple());
  if (context->pathIndex() != nullptr) first = cover(first, range(context->pathIndex()));
  steps.push_back({context->name(), context->tuple(), context->pathIndex(), first});
  for (Grammar::PathPartContext* const part : context->pathPart())
    steps.push_back({part->name(), part->tuple(), part->pathIndex(), range(part)});
  line.path_range = cover(steps.front().range, steps.back().range);
  line.kind = NamesLineKind::map;

  std::vector<NamesPart> parts;
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
    if (steps[i].tuple != nullptr) {
      sink_.report(Code::unexpected_token, range(steps[i].tuple),
                   "parameters in parentheses end the path");
      line.kind = NamesLineKind::error;
      return;
    }
    parts.push_back(
        names_part(identifier(steps[i].name, steps[i].range), steps[i].index, steps[i].range));
  }
  const Step& last = steps.back();
  line.parts = module_.copy(parts);
  line.is_tuple = last.tuple != nullptr;
  line.last = last.tuple != nullptr
                  ? identifiers(last.tuple->name())
                  : module_.copy(std::vector<Identifier>{identifier(last.name, last.range)});
  line.dims = names_dims(last.index);
  file_tensor(context->fileTensor(), line, behind(context));
}

NamesPart AstBuilder::names_part(const Identifier& name, Grammar::PathIndexContext* index,
                                 SourceRange where) {
  NamesPart part;
  part.name = name;
  part.range = where;
  if (index == nullptr) return part;
  part.indexed = true;
  const std::vector<Grammar::PathDimContext*> elements = index->pathDim();
  Grammar::PathDimContext* const only = elements.size() == 1 ? elements.front() : nullptr;
  if (only != nullptr && !missing(only->NUMBER())) {
    part.position = whole_number(only->NUMBER()->getSymbol(), 0).value_or(0);
  } else if (only != nullptr && only->name() != nullptr && only->factor().empty()) {
    part.index = identifier(only->name(), range(index));
  } else {
    sink_
        .report(Code::unexpected_token, range(index),
                "a repeated part has one index: a name or a number")
        .hint("write `{}[l]`; dimensions are written after the last part of a path", name.name);
  }
  return part;
}

std::span<const NamesDim> AstBuilder::names_dims(Grammar::PathIndexContext* context) {
  std::vector<NamesDim> dims;
  if (context == nullptr) return {};
  for (Grammar::PathDimContext* const element : context->pathDim()) {
    if (element->name() == nullptr) {
      sink_
          .report(Code::unexpected_token, range(element),
                  "after the last part of a path are the dimensions of the parameter")
          .hint("write their names, as in `q[dim, heads, width]`, or leave the brackets out");
      continue;
    }
    NamesDim& dim = dims.emplace_back();
    dim.name = identifier(element->name(), range(element));
    dim.range = range(element);
    std::vector<NamesFactor> factors;
    for (Grammar::FactorContext* const factor : element->factor()) {
      NamesFactor& added = factors.emplace_back();
      added.name = identifier(factor->name(), range(factor));
      added.range = range(factor);
      if (!missing(factor->NUMBER()))
        added.extent = whole_number(factor->NUMBER()->getSymbol(), 1).value_or(1);
    }
    dim.factors = module_.copy(factors);
  }
  return module_.copy(dims);
}

void AstBuilder::file_tensor(Grammar::FileTensorContext* context, NamesLine& line,
                             SourceRange where) {
  line.file.range = where;
  if (context == nullptr) return;
  if (!missing(context->STRING())) line.file = file_name(context->STRING()->getSymbol());
  std::vector<FileDim> dims;
  for (Grammar::FileDimContext* const dim : context->fileDim())
    dims.push_back({identifiers(dim->name()), range(dim)});
  line.file_dims = module_.copy(dims);
  if (context->OR() == nullptr) return;
  const Identifier none = identifier(context->name(), behind(context));
  line.optional = true;
  if (none.missing() || none.name == "none") return;
  sink_
      .report(Code::unexpected_token, none.range, "expected `none` after `or`, found `{}`",
              none.name)
      .hint("`or none` says that a model may lack the parameter, as one with tied weights")
      .fix("none");
}

std::optional<std::int64_t> AstBuilder::whole_number(const antlr4::Token* token,
                                                     std::int64_t minimum) {
  const std::string_view written = text(token);
  std::int64_t value = 0;
  const auto [end, status] =
      std::from_chars(written.data(), written.data() + written.size(), value);
  if (status == std::errc() && end == written.data() + written.size() && value >= minimum)
    return value;
  sink_.report(Code::malformed_number, range(token), "`{}` is no whole number of at least {}",
               written, minimum);
  return std::nullopt;
}

FileName AstBuilder::file_name(const antlr4::Token* token) {
  FileName name;
  name.range = range(token);
  const std::string_view quoted = text(token);
  const bool closed = quoted.size() > 1 && quoted.ends_with(quoted.front());
  const std::string_view inside = quoted.substr(1, quoted.size() - (closed ? 2 : 1));
  const auto refuse = [&](std::size_t begin, std::size_t end, std::string_view why) {
    const auto offset = name.range.begin + 1;
    sink_
        .report(Code::unexpected_token,
                {file_, offset + static_cast<std::uint32_t>(begin),
                 offset + static_cast<std::uint32_t>(end)},
                "{}", why)
        .hint(
            "a hole of a name is an index or a dimension in braces, as in `\"layers.{l}.weight\"`");
  };
  if (inside.empty()) {
    sink_.report(Code::unexpected_token, name.range, "the name of a tensor is empty");
    return name;
  }
  std::vector<FileNamePiece> pieces;
  for (std::size_t at = 0;;) {
    const std::size_t brace = inside.find_first_of("{}", at);
    FileNamePiece& piece = pieces.emplace_back();
    piece.text = module_.copy(inside.substr(at, brace - at));
    if (brace == std::string_view::npos) break;
    const std::size_t close = inside.find_first_of("{}", brace + 1);
    if (inside[brace] == '}') {
      refuse(brace, brace + 1, "`}` closes no hole");
      return name;
    }
    if (close == std::string_view::npos || inside[close] == '{') {
      refuse(brace, brace + 1, "the hole that `{` opens is not closed");
      return name;
    }
    const std::string_view hole = inside.substr(brace + 1, close - brace - 1);
    const auto is_letter = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    };
    const auto is_word = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); };
    if (hole.empty() || !is_letter(hole.front()) ||
        !std::all_of(hole.begin(), hole.end(), is_word)) {
      refuse(brace, close + 1, "this hole has no name in it");
      return name;
    }
    const std::uint32_t begin = name.range.begin + 2 + static_cast<std::uint32_t>(brace);
    piece.hole = {module_.copy(hole),
                  {file_, begin, begin + static_cast<std::uint32_t>(hole.size())}};
    at = close + 1;
  }
  name.pieces = module_.copy(pieces);
  return name;
}

}  // namespace piper::parse
