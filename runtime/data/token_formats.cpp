#include "runtime/data/token_formats.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <limits>
#include <span>
#include <string_view>

#include "runtime/data/npy.h"
#include "runtime/data/zip.h"

namespace piper::runtime {
namespace {

/// A format of llm.c: its magic number, version and type.
struct HeaderRow {
  std::uint32_t magic, version;
  StoredType type;
};
constexpr HeaderRow kHeaders[] = {{20240520, 1, StoredType::u16}, {20240801, 7, StoredType::u32}};
constexpr std::uint32_t kEvalMagic = 20240522;  // of multiple-choice examples
constexpr std::uint64_t kHeaderBytes = 1024;

constexpr std::string_view kIndexMagic("MMIDIDX\0\0", 9);
constexpr std::uint64_t kIndexHeader = 34;
/// Megatron's code of a type is its position.
constexpr std::optional<StoredType> kIndexTypes[] = {
    std::nullopt,    StoredType::u8,  StoredType::i8,  StoredType::i16, StoredType::i32,
    StoredType::i64, StoredType::f64, StoredType::f32, StoredType::u16};

std::string count_text(std::uint64_t count) { return '`' + std::to_string(count) + '`'; }

std::uint64_t number(std::string_view bytes, std::size_t at, std::size_t width) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < width; ++i)
    value |= std::uint64_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return value;
}

/// Reads an array of a file in order, a part at a time.
class NumberReader {
 public:
  NumberReader(const DataFile& file, std::uint64_t offset, std::size_t width)
      : file_(file), offset_(offset), width_(width), part_(kPart * width, '\0') {}

  /// Number `i`; calls come in ascending order, and the array lies within the file.
  bool read(std::uint64_t i, std::uint64_t total, std::uint64_t& out,
            std::optional<Failure>& failure) {
    if (i % kPart == 0) {
      const std::uint64_t count = std::min<std::uint64_t>(kPart, total - i);
      failure = file_.read(offset_ + i * width_, part_.data(), count * width_);
      if (failure) return false;
    }
    out = number(part_, static_cast<std::size_t>(i % kPart) * width_, width_);
    return true;
  }

 private:
  static constexpr std::uint64_t kPart = 4096;
  const DataFile& file_;
  const std::uint64_t offset_;
  const std::size_t width_;
  std::string part_;
};

class TokenReader {
 public:
  TokenReader(const std::string& path, std::optional<StoredType> type, bool raw,
              std::vector<TokenRun>& runs, std::vector<std::shared_ptr<const DataFile>>& files,
              Failure& failure)
      : path_(path), given_(type), raw_(raw), runs_(runs), files_(files), failure_(failure) {}

  bool read() {
    const auto file = DataFile::open(path_, failure_);
    if (!file) return false;
    std::string start(static_cast<std::size_t>(std::min(file->size(), kHeaderBytes)), '\0');
    if (auto failure = file->read(0, start.data(), start.size())) return fail(std::move(*failure));
    if (const std::string index = index_of(path_); !index.empty() && has_index(index))
      return TokenReader(index, given_, raw_, runs_, files_, failure_).read();
    files_.push_back(file);
    if (start.starts_with(kIndexMagic)) return read_index(*file);
    if (begins_as_npy(start)) return read_npy(file);
    if (start.size() >= 4) {
      const std::uint64_t magic = number(start, 0, 4);
      for (const HeaderRow& row : kHeaders) {
        if (magic == row.magic) return read_header(file, start, row);
      }
      if (magic == kEvalMagic)
        return damaged("it holds llm.c's multiple-choice examples, which are no text");
    }
    return read_raw(file, start);
  }

 private:
  bool fail(Failure failure) {
    failure_ = std::move(failure);
    return false;
  }
  bool damaged(const std::string& reason) {
    return fail({.code = kDataDamaged,
                 .message = "cannot read `" + path_ + "`: " + reason,
                 .hint = "give a file of token ids that was written to its end"});
  }

  /// A type that the header says, against that of the caller.
  bool takes(StoredType type) {
    if (!is_integer(type))
      return damaged("it has elements of the type `" + std::string(stored_type_name(type)) +
                     "`, and token ids are integers");
    if (!given_ || *given_ == type) return true;
    return fail({.code = kDataMismatch,
                 .message = '`' + path_ + "` has ids of the type `" + token_type_name(type) +
                            "` by its header, and the `data` line says `dtype: " +
                            token_type_name(*given_) + '`',
                 .hint = "leave `dtype` out: it is for files without a header"});
  }

