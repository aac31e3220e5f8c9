#include "runtime/checkpoint/safetensors.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>

#include "runtime/checkpoint/json.h"
#include "runtime/read_at.h"

namespace piper::runtime {
namespace {

struct TypeRow {
  StoredType type;
  std::string_view name;
  std::uint64_t bytes;
  bool integer;
};
constexpr TypeRow kTypes[kNumStoredTypes] = {
    {StoredType::f64, "F64", 8, false},      {StoredType::f32, "F32", 4, false},
    {StoredType::f16, "F16", 2, false},      {StoredType::bf16, "BF16", 2, false},
    {StoredType::i64, "I64", 8, true},       {StoredType::i32, "I32", 4, true},
    {StoredType::i16, "I16", 2, true},       {StoredType::i8, "I8", 1, true},
    {StoredType::u64, "U64", 8, true},       {StoredType::u32, "U32", 4, true},
    {StoredType::u16, "U16", 2, true},       {StoredType::u8, "U8", 1, true},
    {StoredType::boolean, "BOOL", 1, false},
};

const TypeRow& row_of(StoredType type) { return kTypes[static_cast<std::size_t>(type)]; }

constexpr std::uint64_t kLengthBytes = 8;  // before the JSON text
constexpr std::string_view kMetadata = "__metadata__";

std::string quoted(std::string_view name) { return '`' + printable(name, 80) + '`'; }

std::string count_text(std::uint64_t count) { return '`' + std::to_string(count) + '`'; }

/// Reads the header of one file. The functions return false with the reason in the failure.
class HeaderReader {
 public:
  HeaderReader(int file, const std::string& path, Failure& failure)
      : file_(file), path_(path), failure_(failure) {}

  bool read(SafetensorsHeader& out) {
    std::string text;
    return find_size() && read_length() && read_text(text) && read_json(text, out) &&
           check_positions(out);
  }

  bool fail(const std::string& reason) {
    failure_ = {.code = kCheckpointUnreadable,
                .message = "cannot read `" + path_ + "`: " + reason,
                .hint = "use a file in the safetensors format that was written to its end"};
    return false;
  }

 private:
  bool fail(const StoredTensor& tensor, const std::string& reason) {
    return fail("the tensor " + quoted(tensor.name) + ' ' + reason);
  }

  bool find_size() {
    struct stat status{};
    if (fstat(file_, &status) != 0) return fail(std::strerror(errno));
    if (!S_ISREG(status.st_mode)) return fail("it is no plain file");
    size_ = static_cast<std::uint64_t>(status.st_size);
    return size_ >= kLengthBytes ||
           fail("it has " + count_text(size_) + (size_ == 1 ? " byte" : " bytes") +
                ", and the length of its header needs `8`");
  }

  bool take(std::uint64_t position, std::span<char> out) {
    const ReadCount read = read_at(file_, position, out.size(), out.data());
    if (read.error != 0) return fail(std::strerror(read.error));
    return read.bytes == out.size() || fail("it became shorter while it was read");
  }

  bool read_length() {
    char bytes[kLengthBytes];
    if (!take(0, bytes)) return false;
    for (std::size_t i = 0; i < kLengthBytes; ++i)
      length_ |= static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << (8 * i);
    if (length_ > kMaxSafetensorsHeader)
      return fail("its header would have " + count_text(length_) + " bytes, and at most " +
                  count_text(kMaxSafetensorsHeader) + " are legal");
    return length_ <= size_ - kLengthBytes ||
           fail("its header has " + count_text(length_) + " bytes, and the file ends after " +
                count_text(size_ - kLengthBytes) + " of them");
  }

  bool read_text(std::string& text) {
    text.resize(length_);
    if (!take(kLengthBytes, text)) return false;
    if (!text.starts_with('{')) return fail("its header does not begin with `{`");
    text.erase(text.find_last_not_of(' ') + 1);
    return text.ends_with('}') || fail("its header does not end with `}` and spaces");
  }

  bool read_json(const std::string& text, SafetensorsHeader& out) {
    std::string error;
    const std::optional<JsonValue> json = parse_json(text, error);
    if (!json) return fail("its header is no JSON: " + error);
    for (const auto& [name, value] : *json->as_object()) {
      const bool taken = name == kMetadata ? read_metadata(value, out.metadata)
                                           : read_tensor(name, value, out.tensors.emplace_back());
      if (!taken) return false;
    }
    out.data_offset = kLengthBytes + length_;
    return true;
  }

