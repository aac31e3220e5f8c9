#include "ir/text/text_reader.h"

#include <charconv>
#include <limits>

#include "ir/tensor/infer.h"

namespace piper {

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_char(char c) { return is_letter(c) || is_digit(c) || c == '.'; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

TextReader::TextReader(FileId file, Context& context, DiagnosticSink& sink)
    : file_(file), context_(context), sink_(sink), text_(context.locations.files().text(file)) {
  // A byte order mark, as editors on Windows write it.
  if (text_.starts_with("\xEF\xBB\xBF")) position_ = 3;
  lex();
}

void TextReader::stop() {
  failed_ = true;
  token_ = {Kind::end,
            static_cast<std::uint32_t>(text_.size()),
            static_cast<std::uint32_t>(text_.size()),
            {}};
  position_ = static_cast<std::uint32_t>(text_.size());
}

void TextReader::seek(std::uint32_t offset) {
  if (failed_) return;
  position_ = offset;
  lex();
}

void TextReader::next() {
  previous_ = token_;
  lex();
}

void TextReader::lex() {
  if (failed_) return;
  const Scanned scanned = scan(position_);
  token_ = scanned.token;
  position_ = token_.end;
  switch (scanned.fault) {
    case Fault::none: return;
    case Fault::unended_string:
      return fail(Code::malformed_dag_text, token_, "this string has no closing quote");
    case Fault::unknown_character:
      return fail(Code::malformed_dag_text, token_, "unexpected character");
  }
}

TextReader::Token TextReader::token_at(std::size_t begin, std::size_t end, Kind kind) const {
  return {kind, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end),
          text_.substr(begin, end - begin)};
}

TextReader::Scanned TextReader::scan(std::size_t position, std::size_t limit) const {
  const char* const text = text_.data();
  const std::size_t size = std::min(limit, text_.size());
  std::size_t i = position;
  for (;;) {
    while (i < size && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r'))
      ++i;
    if (i + 1 >= size || text[i] != '/' || text[i + 1] != '/') break;
    while (i < size && text[i] != '\n') ++i;
  }
  const std::size_t begin = i;
  if (i >= size) return {token_at(size, size, Kind::end)};
  const char c = text[i];
  if (is_letter(c)) {
    while (i < size && is_name_char(text[i])) ++i;
    while (text[i - 1] == '.') --i;
    return {token_at(begin, i, Kind::name)};
  }
  if (is_digit(c) || (c == '-' && i + 1 < size && is_digit(text[i + 1])))
    return {token_at(begin, end_of_number(begin), Kind::number)};
  if (c == '"') return scan_string(begin);
  static constexpr std::string_view kPairs[] = {"->", "<=", ">=", "==", "!="};
  for (const std::string_view pair : kPairs) {
    if (text_.substr(begin, 2) == pair) return {token_at(begin, begin + 2, Kind::punctuation)};
  }
  static constexpr std::string_view kPunctuation = "()[]{}<>=:,;.*+-@%#&";
  if (kPunctuation.find(c) != std::string_view::npos)
    return {token_at(begin, begin + 1, Kind::punctuation)};
  std::size_t end = begin + 1;
  while (end < size && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
  return {token_at(begin, end, Kind::punctuation), Fault::unknown_character};
}

std::size_t TextReader::end_of_number(std::size_t begin) const {
  const auto after_digits = [&](std::size_t i) {
    while (i < text_.size() && is_digit(text_[i])) ++i;
    return i;
  };
  const auto digit_at = [&](std::size_t i) { return i < text_.size() && is_digit(text_[i]); };
  std::size_t i = after_digits(begin + 1);
  if (i < text_.size() && text_[i] == '.' && digit_at(i + 1)) i = after_digits(i + 1);
  if (i < text_.size() && text_[i] == 'e') {
    const bool sign = i + 1 < text_.size() && (text_[i + 1] == '+' || text_[i + 1] == '-');
    const std::size_t exponent = i + (sign ? 2 : 1);
    if (digit_at(exponent)) i = after_digits(exponent);
  }
  return i;
}

TextReader::Scanned TextReader::scan_string(std::size_t begin) const {
  std::size_t i = begin + 1;
  const auto inside = [&] { return i < text_.size() && text_[i] != '\n'; };
  while (inside() && text_[i] != '"') {
    if (text_[i++] == '\\' && inside()) ++i;
  }
  if (inside()) return {token_at(begin, i + 1, Kind::string)};
  return {token_at(begin, i, Kind::string), Fault::unended_string};
}

bool TextReader::accept(std::string_view text) {
  if (!at(text)) return false;
  next();
  return true;
}

void TextReader::expect(std::string_view text) {
  if (!accept(text)) fail_expected("`" + std::string(text) + "`");
}

std::string_view TextReader::name(std::string_view what) {
  if (token_.kind == Kind::name) {
    const std::string_view text = token_.text;
    next();
    return text;
  }
  if (token_.kind == Kind::string) {
    unquoted_ = string(what);
    return unquoted_;
  }
  fail_expected(what);
  return "";
}

void TextReader::fail_expected(std::string_view expected, Code code) {
  if (at_end()) {
    fail(code, token_, "the text ends where {} is expected", expected);
  } else {
    fail(code, token_, "expected {}, found `{}`", expected, token_.text);
  }
}

std::string TextReader::string(std::string_view what) {
  std::string text;
  if (token_.kind != Kind::string) {
    if (at_end()) {
      fail(Code::malformed_dag_text, token_, "the text ends where {} is expected", what);
    } else {
      fail(Code::malformed_dag_text, token_, "expected {} in quotes, found `{}`", what,
           token_.text);
    }
    return text;
  }
  const std::string_view body = token_.text.substr(1, token_.text.size() - 2);
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (body[i] != '\\') {
      text += body[i];
      continue;
    }
    ++i;
    if (i < body.size() && body[i] == 'n') {
      text += '\n';
    } else if (i + 2 < body.size() && body[i] == 'x' && hex_digit(body[i + 1]) >= 0 &&
               hex_digit(body[i + 2]) >= 0) {
      text += static_cast<char>(hex_digit(body[i + 1]) * 16 + hex_digit(body[i + 2]));
      i += 2;
    } else if (i < body.size() && (body[i] == '"' || body[i] == '\\')) {
      text += body[i];
    } else {
      fail(Code::malformed_dag_text, token_,
           "a string knows the escapes `\\\"`, `\\\\`, `\\n` and `\\xHH`");
      return text;
    }
  }
  next();
  return text;
}

std::int64_t TextReader::integer(std::string_view what) {
  return integer(what, std::numeric_limits<std::int64_t>::min(),
                 std::numeric_limits<std::int64_t>::max());
}

std::int64_t TextReader::integer(std::string_view what, std::int64_t low, std::int64_t high) {
  std::int64_t value = 0;
  if (token_.kind != Kind::number) {
    fail_expected(what);
    return low > 0 ? low : 0;
  }
  const auto [end, error] =
      std::from_chars(token_.text.data(), token_.text.data() + token_.text.size(), value);
  if (error != std::errc() || end != token_.text.data() + token_.text.size()) {
    fail(Code::number_out_of_range, token_, "`{}` is not an integer of 64 bits", token_.text);
    return low > 0 ? low : 0;
  }
  if (value < low || value > high) {
    fail(Code::number_out_of_range, token_, "{} is `{}`, outside `{}` to `{}`", what, value, low,
         high);
    return low > 0 ? low : 0;
  }
  next();
  return value;
}

double TextReader::number(std::string_view what) {
  double value = 0;
  if (token_.kind == Kind::name && (token_.text == "inf" || token_.text == "nan")) {
    value = token_.text == "inf" ? std::numeric_limits<double>::infinity()
                                 : std::numeric_limits<double>::quiet_NaN();
    next();
    return value;
  }
  if (token_.kind == Kind::punctuation && token_.text == "-") {
    next();
    expect("inf");
    return -std::numeric_limits<double>::infinity();
  }
  if (token_.kind != Kind::number) {
    fail_expected(what);
    return 0;
  }
  const auto [end, error] =
      std::from_chars(token_.text.data(), token_.text.data() + token_.text.size(), value);
  if (error != std::errc()) {
    fail(Code::number_out_of_range, token_, "`{}` is not a number of 64 bits", token_.text);
    return 0;
  }
  next();
  return value;
}

tensor::DType TextReader::element_type() {
  const Token start = token_;
  const std::optional<tensor::DType> dtype = tensor::parse_dtype(name("a type"));
  if (!dtype) fail(Code::unknown_dag_name, start, "`{}` is no element type", start.text);
  return dtype.value_or(tensor::DType::f32);
}

tensor::Type TextReader::type() {
  tensor::Type type;
  type.dtype = element_type();
  if (failed_) return type;
  expect("[");
  std::int64_t elements = 1;
  list("]", [&] {
    const Token where = token_;
    tensor::Dim dim;
    dim.name = symbol("a dimension");
    expect(":");
    dim.extent = integer("an extent", 0, std::int64_t{1} << 48);
    dim.sampled = accept("*");
    if (type.find(dim.name))
      fail(Code::repeated_dag_name, where, "dimension `{}` occurs twice in this type", where.text);
    if (dim.extent > 0 && elements > (std::int64_t{1} << 48) / dim.extent) {
      fail(Code::number_out_of_range, where, "this type has more than `{}` elements",
           std::int64_t{1} << 48);
      return;
    }
    elements *= dim.extent;
    type.dims.push_back(dim);
    if (type.dims.size() > tensor::kMaxDims)
      fail(Code::number_out_of_range, where, "this type has more than `{}` dimensions",
           tensor::kMaxDims);
  });
  return type;
}

LayoutId TextReader::layout(const Mesh* mesh, const tensor::Type& type) {
  Layout layout;
  if (!accept("<")) return {};
  do {
    const Token where = token_;
    const Symbol axis = symbol("an axis");
    expect(":");
    const AxisLayout how = accept("+")      ? AxisLayout::partial()
                           : accept("flat") ? AxisLayout::flat_sharded()
                                            : AxisLayout::sharded(symbol("a dimension"));
    if (failed_) return {};
    if (mesh != nullptr && mesh->find(axis) == mesh->axes.size())
      return fail(Code::unknown_dag_name, where, "no axis is named `{}`", where.text), LayoutId();
    if (layout.on(axis) != AxisLayout())
      return fail(Code::repeated_dag_name, where, "`{}` shards this value twice", where.text),
             LayoutId();
    if (how.kind == LayoutKind::sharded && !type.find(how.dim)) {
      return fail(Code::unknown_dag_name, where, "this value has no dimension `{}` to shard",
                  context_.text(how.dim)),
             LayoutId();
    }
    layout.add(axis, how);
  } while (!failed_ && accept(","));
  expect(">");
  return failed_ ? LayoutId() : context_.layouts.intern(std::move(layout));
}

DeviceSet TextReader::device_set(const Mesh& mesh) {
  DeviceSet set;
  set.at.assign(mesh.axes.size(), DeviceSet::kWhole);
  const Token start = token_;
  const std::string_view mesh_name = name("a device set");
  if (!failed_ && mesh_name != context_.text(mesh.name)) {
    fail(Code::unknown_dag_name, start, "`{}` is not the mesh `{}`", start.text,
         context_.text(mesh.name));
  }
  expect("[");
  list("]", [&] {
    const Token where = token_;
    const std::size_t axis = mesh.find(context_.symbols.find(name("an axis")));
    if (failed_) return;
    if (axis == mesh.axes.size())
      return fail(Code::unknown_dag_name, where, "no axis is named `{}`", where.text);
    if (set.at[axis] != DeviceSet::kWhole)
      fail(Code::repeated_dag_name, where, "axis `{}` occurs twice", where.text);
    expect(":");
    set.at[axis] = static_cast<std::int32_t>(
        integer("a coordinate", 0, std::int64_t{mesh.axes[axis].size} - 1));
  });
  return set;
}

}  // namespace piper