  /// Adds tokens, to the last run if they continue it.
  bool add(const std::shared_ptr<const DataFile>& file, StoredType type, std::uint64_t offset,
           std::uint64_t count) {
    if (count == 0) return true;
    const std::uint64_t first = runs_.empty() ? 0 : runs_.back().first + runs_.back().count;
    // The bytes of all files need not exist: sequences of an index may overlap.
    if (count > (std::uint64_t{1} << 62) - first)
      return damaged("it describes more than 2^62 tokens");
    if (!runs_.empty()) {
      TokenRun& last = runs_.back();
      if (last.file == file && last.offset + last.count * stored_type_bytes(type) == offset) {
        last.count += count;
        return true;
      }
    }
    runs_.push_back({file, type, offset, first, count});
    return true;
  }

  bool read_raw(const std::shared_ptr<const DataFile>& file, std::string_view start) {
    const bool named = path_.ends_with(".bin");
    if (!named && !(given_ && raw_)) {
      return fail({.code = kDataMismatch,
                   .message = '`' + path_ + "` has no header that says how it holds token ids",
                   .hint = begins_as_zip(start)
                               ? "`tokens` reads `.bin`, `.npy` and Megatron's `.idx`: save the "
                                 "ids with `numpy.save`"
                               : "write `dtype: u16` if it is a file of such numbers and nothing "
                                 "else; files named `.bin` are read so, too"});
    }
    const StoredType type = given_.value_or(StoredType::u16);
    const std::uint64_t width = stored_type_bytes(type);
    if (file->size() % width != 0)
      return damaged("it has " + count_text(file->size()) + " bytes, no multiple of the " +
                     count_text(width) + " of a `" + token_type_name(type) + '`');
    return add(file, type, 0, file->size() / width);
  }

  bool read_header(const std::shared_ptr<const DataFile>& file, std::string_view start,
                   const HeaderRow& row) {
    if (start.size() < kHeaderBytes) return damaged("it ends within the header of llm.c");
    const std::uint64_t version = number(start, 4, 4), count = number(start, 8, 4);
    if (version != row.version)
      return damaged("its header of llm.c has version " + count_text(version) +
                     ", and Piper reads " + count_text(row.version));
    const std::uint64_t bytes = file->size() - kHeaderBytes, width = stored_type_bytes(row.type);
    if (count > std::uint64_t{std::numeric_limits<std::int32_t>::max()} || bytes != count * width)
      return damaged("its header of llm.c describes " + count_text(count) + " tokens of " +
                     count_text(width) + " bytes, and it has " + count_text(bytes) +
                     " bytes of them");
    return takes(row.type) && add(file, row.type, kHeaderBytes, count);
  }

  bool read_npy(const std::shared_ptr<const DataFile>& file) {
    std::string start(
        static_cast<std::size_t>(std::min<std::uint64_t>(file->size(), kMaxNpyHeader)), '\0');
    if (auto failure = file->read(0, start.data(), start.size())) return fail(std::move(*failure));
    std::string reason;
    const auto header = read_npy_header(start, file->size(), reason);
    if (!header) return damaged(reason);
    if (header->dims.size() != 1)
      return damaged("its array has " + count_text(header->dims.size()) +
                     " dimensions, and a text of tokens has `1`");
    return takes(header->type) && add(file, header->type, header->data_offset,
                                      static_cast<std::uint64_t>(header->dims[0]));
  }

  static bool has_index(const std::string& index) {
    std::error_code error;
    if (!std::filesystem::is_regular_file(index, error)) return false;
    Failure ignored;
    const auto file = DataFile::open(index, ignored);
    char start[kIndexMagic.size()];
    return file && file->size() >= sizeof start && !file->read(0, start, sizeof start) &&
           std::string_view(start, sizeof start) == kIndexMagic;
  }

