#include "runtime/checkpoint/checkpoint.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

#include "runtime/checkpoint/checked_pieces.h"
#include "runtime/checkpoint/checkpoint_files.h"
#include "runtime/read_at.h"

namespace piper::runtime {
namespace {

/// A manifest has 11 bytes per 4 MiB: this is one of 400 TB.
constexpr std::uint64_t kMaxManifest = std::uint64_t{1} << 30;

Failure missing(std::string message, std::string hint) {
  return {.code = kCheckpointMissing, .message = std::move(message), .hint = std::move(hint)};
}

bool is_folder(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

bool has_manifest(const std::string& folder) {
  struct stat status{};
  return stat((folder + "/" + kManifestName).c_str(), &status) == 0;
}

std::string steps_text(const std::vector<std::uint64_t>& steps) {
  std::string text;
  for (const std::uint64_t step : steps) text += (text.empty() ? "" : ", ") + std::to_string(step);
  return text;
}

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

/// Opens a file of a checkpoint for reading. -1 with the reason in `reason`; a FIFO is not waited
/// for, and a link is not followed.
int open_file(const std::string& path, std::string& reason) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
  if (file < 0) reason = errno == ELOOP ? "it is a link" : std::strerror(errno);
  return file;
}

/// The text of an open manifest. Empty with the reason in `reason`.
std::optional<std::string> manifest_text(int file, std::string& reason) {
  const auto refuse = [&](const std::string& why) {
    reason = why;
    return std::nullopt;
  };
  struct stat status{};
  if (fstat(file, &status) != 0) return refuse(std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return refuse("it is no plain file");
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  if (bytes > kMaxManifest) return refuse("it is too large for a manifest");
  std::string text(bytes, '\0');
  const ReadCount read = read_at(file, 0, bytes, text.data());
  if (read.error != 0) return refuse(std::strerror(read.error));
  if (read.bytes < bytes) return refuse("it ends too early");
  return text;
}

/// The folder that holds a checkpoint.
std::string run_of(const std::string& folder) {
  const std::size_t slash = folder.rfind('/');
  const std::string name = slash == std::string::npos ? folder : folder.substr(slash + 1);
  if (name == "." || name == "..") return folder + "/..";
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : folder.substr(0, slash);
}

/// `run:300`, unless a folder has that name.
std::optional<std::uint64_t> step_behind_colon(const std::string& text, std::string& run) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos || colon + 1 == text.size() || is_folder(text))
    return std::nullopt;
  std::uint64_t step = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data() + colon + 1, end, step);
  if (error != std::errc() || stopped != end) return std::nullopt;
  run = text.substr(0, colon);
  return step;
}

}  // namespace

std::optional<FoundCheckpoint> find_checkpoint(const std::string& text, Failure& failure) {
  std::string run = text;
  const auto step = step_behind_colon(text, run);
  run = without_slashes(run);
  if (!step && has_manifest(run)) return FoundCheckpoint{run_of(run), run};
  if (!is_folder(run)) {
    failure = missing("there is no folder `" + run + "`",
                      "give the folder that was `--out` of the run to resume");
    return std::nullopt;
  }
  const std::vector<std::uint64_t> steps = complete_steps(run);
  if (steps.empty()) {
    failure = missing("`" + run + "` has no complete checkpoint",
                      "give the folder that was `--out` of the run to resume");
    return std::nullopt;
  }
  const std::uint64_t chosen = step.value_or(steps.back());
  if (std::find(steps.begin(), steps.end(), chosen) == steps.end()) {
    failure = missing("`" + run + "` has no checkpoint of step " + std::to_string(chosen),
                      "it has those of steps " + steps_text(steps));
    return std::nullopt;
  }
  return FoundCheckpoint{run, run + "/" + step_folder(chosen)};
}

std::optional<std::uint64_t> best_checkpoint(const std::string& run) {
  std::optional<std::uint64_t> best;
  double lowest = 0;
  for (const std::uint64_t step : complete_steps(run)) {
    Failure unreadable;
    const auto manifest = Checkpoint::manifest_of(run + "/" + step_folder(step), unreadable);
    const auto loss = manifest ? manifest->held_out_loss : std::nullopt;
    if (!loss || (best && *loss >= lowest)) continue;
    best = step;
    lowest = *loss;
  }
  return best;
}

Checkpoint::~Checkpoint() {
  for (const int file : files_) close(file);
}

std::unique_ptr<Checkpoint> Checkpoint::open(const std::string& folder, Failure& failure) {
  auto manifest = manifest_of(folder, failure);
  if (!manifest) return nullptr;
  std::unique_ptr<Checkpoint> checkpoint(new Checkpoint());
  checkpoint->folder_ = folder;
  checkpoint->manifest_ = std::move(*manifest);
  return checkpoint->read_headers(failure) ? std::move(checkpoint) : nullptr;
}

std::optional<Manifest> Checkpoint::manifest_of(const std::string& folder, Failure& failure) {
  const std::string path = folder + "/" + kManifestName;
  std::string reason;
  const int file = open_file(path, reason);
  std::optional<Manifest> manifest;
  if (file >= 0) {
    if (const auto text = manifest_text(file, reason)) manifest = parse_manifest(*text, reason);
    close(file);
  }
  if (!manifest) failure = unreadable_checkpoint(path, reason);
  return manifest;
}

bool Checkpoint::read_headers(Failure& failure) {
  for (std::size_t f = 0; f < manifest_.files.size(); ++f) {
    const ManifestFile& described = manifest_.files[f];
    const std::string path = folder_ + "/" + described.name;
    const auto refuse = [&](const std::string& reason) {
      failure = unreadable_checkpoint(path, reason);
      return false;
    };
    std::string reason;
    const int file = open_file(path, reason);
    if (file < 0) return refuse(reason);
    files_.push_back(file);
    struct stat status{};
    if (fstat(file, &status) != 0) return refuse(std::strerror(errno));
    if (S_ISREG(status.st_mode) && static_cast<std::uint64_t>(status.st_size) != described.bytes)
      return refuse("it has `" + std::to_string(status.st_size) +
                    "` bytes, and the manifest says `" + std::to_string(described.bytes) + "`");
    auto header = read_safetensors_header(file, path, failure);
    if (!header) return false;
    // A header that is damaged and still legal would look like that of another model.
    if (auto damaged = CheckedPieces(path, file, described).verify(header->data_offset)) {
      failure = std::move(*damaged);
      return false;
    }
    for (StoredTensor& stored : header->tensors) {
      Tensor tensor{f, stored, header->data_offset + stored.begin};
      if (tensor.position % stored_type_bytes(stored.type) != 0)
        return refuse("its tensor `" + stored.name +
                      "` does not begin at a multiple of its elements");
      if (!tensors_.emplace(stored.name, std::move(tensor)).second)
        return refuse("its tensor `" + stored.name + "` is also in another file");
    }
  }
  return true;
}

}  // namespace piper::runtime
