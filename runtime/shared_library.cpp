#include "runtime/shared_library.h"

#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>
#include <vector>

namespace piper::runtime {

namespace {

/// Reads the parts of a file that the loader maps, and the libraries that the loader opens with it.
class LibraryFile {
 public:
  explicit LibraryFile(const std::string& path)
      : file_(path, std::ios::binary | std::ios::ate),
        folder_(std::filesystem::path(path).parent_path().string()) {
    if (!file_ || file_.tellg() < 0) return;
    bytes_ = static_cast<std::uint64_t>(file_.tellg());
    broken_ = look();
  }
  /// Empty also if there is no file to read: dlopen reports that.
  const std::string& broken() const { return broken_; }
  std::vector<std::string> needs;     // names
  std::vector<std::string> searches;  // folders of its own

 private:
  template <typename T>
  bool read(std::uint64_t offset, T& to) {
    file_.clear();
    file_.seekg(static_cast<std::streamoff>(offset));
    return static_cast<bool>(file_.read(reinterpret_cast<char*>(&to), sizeof to));
  }
  std::string cut_off(std::uint64_t whole) const {
    return "is cut off: " + std::to_string(bytes_) + " bytes of " + std::to_string(whole);
  }

  std::string look() {
    if (bytes_ == 0) return "is empty";
    Elf64_Ehdr header{};
    if (!read(0, header)) return "is no shared library";
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
        header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
        header.e_phentsize != sizeof(Elf64_Phdr)) {
      return "is no shared library of 64 bits";
    }
    std::uint64_t end = header.e_phoff + std::uint64_t{header.e_phnum} * sizeof(Elf64_Phdr);
    if (bytes_ < end) return cut_off(end);
    segments_.resize(header.e_phnum);
    for (std::size_t s = 0; s < segments_.size(); ++s) {
      if (!read(header.e_phoff + s * sizeof(Elf64_Phdr), segments_[s])) return cut_off(end);
    }
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type == PT_LOAD) end = std::max(end, segment.p_offset + segment.p_filesz);
    }
    if (bytes_ < end) return cut_off(end);
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type == PT_DYNAMIC) look_for_others(segment);
    }
    return {};
  }

  void look_for_others(const Elf64_Phdr& segment) {
    std::vector<Elf64_Dyn> entries(segment.p_filesz / sizeof(Elf64_Dyn));
    std::uint64_t texts = 0;
    for (std::size_t e = 0; e < entries.size(); ++e) {
      if (!read(segment.p_offset + e * sizeof(Elf64_Dyn), entries[e])) return;
      if (entries[e].d_tag == DT_STRTAB) texts = offset_of(entries[e].d_un.d_ptr);
    }
    for (const Elf64_Dyn& entry : entries) {
      if (entry.d_tag == DT_NEEDED) needs.push_back(text_at(texts + entry.d_un.d_val));
      if (entry.d_tag == DT_RUNPATH || entry.d_tag == DT_RPATH)
        add_folders(text_at(texts + entry.d_un.d_val));
    }
  }
  std::uint64_t offset_of(std::uint64_t address) const {
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
          address < segment.p_vaddr + segment.p_filesz)
        return address - segment.p_vaddr + segment.p_offset;
    }
    return bytes_;
  }
  std::string text_at(std::uint64_t offset) {
    std::string text;
    file_.clear();
    file_.seekg(static_cast<std::streamoff>(offset));
    std::getline(file_, text, '\0');
    return text;
  }
  void add_folders(const std::string& list) {
    constexpr std::string_view kOrigin = "$ORIGIN";
    for (std::size_t at = 0; at <= list.size();) {
      const std::size_t end = std::min(list.find(':', at), list.size());
      std::string folder = list.substr(at, end - at);
      if (const std::size_t origin = folder.find(kOrigin); origin != std::string::npos)
        folder.replace(origin, kOrigin.size(), folder_);
      if (!folder.empty()) searches.push_back(std::move(folder));
      at = end + 1;
    }
  }

  std::ifstream file_;
  const std::string folder_;
  std::uint64_t bytes_ = 0;
  std::string broken_;
  std::vector<Elf64_Phdr> segments_;
};

/// The folders in which the loader looks for libraries of any file: LD_LIBRARY_PATH at the start of
/// the process, and its own folders.
std::vector<std::string> folders_of_loader() {
  void* const self = dlopen(nullptr, RTLD_NOW);
  Dl_serinfo size{};
  if (self == nullptr || dlinfo(self, RTLD_DI_SERINFOSIZE, &size) != 0) return {};
  std::vector<std::max_align_t> room(size.dls_size / sizeof(std::max_align_t) + 1);
  auto* const info = reinterpret_cast<Dl_serinfo*>(room.data());
  if (dlinfo(self, RTLD_DI_SERINFOSIZE, info) != 0 || dlinfo(self, RTLD_DI_SERINFO, info) != 0)
    return {};
  std::vector<std::string> folders;
  const Dl_serpath* const paths = info->dls_serpath;
  for (unsigned f = 0; f < info->dls_cnt; ++f) folders.emplace_back(paths[f].dls_name);
  return folders;
}

/// The first truncated file among `path` and the libraries it needs, each read once.
std::string broken_with_needed(const std::string& path, const std::vector<std::string>& folders,
                               std::set<std::string>& looked_at) {
  const LibraryFile library(path);
  if (!library.broken().empty()) return "`" + path + "` " + library.broken();
  for (const std::string& name : library.needs) {
    if (!looked_at.insert(name).second) continue;
    for (const auto* list : {&folders, &library.searches}) {
      const auto found = std::find_if(list->begin(), list->end(), [&](const std::string& folder) {
        std::error_code ignored;
        return std::filesystem::is_regular_file(folder + "/" + name, ignored);
      });
      if (found == list->end()) continue;
      if (std::string broken = broken_with_needed(*found + "/" + name, folders, looked_at);
          !broken.empty())
        return broken;
      break;
    }
  }
  return {};
}

}  // namespace

std::string broken_library(const std::string& path) {
  std::set<std::string> looked_at;
  return broken_with_needed(path, folders_of_loader(), looked_at);
}

void* open_shared_library(const std::string& path, int flags, std::string& reason) {
  if (path.find('/') != std::string::npos) {
    if (std::string broken = broken_library(path); !broken.empty()) {
      reason = std::move(broken);
      return nullptr;
    }
  }
  void* const library = dlopen(path.c_str(), flags);
  if (library != nullptr) return library;
  reason = loader_error();
  if (reason.starts_with(path + ": ")) reason.erase(0, path.size() + 2);
  reason = "`" + path + "` cannot be opened: " + reason;
  return nullptr;
}

}  // namespace piper::runtime
