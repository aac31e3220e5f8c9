#include "frontend/parse/read_raw_tokens.h"

#include <algorithm>
#include <utility>

#include "antlr4-runtime.h"
#include "frontend/parse/lexemes.h"
#include "frontend/parse/soft_keywords.h"
#include "grammar_generated/PipeLexer.h"
#include "llvm/Support/ConvertUTF.h"

namespace piper::parse {

std::string one_character_per_byte(std::string_view text) {
  std::string ascii(text);
  for (char& c : ascii) {
    if (static_cast<unsigned char>(c) >= 0x80 || c == '\0') c = '\x7F';
  }
  return ascii;
}

namespace {

using Lexer = generated::PipeLexer;

class RawReader {
 public:
  RawReader(std::string_view text, FileId file, SelectedReports& sink)
      : text_(text), file_(file), sink_(sink) {}

  RawText run() {
    antlr4::ANTLRInputStream input(one_character_per_byte(text_));
    Lexer lexer(&input);
    lexer.removeErrorListeners();
    bool first_on_line = true;
    std::string doc;
    std::uint32_t skip_to = 0;  // a comment or text between other quotes ends here
    for (;;) {
      std::unique_ptr<antlr4::Token> token = lexer.nextToken();
      std::size_t type = token->getType();
      if (type == antlr4::Token::EOF) break;
      auto begin = static_cast<std::uint32_t>(token->getStartIndex());
      auto end = static_cast<std::uint32_t>(token->getStopIndex() + 1);
      if (begin < skip_to) continue;
      if (const std::uint32_t comment = foreign_comment(begin); comment > begin) {
        first_on_line = first_on_line ||
                        text_.substr(begin, comment - begin).find('\n') != std::string_view::npos;
        skip_to = comment;
        continue;
      }
      switch (type) {
        case Lexer::NEWLINE: first_on_line = true; continue;
        case Lexer::DOC:
          add_doc(doc, text_.substr(begin, end - begin));
          add_comment(begin, end, first_on_line);
          continue;
        case Lexer::COMMENT: add_comment(begin, end, first_on_line); continue;
        case Lexer::UNKNOWN:
          if (const std::size_t length = quoted(begin); length > 0) {
            end = skip_to = begin + static_cast<std::uint32_t>(length);
            type = Lexer::STRING;
          }
          break;
        case Lexer::UNCLOSED_STRING:
          while (end > begin + 1 && (text_[end - 1] == '\r' || text_[end - 1] == ' ')) --end;
          sink_
              .report(Code::unclosed_string, {file_, begin, end},
                      "the string is not closed on its line")
              .hint("a string ends with `\"`; it cannot hold a line break or a `\"`");
          result_.unclosed_string_ends.insert(end);
          type = Lexer::STRING;
          break;
        case Lexer::BAD_NUMBER: report_number(begin, end); break;
        default: break;
      }
      RawToken& raw = result_.tokens.emplace_back();
      raw.type = type;
      raw.begin = begin;
      raw.end = end;
      raw.first_on_line = first_on_line;
      first_on_line = false;
      attach_comments(begin);
      if (type == Lexer::UNKNOWN) continue;
      if (!doc.empty()) result_.docs.emplace(begin, std::move(doc));
      doc.clear();
    }
    attach_comments(static_cast<std::uint32_t>(text_.size()));
    rename_soft_keywords();
    return std::move(result_);
  }