  bool read_metadata(const JsonValue& value, SafetensorsMetadata& out) {
    const JsonValue::Object* const members = value.as_object();
    if (!members) return fail("`__metadata__` is no object");
    for (const JsonMember& member : *members) {
      const std::string* const text = member.value.as_string();
      if (!text) return fail("`__metadata__` has " + quoted(member.name) + ", which is no string");
      out.emplace_back(member.name, *text);
    }
    return true;
  }

  bool read_tensor(const std::string& name, const JsonValue& value, StoredTensor& out) {
    out.name = name;
    if (name.empty()) return fail("a tensor has an empty name");
    if (name.size() > kMaxTensorName)
      return fail(out, "has a name of " + count_text(name.size()) + " bytes, and at most " +
                           count_text(kMaxTensorName) + " are legal");
    const JsonValue::Object* const members = value.as_object();
    if (!members) return fail(out, "is described by no object");
    const JsonValue* const dtype = value.find("dtype");
    const JsonValue* const shape = value.find("shape");
    const JsonValue* const offsets = value.find("data_offsets");
    if (!dtype || !shape || !offsets || members->size() != 3)
      return fail(out, "does not have exactly `dtype`, `shape` and `data_offsets`");
    return read_type(*dtype, out) && read_dims(*shape, out) && read_offsets(*offsets, out);
  }

  bool read_type(const JsonValue& value, StoredTensor& out) {
    const std::string* const name = value.as_string();
    if (!name) return fail(out, "has a `dtype` that is no string");
    const std::optional<StoredType> type = find_stored_type(*name);
    if (!type) return fail(out, "has the type " + quoted(*name) + ", which Piper does not know");
    out.type = *type;
    return true;
  }

  bool read_dims(const JsonValue& value, StoredTensor& out) {
    const JsonValue::Array* const dims = value.as_array();
    if (!dims) return fail(out, "has a `shape` that is no array");
    for (const JsonValue& dim : *dims) {
      const std::optional<std::int64_t> number = dim.as_signed();
      if (!number || *number < 0)
        return fail(out, "has a dimension that is no integer from 0 to 2^63 - 1");
      out.dims.push_back(*number);
    }
    return true;
  }

  bool read_offsets(const JsonValue& value, StoredTensor& out) {
    const JsonValue::Array* const offsets = value.as_array();
    const std::optional<std::uint64_t> none;
    const bool two = offsets && offsets->size() == 2;
    const auto begin = two ? (*offsets)[0].as_unsigned() : none;
    const auto end = two ? (*offsets)[1].as_unsigned() : none;
    if (!begin || !end || *begin > *end)
      return fail(out, "has `data_offsets` that are no ascending pair of integers");
    const std::optional<std::uint64_t> bytes = stored_bytes(out.type, out.dims);
    if (!bytes) return fail(out, "has dimensions whose product exceeds 2^63 - 1 bytes");
    if (*bytes != *end - *begin)
      return fail(out, "has " + count_text(*bytes) + " bytes by its shape, and " +
                           count_text(*end - *begin) + " by its `data_offsets`");
    out.begin = *begin;
    out.end = *end;
    return true;
  }

  /// Sorts the tensors by their positions, and checks that they cover the data exactly.
  bool check_positions(SafetensorsHeader& out) {
    std::stable_sort(out.tensors.begin(), out.tensors.end(),
                     [](const StoredTensor& a, const StoredTensor& b) {
                       return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
                     });
    std::uint64_t position = 0;
    for (const StoredTensor& tensor : out.tensors) {
      if (tensor.begin != position)
        return fail(tensor, "begins at byte " + count_text(tensor.begin) +
                                " of the data, and the tensor before it ends at byte " +
                                count_text(position));
      position = tensor.end;
    }
    const std::uint64_t data = size_ - out.data_offset;
    return position == data || fail("its header describes " + count_text(position) +
                                    " bytes of data, and the file has " + count_text(data));
  }

