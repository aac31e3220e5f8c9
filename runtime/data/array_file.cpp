#include "runtime/data/array_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <new>

#include "runtime/crc32.h"
#include "runtime/data/npy.h"
#include "runtime/data/zip.h"
#include "runtime/dtypes.h"
#include "runtime/half.h"
#include "runtime/kernel_math.h"

namespace piper::runtime {
namespace {

std::string count_text(std::uint64_t count) { return '`' + std::to_string(count) + '`'; }

// ---- numbers

template <typename Number>
Number plain(const unsigned char* from) {
  Number value{};
  std::memcpy(&value, from, sizeof value);
  return value;
}

/// Calls `use(number, position)` for numbers of a type, each as std::int64_t, std::uint64_t or
/// double, until it returns false; returns its last answer.
template <typename Use>
bool for_each_number(StoredType type, const unsigned char* from, std::uint64_t count,
                     const Use& use) {
  const auto all = [&](auto read, std::uint64_t bytes) {
    for (std::uint64_t k = 0; k < count; ++k) {
      if (!use(read(from + k * bytes), k)) return false;
    }
    return true;
  };
  const auto integers = [&]<typename Number>(Number) {
    return all([](const unsigned char* at) { return std::int64_t{plain<Number>(at)}; },
               sizeof(Number));
  };
  const auto floats = [&]<typename Number>(Number) {
    return all(
        [](const unsigned char* at) { return double{static_cast<float>(plain<Number>(at))}; },
        sizeof(Number));
  };
  switch (type) {
    case StoredType::f64: return all(plain<double>, 8);
    case StoredType::f32: return floats(float{});
    case StoredType::f16: return floats(Half{});
    case StoredType::bf16: return floats(piper_bf16{});
    case StoredType::u64: return all(plain<std::uint64_t>, 8);
    case StoredType::i64: return integers(std::int64_t{});
    case StoredType::i32: return integers(std::int32_t{});
    case StoredType::i16: return integers(std::int16_t{});
    case StoredType::i8: return integers(std::int8_t{});
    case StoredType::u32: return integers(std::uint32_t{});
    case StoredType::u16: return integers(std::uint16_t{});
    case StoredType::u8: return integers(std::uint8_t{});
    case StoredType::boolean:
      return all([](const unsigned char* at) { return std::int64_t{*at != 0 ? 1 : 0}; }, 1);
  }
  return false;
}

/// Converts a number to the element type of an input; false if it does not fit.
template <typename From, typename To>
bool convert(From value, To& out) {
  if constexpr (std::is_same_v<To, std::int64_t>) {
    if constexpr (std::is_same_v<From, double>) {
      return false;  // such a column is refused when it is opened
    } else if constexpr (std::is_same_v<From, std::uint64_t>) {
      if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
        return false;
      out = static_cast<std::int64_t>(value);
      return true;
    } else {
      out = value;
      return true;
    }
  } else if constexpr (std::is_same_v<To, double>) {
    out = static_cast<double>(value);
    return std::isfinite(out);
  } else {
    // A bf16 input is rounded once, from the number of the file in f32.
    const auto single = static_cast<float>(value);
    out = static_cast<To>(single);
    return std::isfinite(static_cast<float>(out));
  }
}

// ---- columns

Failure damaged(const std::string& path, const std::string& reason) {
  return {.code = kDataDamaged,
          .message = "cannot read `" + path + "`: " + reason,
          .hint = "give a file that was written to its end"};
}

Failure misfit(std::string message, std::string hint) {
  return {.code = kDataMismatch, .message = std::move(message), .hint = std::move(hint)};
}

/// An array of a file before it is bound to an input.
struct FoundArray {
  std::string name;
  StoredType type = StoredType::f64;
  std::vector<std::int64_t> dims = {};
  std::uint64_t offset = 0;
  std::shared_ptr<const unsigned char> memory = nullptr;
};

std::string shape_text(std::span<const std::int64_t> dims) {
  std::string text = "[";
  for (std::size_t d = 0; d < dims.size(); ++d)
    text += (d == 0 ? "" : ", ") + std::to_string(dims[d]);
  return text + ']';
}

/// Opens one file for some inputs. The functions return false with the reason in the failure.
class ArrayReader {
 public:
  ArrayReader(std::shared_ptr<const DataFile> file, std::span<const TableInput> inputs,
              Failure& failure)
      : file_(std::move(file)), inputs_(inputs), failure_(failure) {}

