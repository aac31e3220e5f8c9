#pragma once
// Error recovery of the parser: one message in the user's words, and a place to go on.
//
// It goes on at the first of: the next part of the same construct (`on` after a broken target, `{`
// after a broken header, `,` or `)` after a broken argument), the end of the statement, the end of
// the item. So a mistake costs the construct around it and nothing after it.

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "antlr4-runtime.h"
#include "frontend/source/selected_reports.h"

namespace piper::parse {

class ErrorStrategy : public antlr4::ANTLRErrorStrategy {
 public:
  ErrorStrategy(std::string_view text, FileId file, SelectedReports& sink)
      : text_(text), file_(file), sink_(sink) {}

  void reset(antlr4::Parser*) override { recovering_ = false; }
  void reportMatch(antlr4::Parser*) override { recovering_ = false; }
  bool inErrorRecoveryMode(antlr4::Parser*) override { return recovering_; }
  antlr4::Token* recoverInline(antlr4::Parser* parser) override;
  void recover(antlr4::Parser* parser, std::exception_ptr error) override;
  void sync(antlr4::Parser* parser) override;
  void reportError(antlr4::Parser* parser, const antlr4::RecognitionException& error) override;

 private:
  /// Nothing if the error was already reported, or if the message says more than the expected
  /// tokens.
  std::optional<DiagnosticBuilder> report(antlr4::Parser* parser, antlr4::Token* found);
  void report_end_of_statement(antlr4::Parser* parser);
  void report_coordinate(antlr4::Parser* parser, antlr4::Token* found);
  DiagnosticBuilder report_expected(std::string_view expected, antlr4::Parser* parser,
                                    antlr4::Token* found);
  void offer_missing(std::optional<DiagnosticBuilder> builder, antlr4::Parser* parser,
                     std::size_t type) const;
  antlr4::Token* conjure(antlr4::Parser* parser, std::size_t type);

  SourceRange range(const antlr4::Token* token) const;
  std::string_view text(const antlr4::Token* token) const;
  std::string describe(antlr4::Parser* parser, antlr4::Token* token) const;
  bool line_break_between(const antlr4::Token* a, const antlr4::Token* b) const;

  std::string_view text_;
  FileId file_;
  SelectedReports& sink_;
  bool recovering_ = false;
  std::vector<std::unique_ptr<antlr4::Token>> conjured_;
};

}  // namespace piper::parse
