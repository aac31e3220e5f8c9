#include "ir/directive/text_reader.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "ir/tensor/infer.h"

namespace piper::directive {

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_name_char(char c) { return is_letter(c) || is_digit(c) || c == '.'; }

int hex_digit(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

/// The end of a location that starts at `begin`: its bracket closes outside strings, on the same
/// line.
std::size_t end_of_location(std::string_view text, std::size_t begin) {
  bool quoted = false;
  for (std::size_t i = begin; i < text.size() && text[i] != '\n'; ++i) {
    if (quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (text[i] == ')' && !quoted) {
      return i + 1;
    }
  }
  return begin;
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
  const char* const text = text_.data();
  const std::size_t size = text_.size();
  std::size_t i = position_;
  for (;;) {
    while (i < size && (text[i] == ' ' || text[i] == '\n' || text[i] == '\t' || text[i] == '\r'))
      ++i;
    if (i + 1 < size && text[i] == '/' && text[i + 1] == '/') {
      while (i < size && text[i] != '\n') ++i;
      continue;
    }
    break;
  }
  const std::size_t begin = i;
  const auto make = [&](Kind kind, std::size_t end) {
    token_ = {kind, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end),
              text_.substr(begin, end - begin)};
    position_ = static_cast<std::uint32_t>(end);
  };
  if (i >= size) return make(Kind::end, size);
  const char c = text[i];
  if (is_letter(c)) {
    while (i < size && is_name_char(text[i])) ++i;
    while (text[i - 1] == '.') --i;
    if (i - begin == 3 && text_.substr(begin, 4) == "loc(") {
      const std::size_t end = end_of_location(text_, begin);
      if (end != begin) return make(Kind::location, end);
    }
    return make(Kind::name, i);
  }
  if (is_digit(c) || (c == '-' && i + 1 < size && is_digit(text[i + 1]))) {
    ++i;
    while (i < size && is_digit(text[i])) ++i;
    if (i + 1 < size && text[i] == '.' && is_digit(text[i + 1])) {
      ++i;
      while (i < size && is_digit(text[i])) ++i;
    }
    if (i < size && text[i] == 'e') {
      std::size_t j = i + 1;
      if (j < size && (text[j] == '+' || text[j] == '-')) ++j;
      if (j < size && is_digit(text[j])) {
        i = j;
        while (i < size && is_digit(text[i])) ++i;
      }
    }
    return make(Kind::number, i);
  }
  if (c == '"') {
    ++i;
    while (i < size && text[i] != '"' && text[i] != '\n')
      i += text[i] == '\\' && i + 1 < size ? 2 : 1;
    if (i >= size || text[i] != '"') {
      make(Kind::string, std::min(i, size));
      return fail(Code::malformed_dag_text, token_, "this string has no closing quote");
    }
    return make(Kind::string, i + 1);
  }
  static constexpr std::string_view kPairs[] = {"->", "<=", ">=", "==", "!="};
  for (const std::string_view pair : kPairs) {
    if (text_.substr(begin, 2) == pair) return make(Kind::punctuation, begin + 2);
  }
  static constexpr std::string_view kPunctuation = "()[]{}<>=:,;.*+-@%#&";
  if (kPunctuation.find(c) == std::string_view::npos) {
    std::size_t end = begin + 1;
    while (end < size && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
    make(Kind::punctuation, end);
    return fail(Code::malformed_dag_text, token_, "unexpected character");
  }
  make(Kind::punctuation, begin + 1);
}

bool TextReader::accept(std::string_view text) {
  if (!at(text)) return false;
  next();
  return true;
}

void TextReader::expect(std::string_view text) {
  if (accept(text)) return;
  if (at_end()) {
    fail(Code::malformed_dag_text, token_, "the text ends where `{}` is expected", text);
  } else {
    fail(Code::malformed_dag_text, token_, "expected `{}`, found `{}`", text, token_.text);
  }
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
  if (at_end()) {
    fail(Code::malformed_dag_text, token_, "the text ends where {} is expected", what);
  } else {
    fail(Code::malformed_dag_text, token_, "expected {}, found `{}`", what, token_.text);
  }
  return "";
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
    if (at_end()) {
      fail(Code::malformed_dag_text, token_, "the text ends where {} is expected", what);
    } else {
      fail(Code::malformed_dag_text, token_, "expected {}, found `{}`", what, token_.text);
    }
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
    fail(Code::malformed_dag_text, token_, "expected {}, found `{}`", what, token_.text);
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

tensor::Type TextReader::type() {
  tensor::Type type;
  const Token start = token_;
  const std::optional<tensor::DType> dtype = tensor::parse_dtype(name("a type"));
  if (failed_) return type;
  if (!dtype) {
    fail(Code::unknown_dag_name, start, "`{}` is no element type", start.text);
    return type;
  }
  type.dtype = *dtype;
  expect("[");
  std::int64_t elements = 1;
  while (!failed_ && !at("]")) {
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
      return type;
    }
    elements *= dim.extent;
    type.dims.push_back(dim);
    if (type.dims.size() > tensor::kMaxDims)
      fail(Code::number_out_of_range, where, "this type has more than `{}` dimensions",
           tensor::kMaxDims);
    if (!at("]")) expect(",");
  }
  expect("]");
  return type;
}

LayoutId TextReader::layout(const Mesh& mesh, const tensor::Type& type) {
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
    if (mesh.find(axis) == mesh.axes.size())
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
  while (!failed_ && !at("]")) {
    const Token where = token_;
    const std::size_t axis = mesh.find(context_.symbols.find(name("an axis")));
    if (failed_) break;
    if (axis == mesh.axes.size()) {
      fail(Code::unknown_dag_name, where, "no axis is named `{}`", where.text);
      break;
    }
    if (set.at[axis] != DeviceSet::kWhole)
      fail(Code::repeated_dag_name, where, "axis `{}` occurs twice", where.text);
    expect(":");
    set.at[axis] = static_cast<std::int32_t>(
        integer("a coordinate", 0, std::int64_t{mesh.axes[axis].size} - 1));
    if (!at("]")) expect(",");
  }
  expect("]");
  return set;
}

LocId TextReader::location() {
  if (token_.kind != Kind::location) return {};
  const auto [entry, fresh] =
      locations_.try_emplace(llvm::StringRef(token_.text.data(), token_.text.size()), LocId());
  if (fresh) {
    std::string_view text = token_.text;
    const std::optional<LocId> loc = context_.locations.parse(text);
    if (!loc || !text.empty()) {
      fail(Code::malformed_dag_text, token_, "`{}` is not a location", token_.text);
      return {};
    }
    entry->second = *loc;
  }
  const LocId loc = entry->second;
  next();
  return loc;
}

LocId TextReader::location(const Token& declared) {
  const LocId written = location();
  if (places_ == nullptr) return written;
  const SourceRange range{file_, declared.begin, declared.end};
  places_->emplace(range, written);
  return context_.locations.intern(range);
}

void print_name(llvm::raw_ostream& os, std::string_view name) {
  bool plain = !name.empty() && is_letter(name.front()) && name.back() != '.';
  for (const char c : name) plain = plain && is_name_char(c);
  if (plain && name != "loc") {
    os << llvm::StringRef(name.data(), name.size());
  } else {
    print_string(os, name);
  }
}

void print_string(llvm::raw_ostream& os, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  os << '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      os << '\\' << c;
    } else if (c == '\n') {
      os << "\\n";
    } else if (byte < 0x20 || byte == 0x7F) {
      os << "\\x" << kHex[byte >> 4] << kHex[byte & 15];
    } else {
      os << c;
    }
  }
  os << '"';
}

void print_number(llvm::raw_ostream& os, double value) {
  char buffer[40];
  const auto [end, error] =
      std::to_chars(buffer, buffer + sizeof buffer, std::isnan(value) ? std::fabs(value) : value);
  os << llvm::StringRef(buffer, static_cast<std::size_t>(end - buffer));
}

void print_layout(llvm::raw_ostream& os, LayoutId layout, const Context& context) {
  if (layout.replicated()) return;
  const auto name = [](std::string_view text) {
    std::string quoted;
    llvm::raw_string_ostream to(quoted);
    print_name(to, text);
    return quoted;
  };
  os << '<' << piper::print(context.layouts[layout], context.symbols, name) << '>';
}

void print_device_set(llvm::raw_ostream& os, const DeviceSet& set, const Mesh& mesh,
                      const SymbolTable& symbols) {
  print_name(os, symbols.text(mesh.name));
  os << '[';
  bool first = true;
  for (std::size_t i = 0; i < set.at.size() && i < mesh.axes.size(); ++i) {
    if (set.at[i] == DeviceSet::kWhole) continue;
    if (!first) os << ", ";
    first = false;
    print_name(os, symbols.text(mesh.axes[i].name));
    os << ": " << set.at[i];
  }
  os << ']';
}

void print_type(llvm::raw_ostream& os, const tensor::Type& type, const SymbolTable& symbols) {
  const std::string_view dtype = tensor::dtype_name(type.dtype);
  os << llvm::StringRef(dtype.data(), dtype.size()) << '[';
  for (std::size_t i = 0; i < type.dims.size(); ++i) {
    if (i > 0) os << ", ";
    print_name(os, symbols.text(type.dims[i].name));
    os << ": " << type.dims[i].extent;
    if (type.dims[i].sampled) os << '*';
  }
  os << ']';
}

}  // namespace piper::directive