  bool read_npy(ArrayRows& out) {
    if (inputs_.size() != 1) {
      return fail(misfit('`' + file_->path() +
                             "` has one array without a name, and the model has " +
                             count_text(inputs_.size()) + " inputs",
                         "save the arrays by the names of the inputs: `numpy.savez(\"data.npz\", "
                         "x=x, label=label)`"));
    }
    NpyHeader header;
    if (!npy_header(0, file_->size(), "", header)) return false;
    FoundArray array{.name = std::string(inputs_[0].name),
                     .type = header.type,
                     .dims = header.dims,
                     .offset = header.data_offset};
    return bind(inputs_[0], array, out);
  }

  bool read_npz(ArrayRows& out) {
    std::string reason;
    const auto members = read_zip(*file_, reason);
    if (!members) return fail(damaged(file_->path(), reason));
    std::vector<std::string> names;
    for (const ZipMember& member : *members) {
      const bool array = member.name.ends_with(".npy");
      names.push_back(array ? member.name.substr(0, member.name.size() - 4) : member.name);
    }
    for (const TableInput& input : inputs_) {
      const auto found = std::find(names.begin(), names.end(), input.name);
      if (found == names.end()) return lacks(input, names);
      const ZipMember& member = (*members)[static_cast<std::size_t>(found - names.begin())];
      FoundArray array{.name = *found};
      if (!open_member(member, array) || !bind(input, array, out)) return false;
    }
    return true;
  }

  bool read_safetensors(ArrayRows& out) {
    Failure found;
    const auto header = read_safetensors_header(file_->descriptor(), file_->path(), found);
    if (!header) {
      found.code = kDataDamaged;
      return fail(std::move(found));
    }
    std::vector<std::string> names;
    for (const StoredTensor& tensor : header->tensors) names.push_back(tensor.name);
    for (const TableInput& input : inputs_) {
      const auto at = std::find(names.begin(), names.end(), input.name);
      if (at == names.end()) return lacks(input, names);
      const StoredTensor& tensor = header->tensors[static_cast<std::size_t>(at - names.begin())];
      FoundArray array{.name = tensor.name,
                       .type = tensor.type,
                       .dims = tensor.dims,
                       .offset = header->data_offset + tensor.begin};
      if (!bind(input, array, out)) return false;
    }
    return true;
  }

 private:
  bool fail(Failure failure) {
    failure_ = std::move(failure);
    return false;
  }

  bool lacks(const TableInput& input, std::span<const std::string> names) {
    std::string list;
    for (std::size_t i = 0; i < std::min<std::size_t>(names.size(), 8); ++i)
      list += (i == 0 ? "`" : ", `") + shown_text(names[i]) + "`";
    const std::string name(input.name);
    return fail(misfit('`' + file_->path() + "` has no array `" + name + "`: it has " +
                           (names.empty() ? "none" : list) + (names.size() > 8 ? " and more" : ""),
                       "the input `" + name + "` is read from the array of its name"));
  }

  bool npy_header(std::uint64_t offset, std::uint64_t size, const std::string& member,
                  NpyHeader& out) {
    std::string start(static_cast<std::size_t>(std::min<std::uint64_t>(size, kMaxNpyHeader)), '\0');
    if (auto failure = file_->read(offset, start.data(), start.size()))
      return fail(std::move(*failure));
    return npy_header(start, size, member, out);
  }
  bool npy_header(std::string_view start, std::uint64_t size, const std::string& member,
                  NpyHeader& out) {
    std::string reason;
    auto header = read_npy_header(start, size, reason);
    if (!header)
      return fail(damaged(
          file_->path(),
          member.empty() ? reason : "in its member `" + shown_text(member) + "`, " + reason));
    out = std::move(*header);
    return true;
  }

  bool open_member(const ZipMember& member, FoundArray& array) {
    NpyHeader header;
    std::string reason;
    if (!member.deflated) {
      // Its rows are read one by one, so that only now all of its bytes are seen.
      if (!verify_stored(*file_, member, reason)) return fail(damaged(file_->path(), reason));
      if (!npy_header(member.offset, member.bytes, member.name, header)) return false;
      array.offset = member.offset + header.data_offset;
    } else {
      auto bytes = inflated(*file_, member, reason);
      if (!bytes) return fail(damaged(file_->path(), reason));
      const auto held = std::make_shared<const std::vector<unsigned char>>(std::move(*bytes));
      const std::string_view start(reinterpret_cast<const char*>(held->data()),
                                   std::min(held->size(), kMaxNpyHeader));
      if (!npy_header(start, held->size(), member.name, header)) return false;
      array.memory = {held, held->data() + header.data_offset};
    }
    array.type = header.type;
    array.dims = header.dims;
    return true;
  }

