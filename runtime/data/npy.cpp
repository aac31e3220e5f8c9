#include "runtime/data/npy.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "runtime/data/data_file.h"

namespace piper::runtime {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";

struct DescrRow {
  std::string_view text;  // without the order of bytes
  StoredType type;
};
constexpr DescrRow kDescrs[] = {
    {"f2", StoredType::f16}, {"f4", StoredType::f32}, {"f8", StoredType::f64},
    {"i1", StoredType::i8},  {"i2", StoredType::i16}, {"i4", StoredType::i32},
    {"i8", StoredType::i64}, {"u1", StoredType::u8},  {"u2", StoredType::u16},
    {"u4", StoredType::u32}, {"u8", StoredType::u64}, {"b1", StoredType::boolean},
};

/// Reads the Python literal. The functions return false with the reason.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, std::string& reason) : text_(text), reason_(reason) {}

  bool parse(NpyHeader& out) {
    if (!take('{')) return fail("its header does not begin with `{`");
    while (!take('}')) {
      std::string_view key;
      if (!string(key)) return fail("its header has a key that is no string");
      if (!take(':')) return fail("its header has no `:` after `" + shown_text(key) + '`');
      if (!entry(key, out)) return false;
      if (take(',')) continue;
      if (!take('}')) return fail("its header has no `,` or `}` after `" + shown_text(key) + '`');
      break;
    }
    space();
    if (!text_.empty()) return fail("its header goes on after its `}`");
    if (!descr_ || !order_ || !shape_)
      return fail("its header lacks `descr`, `fortran_order` or `shape`");
    const auto longer = [](std::int64_t dim) { return dim != 1; };
    if (column_major_ && std::count_if(out.dims.begin(), out.dims.end(), longer) > 1)
      return fail(
          "its numbers lie column by column: save `numpy.ascontiguousarray(x)`, whose rows lie "
          "side by side");
    return true;
  }

 private:
  bool fail(std::string reason) {
    reason_ = std::move(reason);
    return false;
  }

  void space() {
    while (!text_.empty() && (text_[0] == ' ' || text_[0] == '\n')) text_.remove_prefix(1);
  }
  bool take(char c) {
    space();
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  bool take_word(std::string_view word) {
    space();
    if (!text_.starts_with(word)) return false;
    text_.remove_prefix(word.size());
    return true;
  }
  /// Between quotes of either kind, without escapes.
  bool string(std::string_view& out) {
    space();
    if (text_.empty() || (text_[0] != '\'' && text_[0] != '"')) return false;
    const std::size_t end = text_.find(text_[0], 1);
    if (end == std::string_view::npos) return false;
    out = text_.substr(1, end - 1);
    text_.remove_prefix(end + 1);
    return out.find('\\') == std::string_view::npos;
  }

  /// One of the three entries, once.
  bool entry(std::string_view key, NpyHeader& out) {
    bool* const seen = key == "descr"           ? &descr_
                       : key == "fortran_order" ? &order_
                       : key == "shape"         ? &shape_
                                                : nullptr;
    if (seen == nullptr)
      return fail("its header has a key `" + shown_text(key) + "`, which no version has");
    if (*seen) return fail("its header has `" + shown_text(key) + "` twice");
    *seen = true;
    if (seen == &shape_) return shape(out.dims);
    if (seen == &descr_) return type(out.type);
    column_major_ = take_word("True");
    return column_major_ || take_word("False") ||
           fail("its `fortran_order` is neither `True` nor `False`");
  }

  bool type(StoredType& out) {
    std::string_view descr;
    if (!string(descr))
      return fail("it holds records: save each of their fields as an array of its own");
    std::string_view plain = descr;
    const char order = plain.empty() ? ' ' : plain[0];
    if (order == '<' || order == '>' || order == '|' || order == '=') plain.remove_prefix(1);
    const auto* const row = std::find_if(std::begin(kDescrs), std::end(kDescrs),
                                         [&](const DescrRow& r) { return r.text == plain; });
    if (row == std::end(kDescrs))
      return fail("it holds elements of the type `" + shown_text(descr) +
                  "`, and Piper reads integers, `bool`, `float16`, `float32` and `float64`");
    out = row->type;
    if (order == '>' && stored_type_bytes(out) > 1)
      return fail("its numbers are big-endian: save `x.astype('<" + std::string(plain) + "')`");
    return true;
  }

  bool shape(std::vector<std::int64_t>& out) {
    if (!take('(')) return fail("its `shape` is no tuple");
    while (!take(')')) {
      space();
      std::int64_t dim = 0;
      const auto [end, error] = std::from_chars(text_.data(), text_.data() + text_.size(), dim);
      if (error != std::errc() || dim < 0)
        return fail("its `shape` has a dimension that is no integer from 0 to 2^63 - 1");
      text_.remove_prefix(static_cast<std::size_t>(end - text_.data()));
      if (!text_.empty() && text_[0] == 'L') text_.remove_prefix(1);  // of Python 2
      out.push_back(dim);
      if (!take(',') && (space(), !text_.starts_with(')')))
        return fail("its `shape` is no tuple of integers");
    }
    return true;
  }

  std::string_view text_;
  std::string& reason_;
  bool descr_ = false, order_ = false, shape_ = false;  // seen
  bool column_major_ = false;
};

std::string count_text(std::uint64_t count) { return '`' + std::to_string(count) + '`'; }

}  // namespace

bool begins_as_npy(std::string_view bytes) { return bytes.starts_with(kMagic); }

std::optional<NpyHeader> read_npy_header(std::string_view start, std::uint64_t size,
                                         std::string& reason) {
  const auto fail = [&](std::string why) {
    reason = std::move(why);
    return std::nullopt;
  };
  if (!begins_as_npy(start)) return fail("it does not begin as the `.npy` format does");
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(start[i]); };
  if (start.size() < 10) return fail("it ends within its header");
  const std::uint32_t version = byte(6);
  if (version < 1 || version > 3 || byte(7) != 0)
    return fail("it has version `" + std::to_string(version) + '.' + std::to_string(byte(7)) +
                "` of the `.npy` format, and Piper reads `1.0`, `2.0` and `3.0`");
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  if (start.size() < 8 + length_bytes) return fail("it ends within its header");
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) length |= std::uint64_t{byte(8 + i)} << (8 * i);
  NpyHeader header;
  header.data_offset = 8 + length_bytes + length;
  if (header.data_offset > size) return fail("it ends within its header");
  if (header.data_offset > start.size())
    return fail("its header has " + count_text(length) + " bytes, and one of numbers has at most " +
                count_text(kMaxNpyHeader));
  if (!HeaderParser(start.substr(8 + length_bytes, length), reason).parse(header))
    return std::nullopt;
  const std::optional<std::uint64_t> bytes = stored_bytes(header.type, header.dims);
  if (!bytes) return fail("its `shape` describes more than 2^63 - 1 bytes");
  header.bytes = *bytes;
  if (header.bytes != size - header.data_offset)
    return fail("its header describes " + count_text(header.bytes) +
                " bytes of numbers, and it has " + count_text(size - header.data_offset));
  return header;
}

}  // namespace piper::runtime