  /// Megatron's index: its path is `path_`.
  bool read_index(const DataFile& index) {
    if (!path_.ends_with(".idx"))
      return damaged("it is an index of Megatron, whose name ends in `.idx`");
    if (index.size() < kIndexHeader) return damaged("it ends within its header");
    std::string start(kIndexHeader, '\0');
    if (auto failure = index.read(0, start.data(), start.size())) return fail(std::move(*failure));
    const std::uint64_t version = number(start, 9, 8), code = number(start, 17, 1),
                        sequences = number(start, 18, 8), documents = number(start, 26, 8);
    if (version != 1)
      return damaged("its index of Megatron has version " + count_text(version) +
                     ", and Piper reads `1`");
    if (code >= std::size(kIndexTypes) || !kIndexTypes[code])
      return damaged("its index of Megatron has the type number " + count_text(code) +
                     ", and the numbers are `1` to `8`");
    if (!takes(*kIndexTypes[code])) return false;
    const std::uint64_t bytes = index.size() - kIndexHeader;
    const bool fits = sequences <= bytes / 12 && documents <= (bytes - 12 * sequences) / 8;
    const std::uint64_t behind = fits ? bytes - 12 * sequences - 8 * documents : bytes;
    if (fits && behind == sequences && sequences > 0)
      return damaged("it has a mode for each sequence, as indexes of pictures and text have");
    if (!fits || behind != 0)
      return damaged("its header describes " + count_text(sequences) + " sequences and " +
                     count_text(documents) + " documents, which are not its " + count_text(bytes) +
                     " bytes after the header");
    return read_documents(index, kIndexHeader + 12 * sequences, documents, sequences) &&
           read_sequences(index, sequences, *kIndexTypes[code]);
  }

  /// The list ascends from sequence to sequence. The text does not depend on it.
  bool read_documents(const DataFile& index, std::uint64_t offset, std::uint64_t documents,
                      std::uint64_t sequences) {
    NumberReader list(index, offset, 8);
    std::optional<Failure> failure;
    std::uint64_t before = 0, sequence = 0;
    for (std::uint64_t i = 0; i < documents; ++i) {
      if (!list.read(i, documents, sequence, failure)) return fail(std::move(*failure));
      if (sequence < before || sequence > sequences)
        return damaged("entry " + count_text(i) + " of its document list is no sequence from " +
                       count_text(before) + " to " + count_text(sequences));
      before = sequence;
    }
    return true;
  }

  bool read_sequences(const DataFile& index, std::uint64_t sequences, StoredType type) {
    const std::string data_path = path_.substr(0, path_.size() - 4) + ".bin";
    const auto data = DataFile::open(data_path, failure_);
    if (!data) return false;
    files_.push_back(data);
    NumberReader lengths(index, kIndexHeader, 4), offsets(index, kIndexHeader + 4 * sequences, 8);
    std::optional<Failure> failure;
    const std::uint64_t width = stored_type_bytes(type);
    for (std::uint64_t i = 0; i < sequences; ++i) {
      std::uint64_t length = 0, offset = 0;
      if (!lengths.read(i, sequences, length, failure) ||
          !offsets.read(i, sequences, offset, failure))
        return fail(std::move(*failure));
      const bool negative = length > std::uint64_t{std::numeric_limits<std::int32_t>::max()};
      if (negative || offset > data->size() || length > (data->size() - offset) / width)
        return damaged("its sequence " + count_text(i) + " does not lie within the " +
                       count_text(data->size()) + " bytes of `" + data_path + '`');
      if (!add(data, type, offset, length)) return false;
    }
    if (auto change = index.find_change()) return fail(std::move(*change));
    return true;
  }

  const std::string path_;
  const std::optional<StoredType> given_;
  const bool raw_;
  std::vector<TokenRun>& runs_;
  std::vector<std::shared_ptr<const DataFile>>& files_;
  Failure& failure_;
};

}  // namespace

std::string token_type_name(StoredType type) {
  std::string name(stored_type_name(type));
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

std::string index_of(const std::string& path) {
  if (!path.ends_with(".bin")) return {};
  return path.substr(0, path.size() - 4) + ".idx";
}

bool append_tokens(const std::string& path, std::optional<StoredType> type, bool raw,
                   std::vector<TokenRun>& runs, std::vector<std::shared_ptr<const DataFile>>& files,
                   Failure& failure) {
  return TokenReader(path, type, raw, runs, files, failure).read();
}

}  // namespace piper::runtime
