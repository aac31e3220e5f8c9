#include "frontend/parse/parse.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <set>

#include "antlr4-runtime.h"
#include "frontend/parse/ast_builder.h"
#include "frontend/parse/error_strategy.h"
#include "frontend/parse/token_filter.h"
#include "frontend/source/selected_reports.h"
#include "ir/diagnostics/forward.h"
#include "grammar_generated/PipeParser.h"
#include "llvm/Support/ConvertUTF.h"

namespace piper::parse {

namespace {

/// Reports only the first byte that is illegal in UTF-8, because damaged bytes come in runs. True
/// when there is none.
bool check_encoding(std::string_view text, FileId file, DiagnosticSink& sink) {
  auto report = [&](std::size_t at, std::string_view what) {
    auto begin = static_cast<std::uint32_t>(at);
    sink.report(Code::invalid_text, SourceRange{file, begin, begin + 1}, "{}", what)
        .hint("source files are UTF-8 text");
    return false;
  };
  for (std::size_t at = 0; at < text.size();) {
    auto byte = static_cast<unsigned char>(text[at]);
    if (byte == 0) return report(at, "the text holds a NUL byte");
    if (byte < 0x80) {
      ++at;
      continue;
    }
    auto* first = reinterpret_cast<const llvm::UTF8*>(text.data() + at);
    std::size_t length = llvm::getNumBytesForUTF8(byte);
    if (length > text.size() - at || !llvm::isLegalUTF8Sequence(first, first + length)) {
      return report(at, "the text is not valid UTF-8");
    }
    at += length;
  }
  return true;
}

/// The beginnings of the lines of a text; `;` ends one too.
class LineStarts {
 public:
  explicit LineStarts(std::string_view text) {
    for (std::size_t at = text.find_first_of("\n;"); at != std::string_view::npos;
         at = text.find_first_of("\n;", at + 1))
      starts_.push_back(at + 1);
  }
  std::size_t of(std::size_t offset) const {
    return *std::prev(std::upper_bound(starts_.begin(), starts_.end(), offset));
  }

 private:
  std::vector<std::size_t> starts_ = {0};
};

bool is_encoded(std::string_view bytes) {
  auto* first = reinterpret_cast<const llvm::UTF8*>(bytes.data());
  return bytes.find('\0') == std::string_view::npos &&
         llvm::isLegalUTF8String(&first, first + bytes.size());
}

std::vector<std::unique_ptr<antlr4::Token>> antlr_tokens(const std::vector<Token>& tokens) {
  std::vector<std::unique_ptr<antlr4::Token>> list;
  list.reserve(tokens.size());
  for (const Token& token : tokens) {
    auto made = std::make_unique<antlr4::CommonToken>(token.type);
    made->setStartIndex(token.begin);
    made->setStopIndex(token.end);  // after the last byte, unlike ANTLR's own tokens
    list.push_back(std::move(made));
  }
  return list;
}

/// The ANTLR objects of one tree, with the same lifetime.
class ParseTree {
 public:
  ParseTree(std::string_view text, FileId file, const Tokens& tokens, SelectedReports& sink)
      : source_(antlr_tokens(tokens.list)), stream_(&source_) {
    stream_.fill();  // messages look at tokens that the parser has not reached
    parser_.emplace(&stream_);
    parser_->removeErrorListeners();
    parser_->setErrorHandler(std::make_shared<ErrorStrategy>(text, file, sink));
    program_ = parser_->program();
  }
  generated::PipeParser::ProgramContext* program() const { return program_; }

 private:
  antlr4::ListTokenSource source_;
  antlr4::CommonTokenStream stream_;
  std::optional<generated::PipeParser> parser_;
  generated::PipeParser::ProgramContext* program_ = nullptr;
};

/// Reads a text that has no mistake of syntax. False, without a report, if it has one.
bool read_as_written(std::string_view text, FileId file, DiagnosticSink& sink,
                     ast::Module& module) {
  DiagnosticSink found(sink.locations());
  SelectedReports reports(found, [](Code, SourceRange) { return true; });
  const Tokens tokens = tokenize(text, file, Reading::as_written, reports);
  if (found.has_errors()) return false;
  const ParseTree tree(text, file, tokens, reports);
  if (found.has_errors()) return false;
  AstBuilder(text, file, tokens.docs, reports, module).build(tree.program());
  if (found.has_errors()) return false;
  module.comments = module.copy(tokens.comments);
  forward(found, sink);
  return true;
}

}  // namespace

ast::Module parse(const SourceTable& files, FileId file, DiagnosticSink& sink) {
  std::string_view text = files.text(file);
  ast::Module module;
  module.file = file;
  module.range = {file, 0, static_cast<std::uint32_t>(text.size())};

  const bool encoded = check_encoding(text, file, sink);
  // If a line has a mistake, an unexpected token on it is usually a consequence.
  std::set<std::size_t> reported;
  std::optional<LineStarts> lines;  // of a text with mistakes
  std::size_t shown = 0;
  SourceRange last_hidden;
  SelectedReports reports(sink, [&](Code code, SourceRange at) {
    if (severity_of(code) != Severity::error) return true;
    module.faults.push_back(at.begin);
    // P1002 has reported that the text is not UTF-8.
    if (!encoded && code == Code::unknown_character &&
        !is_encoded(text.substr(at.begin, at.end - at.begin)))
      return false;
    module.brackets_differ |= code == Code::unclosed_bracket || code == Code::unmatched_bracket;
    if (!lines) lines.emplace(text);
    if (!reported.insert(lines->of(at.begin)).second && code == Code::unexpected_token)
      return false;
    if (++shown <= kShownErrors) return true;
    last_hidden = at;
    return false;
  });
  const auto finish = [&] {
    std::sort(module.faults.begin(), module.faults.end());
    report_not_shown(sink, last_hidden, shown - std::min(shown, kShownErrors), "file");
  };
  if (read_as_written(text, file, sink, module)) return module;
  Tokens tokens = tokenize(text, file, Reading::with_mistakes, reports);
  module.comments = module.copy(tokens.comments);
  if (tokens.too_deep) {
    std::vector<ast::Item*> items = {module.make<ast::ErrorItem>(module.range)};
    module.items = module.copy(items);
    finish();
    return module;
  }
  ParseTree tree(text, file, tokens, reports);
  AstBuilder(text, file, tokens.docs, reports, module).build(tree.program());
  finish();
  return module;
}

}  // namespace piper::parse