  /// Checks an array against its input and the arrays before it.
  bool bind(const TableInput& input, const FoundArray& array, ArrayRows& out) {
    const std::string name =
        "the array `" + shown_text(array.name) + "` of `" + file_->path() + '`';
    if (input.integers && !is_integer(array.type) && array.type != StoredType::boolean) {
      return fail(misfit(name + " has elements of the type `" +
                             std::string(stored_type_name(array.type)) + "`, and the input `" +
                             std::string(input.name) + "` takes integers",
                         "save the array as integers: `x.astype(\"int64\")`"));
    }
    if (array.dims.empty()) {
      return fail(misfit(name + " is a single number, and the first dimension of an array is that "
                                "of the samples",
                         "save an array of one number or more per sample"));
    }
    std::uint64_t numbers = 1;
    for (const std::int64_t dim : std::span(array.dims).subspan(1))
      numbers *= static_cast<std::uint64_t>(dim);
    if (array.dims[0] != 0 && numbers != input.numbers) {
      return fail(misfit(name + " has the shape " + '`' + shape_text(array.dims) + "`, " +
                             count_text(numbers) + " numbers per sample, and the input `" +
                             std::string(input.name) + "` has " + count_text(input.numbers),
                         "give the model the sizes of the file"));
    }
    const auto rows = static_cast<std::uint64_t>(array.dims[0]);
    if (rows == 0) {
      return fail({.code = kDataTooShort,
                   .message = name + " has no sample",
                   .hint = "give at least one sample"});
    }
    if (!out.columns.empty() && rows != out.rows) {
      return fail(misfit(name + " has " + count_text(rows) + " samples, and `" +
                             out.columns[0].name + "` has " + count_text(out.rows),
                         "give every array the same first dimension"));
    }
    out.rows = rows;
    out.columns.push_back({.name = std::string(input.name),
                           .type = array.type,
                           .numbers = input.numbers,
                           .file = array.memory ? nullptr : file_,
                           .offset = array.offset,
                           .memory = array.memory});
    return true;
  }

  std::shared_ptr<const DataFile> file_;
  std::span<const TableInput> inputs_;
  Failure& failure_;
};

/// A table of text as columns in memory.
bool read_text_table(const std::string& path, std::span<const TableInput> inputs, ArrayRows& out,
                     Failure& failure) {
  const auto text = read_text(path, failure);
  const auto table = text ? read_table(path, *text, inputs, failure) : nullptr;
  if (!table) return false;
  out.rows = table->rows;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    ArrayColumn& column = out.columns.emplace_back();
    column.name = inputs[i].name;
    column.type = inputs[i].integers ? StoredType::i64 : StoredType::f64;
    column.numbers = inputs[i].numbers;
    const auto* const bytes = std::visit(
        [](const auto& values) { return reinterpret_cast<const unsigned char*>(values.data()); },
        table->values[i]);
    column.memory = {table, bytes};
  }
  return true;
}

/// How a file begins says its format. A length of a safetensors header is below 2^32, and text has
/// no zero bytes.
enum class Format : std::uint8_t { text, npy, npz, safetensors };
Format format_of(const std::string& path, std::string_view start) {
  if (begins_as_npy(start) || path.ends_with(".npy")) return Format::npy;
  if (begins_as_zip(start) || path.ends_with(".npz")) return Format::npz;
  const bool length = start.size() >= 8 && start.substr(4, 4) == std::string_view("\0\0\0\0", 4);
  return length || path.ends_with(".safetensors") ? Format::safetensors : Format::text;
}

bool read_any(const std::string& path, std::span<const TableInput> inputs, ArrayRows& out,
              Failure& failure) {
  if (std::error_code error; std::filesystem::is_directory(path, error)) {
    failure = {.code = kDataUnreadable,
               .message = "cannot read `" + path + "`: it is a folder",
               .hint = "name the file with the numbers"};
    return false;
  }
  // Only a regular file has a beginning that can be read twice.
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error) && format_of(path, "") == Format::text)
    return read_text_table(path, inputs, out, failure);
  auto file = DataFile::open(path, failure);
  if (!file) return false;
  std::string start(static_cast<std::size_t>(std::min<std::uint64_t>(file->size(), 8)), '\0');
  if (auto found = file->read(0, start.data(), start.size())) {
    failure = std::move(*found);
    return false;
  }
  ArrayReader reader(file, inputs, failure);
  switch (format_of(path, start)) {
    case Format::npy: return reader.read_npy(out);
    case Format::npz: return reader.read_npz(out);
    case Format::safetensors: return reader.read_safetensors(out);
    case Format::text: break;
  }
  return read_text_table(path, inputs, out, failure);
}

}  // namespace

