#include "runtime/weights/weight_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <set>

#include "runtime/checkpoint/checkpoint_files.h"
#include "runtime/checkpoint/json.h"
#include "runtime/crc32.h"
#include "runtime/read_at.h"

namespace piper::runtime {
namespace {

constexpr const char* kModelName = "model.safetensors";
/// The index of a model of 10^6 tensors has fewer bytes.
constexpr std::uint64_t kMaxIndex = 100'000'000;

/// Opens a file without waiting for the writer of a FIFO; -1, with errno.
int open_for_reading(const std::string& path) {
  return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

constexpr const char* kBecameShorter = "it became shorter while it was read";

/// Whether a name of an index is that of a file beside it.
bool is_file_name(std::string_view name) {
  return !name.empty() && name.size() <= 255 && name.front() != '.' &&
         std::none_of(name.begin(), name.end(), [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return c == '/' || c == '\\' || byte < 0x20 || byte == 0x7f;
         });
}

bool exists(const std::string& path) {
  struct stat status{};
  return lstat(path.c_str(), &status) == 0;
}

}  // namespace

std::string shown_name(std::string_view name) { return '`' + printable(name, 120) + '`'; }

Failure unreadable_weights(const std::string& path, const std::string& reason) {
  return {.code = kWeightsUnreadable,
          .message = "cannot read `" + path + "`: " + reason,
          .hint =
              "name a file in the safetensors format, or a folder with `model.safetensors` or "
              "`model.safetensors.index.json`"};
}

std::optional<std::string> read_plain_file(const std::string& path, std::uint64_t max_bytes,
                                           std::string& reason) {
  const int file = open_for_reading(path);
  struct stat status{};
  if (file < 0 || fstat(file, &status) != 0) {
    reason = std::strerror(errno);
    if (file >= 0) close(file);
    return std::nullopt;
  }
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  std::optional<std::string> text;
  if (!S_ISREG(status.st_mode)) {
    reason = "it is no plain file";
  } else if (bytes > max_bytes) {
    reason = "it has `" + std::to_string(bytes) + "` bytes, and at most `" +
             std::to_string(max_bytes) + "` are legal";
  } else {
    text.emplace(bytes, '\0');
    const ReadCount read = read_at(file, 0, bytes, text->data());
    if (read.bytes < bytes) {
      reason = read.error != 0 ? std::strerror(read.error) : kBecameShorter;
      text.reset();
    }
  }
  close(file);
  return text;
}

std::unique_ptr<WeightFiles> WeightFiles::open(const std::string& path, Failure& failure) {
  try {
    std::unique_ptr<WeightFiles> files(new WeightFiles(path));
    struct stat status{};
    if (stat(path.c_str(), &status) != 0) {
      failure = unreadable_weights(path, std::strerror(errno));
      return nullptr;
    }
    files->is_folder_ = S_ISDIR(status.st_mode);
    const bool taken = files->is_folder_ ? files->open_folder(failure)
                                         : files->add_file(path, path, nullptr, failure);
    return taken ? std::move(files) : nullptr;
  } catch (const std::bad_alloc&) {
    failure = unreadable_weights(path, "its description does not fit into memory");
    return nullptr;
  }
}

WeightFiles::~WeightFiles() {
  for (const File& file : files_) close(file.descriptor);
}

bool WeightFiles::open_folder(Failure& failure) {
  const std::string model = path_ + "/" + kModelName, index_path = path_ + "/" + kIndexName;
  if (exists(model)) return add_file(model, kModelName, nullptr, failure);
  if (!exists(index_path)) {
    failure = unreadable_weights(
        path_, "it has neither `" + std::string(kModelName) + "` nor `" + kIndexName + "`");
    return false;
  }
  Index index;
  return read_index(index_path, index, failure) && open_files(index, failure);
}

bool WeightFiles::read_index(const std::string& path, Index& index, Failure& failure) {
  const auto refuse = [&](const std::string& reason) {
    failure = unreadable_weights(path, reason);
    return false;
  };
  std::string reason;
  const auto text = read_plain_file(path, kMaxIndex, reason);
  if (!text) return refuse(reason);
  const auto json = parse_json(*text, reason);
  if (!json) return refuse("it is no JSON: " + reason);
  const JsonValue* const map = json->find("weight_map");
  const JsonValue::Object* const entries = map ? map->as_object() : nullptr;
  if (entries == nullptr) return refuse("it has no object `weight_map`");
  for (const JsonMember& entry : *entries) {
    const std::string* const file = entry.value.as_string();
    if (file == nullptr || !is_file_name(*file))
      return refuse("its tensor " + shown_name(entry.name) + " is in no file beside it");
    index.emplace(entry.name, *file);
  }
  return true;
}

bool WeightFiles::open_files(const Index& index, Failure& failure) {
  std::set<std::string> names;
  for (const auto& [tensor, file] : index) names.insert(file);
  for (const std::string& name : names) {
    if (!add_file(path_ + "/" + name, name, &index, failure)) return false;
  }
  for (const auto& [tensor, file] : index) {
    if (tensors_.contains(tensor)) continue;
    failure = unreadable_weights(path_ + "/" + file, "it has no tensor " + shown_name(tensor) +
                                                         ", and the index says that it does");
    return false;
  }
  return true;
}

bool WeightFiles::add_file(const std::string& path, const std::string& name, const Index* index,
                           Failure& failure) {
  const auto refuse = [&](const std::string& reason) {
    failure = unreadable_weights(path, reason);
    return false;
  };
  const int descriptor = open_for_reading(path);
  if (descriptor < 0) return refuse(std::strerror(errno));
  files_.push_back({path, descriptor});
  auto header = read_safetensors_header(descriptor, path, failure);
  if (!header) {
    failure.code = kWeightsUnreadable;
    return false;
  }
  for (StoredTensor& stored : header->tensors) {
    if (index != nullptr) {
      const auto entry = index->find(stored.name);
      if (entry == index->end())
        return refuse("its tensor " + shown_name(stored.name) + " is not in the index");
      if (entry->second != name)
        return refuse("it has the tensor " + shown_name(stored.name) +
                      ", and the index says that " + shown_name(entry->second) + " has it");
    }
    Tensor tensor{files_.size() - 1, stored, header->data_offset + stored.begin};
    tensors_.emplace(stored.name, std::move(tensor));
  }
  return true;
}

std::uint32_t WeightFiles::fingerprint() const {
  std::string text;
  for (const auto& [name, tensor] : tensors_) {
    text += name + '\0' + std::string(stored_type_name(tensor.stored.type));
    for (const std::int64_t dim : tensor.stored.dims) text += ' ' + std::to_string(dim);
    text += ' ' + std::to_string(tensor.file) + ' ' + std::to_string(tensor.position) + '\n';
  }
  return crc32_of(text.data(), text.size());
}

std::optional<Failure> WeightFiles::read(std::size_t file, std::uint64_t position,
                                         std::uint64_t bytes, void* to) const {
  const ReadCount read = read_at(files_[file].descriptor, position, bytes, to);
  if (read.bytes == bytes) return std::nullopt;
  return unreadable_weights(files_[file].path,
                            read.error != 0 ? std::strerror(read.error) : kBecameShorter);
}

}  // namespace piper::runtime
