// The table of locations at the end of a text, and the references to it.

#include <charconv>
#include <limits>

#include "ir/text/text_reader.h"

namespace piper {

namespace {

constexpr std::int64_t kMax32 = std::numeric_limits<std::int32_t>::max();
constexpr std::string_view kWord = "locations";

}  // namespace

/// The last `locations {` among the lines [begin, end). No token spans two lines, so a line that is
/// read from its first byte has the tokens of the whole text.
std::optional<std::uint32_t> TextReader::last_locations(std::size_t begin, std::size_t end) const {
  std::optional<std::uint32_t> last;
  for (Token token = scan(begin, end).token; token.kind != Kind::end;
       token = scan(token.end, end).token) {
    const bool is_word = token.kind == Kind::name && token.text == kWord;
    if (is_word && scan(token.end).token.text == "{") last = token.begin;
  }
  return last;
}

/// The place of the table: the last one, because it ends the text.
std::optional<std::uint32_t> TextReader::find_locations() const {
  for (std::size_t end = text_.size();;) {
    const std::size_t word = text_.substr(0, end).rfind(kWord);
    if (word == std::string_view::npos) return std::nullopt;
    const std::size_t line = text_.substr(0, word).rfind('\n') + 1;  // 0 if there is none
    const std::size_t mark = line == 0 && text_.starts_with("\xEF\xBB\xBF") ? 3 : 0;
    if (const auto found = last_locations(line + mark, end)) return found;
    if (line == 0) return std::nullopt;
    end = line;
  }
}

void TextReader::read_locations() {
  const std::optional<std::uint32_t> begin = failed_ ? std::nullopt : find_locations();
  if (!begin) return;
  const Token token = token_, previous = previous_;
  const std::uint32_t position = position_;
  seek(*begin);
  next();
  expect("{");
  while (!failed_ && !at("}")) read_location();
  expect("}");
  if (failed_) return;
  locations_begin_ = *begin;
  locations_end_ = previous_.end;
  token_ = token;
  previous_ = previous;
  position_ = position;
}

/// A line, a column, or the number of a location: from 1 on.
std::uint32_t TextReader::read_coordinate(std::string_view digits, std::string_view expected) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (token_.kind != Kind::number || error != std::errc() || end != digits.data() + digits.size() ||
      value == 0 || value > kMax32) {
    fail_expected(expected, Code::wrong_dag_location);
    return 1;
  }
  next();
  return value;
}

/// `3:5`; the end of a range is written `-3:9`, whose first token is the number `-3`.
LineColumn TextReader::read_position(bool is_end) {
  LineColumn position;
  const bool sign = token_.text.starts_with('-');
  if (is_end && !sign) {
    fail_expected("`-` and the end of the range", Code::wrong_dag_location);
    return position;
  }
  position.line = read_coordinate(token_.text.substr(is_end ? 1 : 0), "a line of at least `1`");
  expect(":");
  position.column = read_coordinate(token_.text, "a column of at least `1`");
  return position;
}

/// `library "std/schedules/gpipe.pipe":4:21-4:42`, or `unknown`.
SourceRange TextReader::read_range() {
  if (accept("unknown")) return {};
  const bool library = accept("library");
  if (token_.kind != Kind::string) {
    fail_expected("the name of a file in quotes", Code::wrong_dag_location);
    return {};
  }
  const std::string name = string("a file");
  expect(":");
  const LineColumn begin = read_position(false);
  const Token last = token_;
  const LineColumn end = read_position(true);
  if (!failed_ && end < begin)
    fail(Code::wrong_dag_location, last, "a range ends before it begins");
  if (failed_) return {};
  SourceTable& files = context_.locations.files();
  const FileId file = files.add_without_text(name, library);
  return {file, files.offset(file, begin), files.offset(file, end)};
}

/// The ranges of a location, innermost first.
LocId TextReader::read_frames(const Token& number) {
  std::vector<SourceRange> ranges;
  bool known = false;
  do {
    ranges.push_back(read_range());
    known = known || ranges.back().valid();
  } while (!failed_ && accept("from"));
  if (!known) fail(Code::wrong_dag_location, number, "location `{}` names no file", number.text);
  if (failed_) return {};
  LocId loc;
  for (auto range = ranges.rbegin(); range != ranges.rend(); ++range)
    loc = context_.locations.intern(*range, loc);
  return loc;
}

void TextReader::read_location() {
  const Token number = token_;
  const std::uint32_t value = read_coordinate(number.text, "a location number of at least `1`");
  const LocId loc = read_frames(number);
  if (!failed_ && !locations_.try_emplace(value, loc).second) {
    fail(Code::wrong_dag_location, number, "the table has location `{}` twice", number.text);
  }
}

LocId TextReader::location() {
  if (token_.kind == Kind::name && token_.text == "loc" && text_.substr(token_.end, 1) == "(") {
    fail(
        Code::wrong_dag_location, token_,
        "a line refers to its location by a number: write `#1`, and `locations { 1 \"net.pipe\":7:5-7:30 }` at the end of the text");
    return {};
  }
  if (!accept("#")) return {};
  const Token number = token_;
  const std::uint32_t value = read_coordinate(number.text, "a location number of at least `1`");
  if (failed_) return {};
  const auto found = locations_.find(value);
  if (found != locations_.end()) return found->second;
  if (locations_begin_ == locations_end_) {
    fail(Code::wrong_dag_location, number,
         "the text has no table of locations, and so no location `{}`", number.text);
  } else {
    fail(Code::wrong_dag_location, number, "the table of locations has no `{}`", number.text);
  }
  return {};
}

LocId TextReader::location(const Token& declared) {
  const LocId written = location();
  if (places_ == nullptr) return written;
  const SourceRange range{file_, declared.begin, declared.end};
  places_->emplace(range, written);
  return context_.locations.intern(range);
}

void TextReader::expect_end() {
  const bool has_table =
      locations_begin_ != locations_end_ && token_.begin == locations_begin_ && !at_end();
  if (has_table) seek(locations_end_);
  if (failed_ || at_end()) return;
  if (has_table || at(kWord)) {
    fail(Code::wrong_dag_location, token_, "the table of locations ends the text");
  } else {
    fail(Code::malformed_dag_text, token_, "`{}` begins no statement that may stand here",
         token_.text);
  }
}

}  // namespace piper