std::shared_ptr<const ArrayRows> read_arrays(const std::string& path,
                                             std::span<const TableInput> inputs, Failure& failure) {
  auto rows = std::make_shared<ArrayRows>();
  rows->path = path;
  try {
    return read_any(path, inputs, *rows, failure) ? rows : nullptr;
  } catch (const std::bad_alloc&) {
    failure = {.code = kDataUnreadable,
               .message = "cannot read `" + path + "`: it does not fit into memory",
               .hint = "give a file of less samples"};
    return nullptr;
  }
}

std::optional<Failure> ArrayRows::read(std::uint32_t input, std::uint64_t row,
                                       const RowTarget& target) const {
  constexpr std::uint64_t kPart = 8192;  // bytes, a multiple of every element
  unsigned char part[kPart];
  const ArrayColumn& column = columns[input];
  const std::uint64_t width = stored_type_bytes(column.type);
  std::uint64_t begin = 0, inner = 0;  // the next number goes to begin + inner
  for (std::uint64_t first = 0; first < column.numbers;) {
    const std::uint64_t count = std::min(column.numbers - first, kPart / width),
                        at = (row * column.numbers + first) * width;
    const unsigned char* from = part;
    if (column.file) {
      if (auto failure = column.file->read(column.offset + at, part, count * width)) return failure;
    } else {
      from = column.memory.get() + at;
    }
    std::uint64_t wrong = 0;
    const bool fit = with_element(target.dtype, [&](auto zero) {
      auto* const out = static_cast<decltype(zero)*>(target.to);
      return for_each_number(column.type, from, count, [&](auto value, std::uint64_t k) {
        if (inner == target.inner) {
          inner = 0;
          begin += target.stride;
        }
        wrong = first + k;
        return convert(value, out[begin + inner++]);
      });
    });
    if (!fit) {
      return misfit("row `" + std::to_string(row) + "` of the array `" + column.name + "` of `" +
                        path + "` has a number that is not finite or does not fit: number `" +
                        std::to_string(wrong) + "` of the row",
                    "rows and numbers are counted from 0; give finite numbers that fit the "
                    "input's type");
    }
    first += count;
  }
  return column.file ? column.file->find_change() : std::nullopt;
}

void ArrayRows::read_ahead(std::uint32_t input, std::uint64_t row) const {
  const ArrayColumn& column = columns[input];
  const std::uint64_t bytes = column.numbers * stored_type_bytes(column.type);
  column.file->read_ahead(column.offset + row * bytes, bytes);
}

std::string ArrayRows::fingerprint_text() const {
  std::uint32_t crc = 0;
  const auto add = [&](std::uint32_t crc_behind, std::uint64_t bytes) {
    crc = crc32_joined(crc, crc_behind, bytes);
  };
  for (const ArrayColumn& column : columns) {
    // Equal bytes of another input, shape or type are other data.
    const std::string described = column.name + ' ' + std::string(stored_type_name(column.type)) +
                                  ' ' + std::to_string(column.numbers) + '\n';
    add(crc32_of(described.data(), described.size()), described.size());
    const std::uint64_t bytes = rows * column.numbers * stored_type_bytes(column.type);
    const std::optional<std::uint32_t> column_crc =
        column.file ? column.file->fingerprint(column.offset, bytes)
                    : std::optional(fingerprint_of(column.memory.get(), bytes));
    if (!column_crc) return std::to_string(rows) + " rows, which can no longer be read";
    add(*column_crc, bytes);
  }
  return std::to_string(rows) + " rows, crc32 " + crc32_text(crc);
}

std::shared_ptr<const ArrayRows> TextFiles::arrays(const std::string& path,
                                                   std::span<const TableInput> inputs,
                                                   Failure& failure) {
  std::string key = path;
  for (const TableInput& input : inputs)
    key += "\n" + std::string(input.name) + " " + std::to_string(input.numbers) +
           (input.integers ? "i"
            : input.single ? "s"
                           : "d");
  std::shared_ptr<const ArrayRows>& rows = arrays_[key];
  if (!rows) rows = read_arrays(path, inputs, failure);
  return rows;
}

}  // namespace piper::runtime
