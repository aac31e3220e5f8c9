#pragma once
// The bytes of a file or a pipe, or of all files below a folder in sorted order of their paths, one
// after the other.
//
// Guarantees: endless files are not read, only a pipe is waited for, and a pipe without a writer is
// waited for no longer than a writer needs that is started beside this process.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/failure.h"

namespace piper::runtime {

using Text = std::vector<unsigned char>;
struct ArrayRows;
struct TableInput;
class TokenFile;
enum class StoredType : std::uint8_t;

/// At most the first `limit` bytes. Empty, with the reason in `failure.message` (code
/// kDataUnreadable), on failure; the caller adds the location. Hidden files are left out.
std::optional<Text> read_text(const std::string& path, Failure& failure,
                              std::uint64_t limit = ~std::uint64_t{0});

/// The files of a text in their order: the file itself, or all files below a folder in sorted order
/// of their paths. Hidden files are left out; other entries that are no regular files are refused.
std::optional<std::vector<std::string>> files_below(const std::string& path, Failure& failure);

/// The size of a pipe is unknown.
inline constexpr std::uint64_t kUnknownSize = ~std::uint64_t{0};
/// The number of bytes that `read_text` would give, without reading files whose size is known. It
/// refuses the same paths.
std::optional<std::uint64_t> text_size(const std::string& path, Failure& failure);

/// Whether a text of this many bytes or tokens holds a window of `seq` of them and the one after it;
/// if not, the reason is in `failure` (code kDataTooShort). `unit`: `byte` or `token`.
bool holds_window(const std::string& path, std::uint64_t size, std::uint64_t seq, Failure& failure,
                  std::string_view unit = "byte");

/// The position of the first byte that is at least `bound` and not `ignored`.
std::optional<std::uint64_t> find_byte_from(std::span<const unsigned char> text, std::int64_t bound,
                                            std::optional<std::int64_t> ignored);

/// Data that was read or opened, so that one command reads each text and each table once: its early
/// check, its executors and the bigram model share them. For one thread.
class TextFiles {
 public:
  /// Null with the reason in `failure`.
  std::shared_ptr<const Text> read(const std::string& path, Failure& failure);
  /// The numbers of a file for these inputs (`array_file.h`); the location of a wrong number of a
  /// table is in `failure.place`.
  std::shared_ptr<const ArrayRows> arrays(const std::string& path,
                                          std::span<const TableInput> inputs, Failure& failure);
  /// Tokens of a file or of all files below a folder (`token_file.h`).
  std::shared_ptr<const TokenFile> tokens(const std::string& path, std::optional<StoredType> type,
                                          Failure& failure);

 private:
  std::map<std::string, std::shared_ptr<const Text>> texts_;
  std::map<std::string, std::shared_ptr<const ArrayRows>> arrays_;  // by path and inputs
  std::map<std::string, std::shared_ptr<const TokenFile>> tokens_;  // by path and type
};

}  // namespace piper::runtime
