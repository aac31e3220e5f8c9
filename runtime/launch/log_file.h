#pragma once
// A file that grows at its end, by whole records.
//
//   LogFile file;
//   if (auto failure = file.open("out/metrics.csv", LogFile::Begin::fresh, "no metrics would be kept")) ...;
//   if (auto failure = file.write("1,2.5\n", "the rows from step `1` on are lost")) ...;

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/failure.h"

namespace piper::runtime {

/// kOutputUnwritable: ``cannot write `PATH`: REASON; LOST``, and a hint about `--out`.
Failure unwritable_log(const std::string& path, const std::string& lost, const std::string& reason);

/// Makes a folder and those above it. A link to a folder is one.
std::optional<Failure> make_log_folder(const std::string& folder, const std::string& lost);
/// Makes a folder in that of `--out`; a link of its name is refused.
std::optional<Failure> make_folder_in(const std::string& out_folder, const std::string& name,
                                      const std::string& lost);

class LogFile {
 public:
  enum class Begin : std::uint8_t {
    fresh,       // the file must not exist
    after_those  // records of an earlier run, if there are any
  };

  LogFile() = default;
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;
  ~LogFile();

  /// Opens a plain file; refuses anything else, links too, without waiting for it. `lost` ends the
  /// message of a failure.
  std::optional<Failure> open(const std::string& path, Begin begin, const std::string& lost);
  /// Writes a record through to the system. A failure leaves no part of it in the file.
  std::optional<Failure> write(std::string_view record, const std::string& lost);
  /// The first bytes of the file, at most `bytes`.
  std::string beginning(std::size_t bytes) const;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int file_ = -1;
};

}  // namespace piper::runtime