 private:
  void rename_soft_keywords() {
    std::vector<SoftToken> tokens;
    for (const RawToken& token : result_.tokens)
      tokens.push_back({token.type, token.first_on_line});
    const std::vector<bool> names = names_among_soft_keywords(tokens);
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i]) result_.tokens[i].type = Lexer::NAME;
    }
  }

  void add_comment(std::uint32_t begin, std::uint32_t end, bool first_on_line) {
    end = begin +
          static_cast<std::uint32_t>(without_blank_end(text_.substr(begin, end - begin)).size());
    const SourceRange range{file_, begin, end};
    if (first_on_line || result_.tokens.empty()) {
      result_.comments.push_back({range, ast::CommentPlace::before, 0});
    } else {
      result_.comments.push_back({range, ast::CommentPlace::behind, result_.tokens.back().begin});
      attached_ = result_.comments.size();
    }
  }

  /// Gives the comments since the last token to the one that begins at `token`.
  void attach_comments(std::uint32_t token) {
    for (; attached_ < result_.comments.size(); ++attached_)
      result_.comments[attached_].token = token;
  }

  static void add_doc(std::string& doc, std::string_view line) {
    if (line.starts_with("////")) return;  // a ruler, not documentation
    line.remove_prefix(3);
    if (line.starts_with(' ')) line.remove_prefix(1);
    line = without_blank_end(line);
    if (!doc.empty()) doc += '\n';
    doc += line;
  }

  void report_number(std::uint32_t begin, std::uint32_t end) {
    std::string_view number = text_.substr(begin, end - begin);
    std::size_t digits = number.find_first_not_of("0123456789.");
    std::string_view suffix = number.substr(digits);
    std::string_view meant =
        suffix == "KB" || suffix == "kB" || suffix == "K" || suffix == "k"     ? "KiB"
        : suffix == "MB" || suffix == "mb" || suffix == "M" || suffix == "mib" ? "MiB"
        : suffix == "GB" || suffix == "gb" || suffix == "G" || suffix == "gib" ? "GiB"
                                                                               : "";
    DiagnosticBuilder builder =
        sink_.report(Code::malformed_number, {file_, begin, end},
                     "`{}` is not a number: `{}` is not a unit", number, suffix);
    if (meant.empty()) {
      builder.hint(
          "the units are `KiB`, `MiB`, `GiB`, `us`, `ms` and `s`; a name does not begin with a digit");
    } else {
      builder.hint("write `{}{}`", number.substr(0, digits), meant)
          .fix(std::string(number.substr(0, digits)) + std::string(meant));
    }
  }

  /// The length of a text in other quotes at `begin`, on one line; 0 where there is none. It is
  /// reported.
  std::size_t quoted(std::uint32_t begin) {
    static constexpr std::pair<std::string_view, std::string_view> kQuotes[] = {
        {"'", "'"}, {"\u201C", "\u201D"}, {"\u201D", "\u201D"}, {"\u2018", "\u2019"}, {"`", "`"}};
    for (const auto& [open, close] : kQuotes) {
      if (!text_.substr(begin).starts_with(open)) continue;
      const std::size_t inside = begin + open.size();
      const std::size_t end = std::min(text_.find(close, inside), text_.find('"', inside));
      if (end == std::string_view::npos || text_.find('\n', inside) < end) return 0;
      const std::size_t behind = end + (text_[end] == '"' ? 1 : close.size());
      if (open == "'" && text_[end] == '"') return 0;
      sink_
          .report(Code::unknown_character, {file_, begin, static_cast<std::uint32_t>(behind)},
                  "`{}` has no meaning here", open)
          .hint("strings are written with `\"`: `\"{}\"`", text_.substr(inside, end - inside))
          .fix("\"" + std::string(text_.substr(inside, end - inside)) + "\"");
      return behind - begin;
    }
    return 0;
  }

  /// The end of a comment of another language that begins at `begin`; `begin` if there is none.
  std::uint32_t foreign_comment(std::uint32_t begin) {
    std::size_t end = begin, marked = begin + 2;
    if (text_[begin] == '#') {
      end = std::min(text_.find('\n', begin), text_.size());
      marked = begin + 1;
    } else if (text_.substr(begin).starts_with("/*")) {
      const std::size_t close = text_.find("*/", begin + 2);
      end = close == std::string_view::npos ? text_.size() : close + 2;
    } else {
      return begin;
    }
    const bool goes_on =
        begin >= comment_end_ && comment_end_ > 0 &&
        text_.substr(comment_end_, begin - comment_end_).find_first_not_of(" \t\r\n") ==
            std::string_view::npos;
    comment_end_ = static_cast<std::uint32_t>(end);
    if (!goes_on) {
      sink_
          .report(Code::foreign_form, {file_, begin, static_cast<std::uint32_t>(marked)},
                  "`{}` is written differently here", text_.substr(begin, marked - begin))
          .hint("a comment begins with `//`, on each of its lines");
    }
    return comment_end_;
  }

  std::string_view text_;
  FileId file_;
  SelectedReports& sink_;
  std::uint32_t comment_end_ = 0;  // of another language
  std::size_t attached_ = 0;       // comments that have their token
  RawText result_;
};

/// Adjacent bytes make one diagnostic: a character may have several, and so may a run of damage.
class UnknownTextFilter {
 public:
  UnknownTextFilter(std::string_view text, FileId file, SelectedReports& sink)
      : text_(text), file_(file), sink_(sink) {}

  RawTokens run(const RawTokens& tokens) {
    RawTokens known;
    known.reserve(tokens.size());
    bool first_on_line = false;
    for (RawToken token : tokens) {
      first_on_line = first_on_line || token.first_on_line;
      if (token.type == Lexer::UNKNOWN) {
        if (unknown_.end != token.begin || unknown_.end == unknown_.begin) {
          report_unknown();
          unknown_ = {token.begin, token.end};
        }
        unknown_.end = token.end;
        continue;
      }
      token.first_on_line = std::exchange(first_on_line, false);
      known.push_back(token);
    }
    report_unknown();
    return known;
  }

 private:
  struct Span {
    std::uint32_t begin, end;
  };

  void report_unknown() {
    if (unknown_.begin == unknown_.end) return;
    std::string_view bytes = text_.substr(unknown_.begin, unknown_.end - unknown_.begin);
    SourceRange at{file_, unknown_.begin, unknown_.end};
    auto first = reinterpret_cast<const llvm::UTF8*>(bytes.data());
    bool valid = bytes.find('\0') == std::string_view::npos &&
                 llvm::isLegalUTF8String(&first, first + bytes.size());
    bool control = static_cast<unsigned char>(bytes[0]) < 0x20 || bytes[0] == '\x7F';
    if (bytes == "\xEF\xBB\xBF" && unknown_.begin == 0) {
      // A byte order mark says nothing in UTF-8 and is harmless at the start.
    } else if (valid && !control && bytes.size() <= 16) {
      DiagnosticBuilder builder =
          sink_.report(Code::unknown_character, at, "`{}` has no meaning here", bytes);
      if (bytes == "'") builder.hint("strings are written with `\"`");
    } else if (valid && !control) {
      sink_.report(Code::unknown_character, at, "these characters have no meaning here");
    } else {
      sink_.report(Code::unknown_character, at, "this is not text");
    }
    unknown_ = {};
  }

  std::string_view text_;
  FileId file_;
  SelectedReports& sink_;
  Span unknown_{0, 0};
};

}  // namespace

RawText read_raw_tokens(std::string_view text, FileId file, SelectedReports& sink) {
  return RawReader(text, file, sink).run();
}

void remove_unknown_text(RawTokens& tokens, std::string_view text, FileId file,
                         SelectedReports& sink) {
  tokens = UnknownTextFilter(text, file, sink).run(tokens);
}

}  // namespace piper::parse
