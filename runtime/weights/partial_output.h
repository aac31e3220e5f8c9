#pragma once
// A file, or a folder of files, that becomes visible as a whole: it is written beside its place
// under another name, made durable, and renamed.
//
//   std::optional<PartialOutput> output = PartialOutput::create_folder("out", failure);
//   write(output->path() + "/model.safetensors");
//   if (auto failure = output->commit()) ...;      // without it everything is removed

#include <optional>
#include <string>

#include "runtime/failure.h"

namespace piper::runtime {

class PartialOutput {
 public:
  /// A file, which may replace a plain one: then it keeps its permissions, and a link stays a link.
  /// Nothing with the reason in `failure` (kOutputUnwritable).
  static std::optional<PartialOutput> create_file(const std::string& path, Failure& failure);
  /// A folder with those that hold it. A folder of that name must be empty.
  static std::optional<PartialOutput> create_folder(const std::string& path, Failure& failure);
  ~PartialOutput();
  PartialOutput(PartialOutput&& other) noexcept;
  PartialOutput& operator=(PartialOutput&&) = delete;

  /// The path of the unfinished output. A file does not exist yet.
  const std::string& path() const { return partial_; }
  /// Renames it. The files are durable already.
  std::optional<Failure> commit();

 private:
  PartialOutput(std::string path, bool is_folder);

  std::string path_, partial_;  // `partial_`: empty after the commit
  bool is_folder_ = false;
  std::optional<unsigned> permissions_;  // of the file that is replaced
};

/// kOutputUnwritable.
Failure unwritable_output(const std::string& path, const std::string& reason);

}  // namespace piper::runtime
