#pragma once
// Reads the tokens of `.pir` text: names, numbers, strings, punctuation and locations. White space
// and `//` comments separate tokens.
//
// Guarantees: linear time; any bytes are accepted; the first error is reported and ends reading
// (every later token is `end`), so that callers need no error paths of their own beside `failed()`.
//
//   TextReader reader(file, context, sink);
//   reader.expect("split");
//   Symbol dim = reader.symbol("a dimension");

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "ir/diagnostics/diagnostics.h"
#include "ir/mesh.h"
#include "ir/tensor/type.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/raw_ostream.h"

namespace piper::directive {

/// For each declaration of a text: its range in the text, and the location in a program that the
/// text states for it.
using TextPlaces = std::map<SourceRange, LocId>;

class TextReader {
 public:
  enum class Kind : std::uint8_t { name, number, string, punctuation, location, end };
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
  /// `f32[batch: 32*, seq: 128]`.
  tensor::Type type();
  /// `<dp: batch, tp: +>` of a value of that type; replicated if there is none.
  LayoutId layout(const Mesh& mesh, const tensor::Type& type);
  /// `cluster[pp: 1]`.
  DeviceSet device_set(const Mesh& mesh);
  /// An optional location; invalid if there is none.
  LocId location();
  /// The location of a declaration at a token; with `use_own_places`, the place of the token in
  /// this text.
  LocId location(const Token& declared);
  /// From here on declarations have their places in this text as locations; `places` receives the
  /// locations that the text states.
  void use_own_places(TextPlaces& places) { places_ = &places; }
  bool uses_own_places() const { return places_ != nullptr; }

  /// Reports at a token and stops reading.
  template <typename... Args>
  void fail(Code code, const Token& where, MessagePattern<std::type_identity_t<Args>...> pattern,
            const Args&... args) {
    if (!failed_) sink_.report(code, SourceRange{file_, where.begin, where.end}, pattern, args...);
    stop();
  }
  /// The last consumed token.
  const Token& previous() const { return previous_; }
  Context& context() const { return context_; }
  DiagnosticSink& sink() const { return sink_; }
  FileId file() const { return file_; }
  /// The byte after the last consumed token, and the whole text: for embedded text of another
  /// grammar.
  std::uint32_t offset() const { return previous_.end; }
  std::string_view text() const { return text_; }
  /// Continues at a byte of the file.
  void seek(std::uint32_t offset);
  /// Stops reading without a diagnostic of its own: one was reported elsewhere.
  void stop();

 private:
  void lex();

  FileId file_;
  Context& context_;
  DiagnosticSink& sink_;
  std::string_view text_;
  std::uint32_t position_ = 0;
  Token token_;
  Token previous_;
  bool failed_ = false;
  std::string unquoted_;
  llvm::StringMap<LocId> locations_;
  TextPlaces* places_ = nullptr;
};

/// The text of a name: quoted unless it consists of letters, digits, `_` and `.`.
void print_name(llvm::raw_ostream& os, std::string_view name);
void print_string(llvm::raw_ostream& os, std::string_view text);
/// `<dp: batch, tp: +>`; empty for a replicated value.
void print_layout(llvm::raw_ostream& os, LayoutId layout, const Context& context);
/// The shortest text that reads back as the same number.
void print_number(llvm::raw_ostream& os, double value);
void print_device_set(llvm::raw_ostream& os, const DeviceSet& set, const Mesh& mesh,
                      const SymbolTable& symbols);
void print_type(llvm::raw_ostream& os, const tensor::Type& type, const SymbolTable& symbols);

}  // namespace piper::directive