  int file_;
  const std::string& path_;
  Failure& failure_;
  std::uint64_t size_ = 0;    // of the file
  std::uint64_t length_ = 0;  // of the JSON text
};

void append_tensor(std::string& out, const StoredTensor& tensor) {
  append_json_string(out, tensor.name);
  out += ":{\"dtype\":\"";
  out += stored_type_name(tensor.type);
  out += "\",\"shape\":[";
  for (std::size_t i = 0; i < tensor.dims.size(); ++i)
    out += (i ? "," : "") + std::to_string(tensor.dims[i]);
  out += "],\"data_offsets\":[" + std::to_string(tensor.begin) + ',' + std::to_string(tensor.end) +
         "]}";
}

void append_metadata(std::string& out, const SafetensorsMetadata& metadata) {
  append_json_string(out, kMetadata);
  out += ":{";
  for (std::size_t i = 0; i < metadata.size(); ++i) {
    if (i) out += ',';
    append_json_string(out, metadata[i].first);
    out += ':';
    append_json_string(out, metadata[i].second);
  }
  out += '}';
}

}  // namespace

std::string_view stored_type_name(StoredType type) { return row_of(type).name; }

std::optional<StoredType> find_stored_type(std::string_view name) {
  for (const TypeRow& row : kTypes) {
    if (row.name == name) return row.type;
  }
  return std::nullopt;
}

std::uint64_t stored_type_bytes(StoredType type) { return row_of(type).bytes; }

bool is_integer(StoredType type) { return row_of(type).integer; }

StoredType stored_type_of(std::uint32_t dtype) {
  switch (static_cast<PiperDType>(dtype)) {
    case PIPER_F64: return StoredType::f64;
    case PIPER_F32: return StoredType::f32;
    case PIPER_I64: return StoredType::i64;
    case PIPER_BF16: return StoredType::bf16;
  }
  std::abort();
}

std::optional<PiperDType> dtype_of(StoredType type) {
  for (const PiperDType dtype : {PIPER_F64, PIPER_F32, PIPER_I64, PIPER_BF16}) {
    if (stored_type_of(dtype) == type) return dtype;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> stored_bytes(StoredType type, std::span<const std::int64_t> dims) {
  std::int64_t bytes = static_cast<std::int64_t>(stored_type_bytes(type));
  bool empty = false;
  for (const std::int64_t dim : dims) {
    if (dim < 0) return std::nullopt;
    empty |= dim == 0;
    if (dim > 0 && __builtin_mul_overflow(bytes, dim, &bytes)) return std::nullopt;
  }
  return empty ? 0 : static_cast<std::uint64_t>(bytes);
}

std::optional<SafetensorsHeader> read_safetensors_header(int file, const std::string& path,
                                                         Failure& failure) {
  HeaderReader reader(file, path, failure);
  try {
    std::optional<SafetensorsHeader> out(std::in_place);
    if (!reader.read(*out)) out.reset();
    return out;
  } catch (const std::bad_alloc&) {
    reader.fail("its header does not fit into memory");
    return std::nullopt;
  }
}

void lay_out(std::vector<StoredTensor>& tensors) {
  std::sort(tensors.begin(), tensors.end(), [](const StoredTensor& a, const StoredTensor& b) {
    const std::uint64_t a_bytes = stored_type_bytes(a.type), b_bytes = stored_type_bytes(b.type);
    return a_bytes != b_bytes ? a_bytes > b_bytes : a.name < b.name;
  });
  std::uint64_t position = 0;
  for (StoredTensor& tensor : tensors) {
    tensor.begin = position;
    position += stored_bytes(tensor.type, tensor.dims).value();
    tensor.end = position;
  }
}

std::string safetensors_header(std::span<const StoredTensor> tensors,
                               const SafetensorsMetadata& metadata) {
  std::string out(kLengthBytes, '\0');
  out += '{';
  if (!metadata.empty()) append_metadata(out, metadata);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (i > 0 || !metadata.empty()) out += ',';
    append_tensor(out, tensors[i]);
  }
  out += '}';
  while (out.size() % 8 != 0) out += ' ';
  const std::uint64_t length = out.size() - kLengthBytes;
  for (std::size_t i = 0; i < kLengthBytes; ++i)
    out[i] = static_cast<char>(length >> (8 * i) & 0xFF);
  return out;
}

}  // namespace piper::runtime
