#pragma once
// A text of token ids in files: raw numbers (`.bin`), llm.c's files with their header, `.npy` files
// of one dimension, and Megatron's pairs of `.idx` and `.bin`; or all such files below a folder, one
// after the other in sorted order of their paths.
//
// The tokens stay in the files, which are read at positions.
//
//   const auto tokens = TokenFile::open("train.bin", std::nullopt, failure);
//   if (auto failure = tokens->read(first, 128, 1, to)) ...;
//
// Formats: a raw file has no header, and the type of its ids is u16 unless the caller gives another;
// without a given type its name ends in `.bin`. llm.c: 256 i32, the first three of which are a magic
// number, a version and the number of tokens (dev/data/data_common.py). Megatron: `MMIDIDX\0\0`, u64
// version, u8 code of the type, u64 sequences, u64 documents, i32 lengths of the sequences, i64
// offsets of them in the `.bin`, i64 document list (megatron/core/datasets/indexed_dataset.py); the
// text is its sequences end to end.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/checkpoint/safetensors.h"
#include "runtime/data/data_file.h"

namespace piper::runtime {

/// Tokens that lie side by side in a file.
struct TokenRun {
  std::shared_ptr<const DataFile> file;
  StoredType type = StoredType::u16;
  std::uint64_t offset = 0;  // of the first one, in bytes
  std::uint64_t first = 0;   // its number in the text
  std::uint64_t count = 0;
};

class TokenFile {
 public:
  /// Null, with the reason in `failure` (kDataUnreadable, kDataDamaged, kDataMismatch, without a
  /// location). `type`: of the ids of a raw file; a header must agree with it.
  static std::shared_ptr<const TokenFile> open(const std::string& path,
                                               std::optional<StoredType> type, Failure& failure);

  /// The number of tokens.
  std::uint64_t size() const { return size_; }
  /// Writes tokens [first, first + count) to to[0], to[stride], and so on. They lie below `size()`.
  /// Fails, without a location, if a file changed (kDataChanged), or if an id is 2^63 or more
  /// (kDataMismatch). Allocates only for a failure.
  std::optional<Failure> read(std::uint64_t first, std::uint64_t count, std::uint64_t stride,
                              std::int64_t* to) const;
  /// Asks the system to read tokens into its cache.
  void read_ahead(std::uint64_t first, std::uint64_t count) const;
  /// `5000 tokens, u16, crc32 01234567`: the checksum is that of all files, with their headers and
  /// indexes.
  std::string fingerprint_text() const;

  /// The place of a token, for messages: `corpus.bin` and its number among the tokens of this file.
  struct Position {
    std::string path;
    std::uint64_t token = 0;
  };
  Position position(std::uint64_t token) const;

 private:
  /// The last run that begins at or before a token.
  std::vector<TokenRun>::const_iterator run_of(std::uint64_t token) const;

  std::vector<TokenRun> runs_;  // none is empty
  std::vector<std::shared_ptr<const DataFile>> files_;
  std::uint64_t size_ = 0;
};

/// The type of a number of PiperTokenType; none if the file says it.
std::optional<StoredType> token_type_of(std::uint32_t type);
/// `u16`.
std::string token_type_name(StoredType type);

/// An id that is at least `bound` and not `ignored`, among the first `limit` tokens.
struct ForeignToken {
  std::uint64_t token = 0;
  std::int64_t id = 0;
};
/// Empty, with the reason in `failure`, also if the tokens cannot be read.
std::optional<ForeignToken> find_token_from(const TokenFile& tokens, std::uint64_t limit,
                                            std::int64_t bound, std::optional<std::int64_t> ignored,
                                            std::optional<Failure>& failure);

}  // namespace piper::runtime
