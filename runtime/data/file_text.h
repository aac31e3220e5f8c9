#pragma once
// The bytes of a file or a pipe, or of all files below a folder in sorted order of their paths, one after the other.
//
// Guarantees: nothing without end is read, nothing but a pipe is waited for, and a pipe that nobody writes to is waited for no longer than a writer needs that is started beside this process.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/failure.h"

namespace piper::runtime {

using Text = std::vector<unsigned char>;
struct Table;
struct TableInput;

/// At most the first `limit` bytes. Nothing with the reason in `failure.message` (code kDataUnreadable); the caller adds the place. Hidden files are left out.
std::optional<Text> read_text(const std::string& path, Failure& failure, std::uint64_t limit = ~std::uint64_t{0});

/// The size of a pipe: nobody knows.
inline constexpr std::uint64_t kUnknownSize = ~std::uint64_t{0};
/// How many bytes `read_text` would give, without reading those of a file that says its size. It refuses what that refuses.
std::optional<std::uint64_t> text_size(const std::string& path, Failure& failure);

/// Whether a text of so many bytes holds a window of `seq` bytes and the one behind it; if not, the reason is in `failure` (code kDataTooShort).
bool holds_window(const std::string& path, std::uint64_t bytes, std::uint64_t seq, Failure& failure);

/// Where the first byte of at least `bound` stands that is not `ignored`.
std::optional<std::uint64_t> find_byte_from(std::span<const unsigned char> text, std::int64_t bound, std::optional<std::int64_t> ignored);

/// Texts and tables that were read, so that one command reads each once: its early check, its executors and the bigram model share them. For one thread.
class TextFiles {
 public:
  /// Null with the reason in `failure`.
  std::shared_ptr<const Text> read(const std::string& path, Failure& failure);
  /// The numbers of a file for these inputs (`table.h`); of a wrong one the place in the file is in `failure.place`.
  std::shared_ptr<const Table> table(const std::string& path, std::span<const TableInput> inputs, Failure& failure);

 private:
  std::map<std::string, std::shared_ptr<const Text>> texts_;
  std::map<std::string, std::shared_ptr<const Table>> tables_;  // by path and inputs
};

}  // namespace piper::runtime
