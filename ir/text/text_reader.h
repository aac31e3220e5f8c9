#pragma once
// Reads the tokens of `.pir` text: names, numbers, strings and punctuation. White space and `//`
// comments separate tokens, and no token spans two lines.
//
// Guarantees: linear time; any bytes are accepted; the first error is reported and ends reading
// (every later token is `end`), so that callers need no error paths of their own beside `failed()`.
//
//   TextReader reader(file, context, sink);
//   reader.expect("split");
//   Symbol dim = reader.symbol("a dimension");

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "ir/diagnostics/diagnostics.h"
#include "ir/mesh.h"
#include "ir/tensor/type.h"

namespace piper {

/// For each declaration of a text: its range in the text, and the location in a program that the
/// text states for it.
using TextPlaces = std::map<SourceRange, LocId>;

class TextReader {
 public:
  enum class Kind : std::uint8_t { name, number, string, punctuation, end };
  struct Token {
    Kind kind = Kind::end;
    std::uint32_t begin = 0, end = 0;  // bytes of the file
    std::string_view text;             // as written
  };

  /// The file must have a text.
  TextReader(FileId file, Context& context, DiagnosticSink& sink);

  const Token& peek() const { return token_; }
  void next();
  bool failed() const { return failed_; }
  bool at_end() const { return token_.kind == Kind::end; }
  /// Consumes the token if it is this word or punctuation. A string never is.
  bool accept(std::string_view text);
  bool at(std::string_view text) const {
    return token_.text == text && token_.kind != Kind::string;
  }
  /// Consumes it or reports the token that was found instead.
  void expect(std::string_view text);
  /// A name or a quoted one; `expected` is shown when it is missing ("a stream").
  std::string_view name(std::string_view expected);
  Symbol symbol(std::string_view expected) { return context_.symbol(name(expected)); }
  std::string string(std::string_view expected);
  std::int64_t integer(std::string_view expected);
  /// An integer in [low, high].
  std::int64_t integer(std::string_view expected, std::int64_t low, std::int64_t high);
  double number(std::string_view expected);
  /// Reads items with commas between them, and the bracket behind them.
  void list(std::string_view close, auto item) {
    while (!failed() && !at(close)) {
      item();
      if (!at(close)) expect(",");
    }
    expect(close);
  }
  /// `f32`.
  tensor::DType element_type();
  /// `f32[batch: 32*, seq: 128]`.
  tensor::Type type();
  /// `<dp: batch, tp: +>` of a value of that type; replicated if there is none. Without a mesh any
  /// name is an axis.
  LayoutId layout(const Mesh* mesh, const tensor::Type& type);
  /// `cluster[pp: 1]`.
  DeviceSet device_set(const Mesh& mesh);

  /// Reads the table `locations { ... }` that ends the text, if there is one, and goes on where it
  /// was. References before this call are not in the table.
  void read_locations();
  /// An optional reference `#12` to the table; invalid if there is none.
  LocId location();
  /// The location of a declaration at a token; with `use_own_places`, the place of the token in
  /// this text.
  LocId location(const Token& declared);
  /// From here on declarations have their places in this text as locations; `places` receives the
  /// locations that the text states.
  void use_own_places(TextPlaces& places) { places_ = &places; }
  bool uses_own_places() const { return places_ != nullptr; }
  /// Passes the table of locations, and reports any other statement.
  void expect_end();

  /// Reports at a token and stops reading.
  template <typename... Args>
  void fail(Code code, const Token& where, MessagePattern<std::type_identity_t<Args>...> pattern,
            const Args&... args) {
    fail(code, SourceRange{file_, where.begin, where.end}, pattern, args...);
  }
  template <typename... Args>
  void fail(Code code, SourceRange where, MessagePattern<std::type_identity_t<Args>...> pattern,
            const Args&... args) {
    if (!failed_) sink_.report(code, where, pattern, args...);
    stop();
  }
  /// Reports the token, where `expected` should be.
  void fail_expected(std::string_view expected, Code code = Code::malformed_dag_text);
  /// The text from a token to the last consumed one.
  SourceRange range_from(const Token& first) const {
    return {file_, first.begin, std::max(first.end, previous_.end)};
  }
  /// The last consumed token.
  const Token& previous() const { return previous_; }
  Context& context() const { return context_; }
  /// The byte after the last consumed token, and the whole text.
  std::uint32_t offset() const { return previous_.end; }
  std::string_view text() const { return text_; }

 private:
  enum class Fault : std::uint8_t { none, unended_string, unknown_character };
  struct Scanned {
    Token token;
    Fault fault = Fault::none;
  };
  /// The first token in [position, limit), which may end behind it; `end` if there is none.
  Scanned scan(std::size_t position, std::size_t limit = std::string_view::npos) const;
  Token token_at(std::size_t begin, std::size_t end, Kind kind) const;
  Scanned scan_string(std::size_t begin) const;
  std::size_t end_of_number(std::size_t begin) const;
  void lex();
  /// Continues at a byte of the file.
  void seek(std::uint32_t offset);
  void stop();

  std::optional<std::uint32_t> find_locations() const;
  std::optional<std::uint32_t> last_locations(std::size_t begin, std::size_t end) const;
  void read_location();
  LocId read_frames(const Token& number);
  SourceRange read_range();
  LineColumn read_position(bool is_end);
  std::uint32_t read_coordinate(std::string_view digits, std::string_view expected);

  FileId file_;
  Context& context_;
  DiagnosticSink& sink_;
  std::string_view text_;
  std::uint32_t position_ = 0;
  Token token_;
  Token previous_;
  bool failed_ = false;
  std::string unquoted_;
  std::unordered_map<std::uint32_t, LocId> locations_;     // by number
  std::uint32_t locations_begin_ = 0, locations_end_ = 0;  // equal without a table
  TextPlaces* places_ = nullptr;
};

}  // namespace piper
