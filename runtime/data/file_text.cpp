#include "runtime/data/file_text.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>
#include <system_error>

namespace piper::runtime {
namespace {

namespace fs = std::filesystem;

bool append(const std::string& path, std::vector<unsigned char>& out, std::string& reason) {
  std::FILE* const file = std::fopen(path.c_str(), "rb");
  if (!file) {
    reason = std::strerror(errno);
    return false;
  }
  unsigned char buffer[1 << 16];
  for (std::size_t count; (count = std::fread(buffer, 1, sizeof(buffer), file)) > 0;) out.insert(out.end(), buffer, buffer + count);
  const bool failed = std::ferror(file) != 0;
  if (failed) reason = std::strerror(errno);
  std::fclose(file);
  return !failed;
}

}  // namespace

std::optional<std::vector<unsigned char>> read_text(const std::string& path, Failure& failure) {
  const auto unreadable = [&](const std::string& what, const std::string& reason) {
    failure = {.code = kDataUnreadable,
               .message = "cannot read `" + what + "`: " + reason,
               .hint = "name a file that can be read, or a folder of such files"};
    return std::nullopt;
  };
  try {
    std::vector<std::string> files;
    std::error_code error;
    if (fs::is_directory(path, error)) {
      fs::recursive_directory_iterator it(path, error);
      for (; !error && it != fs::recursive_directory_iterator(); it.increment(error)) {
        const bool hidden = it->path().filename().native().starts_with('.');
        std::error_code ignored;
        if (hidden && it->is_directory(ignored)) it.disable_recursion_pending();
        if (!hidden && it->is_regular_file(ignored)) files.push_back(it->path().native());
      }
      if (error) return unreadable(path, error.message());
      std::sort(files.begin(), files.end());
      if (files.empty()) return unreadable(path, "the folder holds no files");
    } else {
      files.push_back(path);
    }
    std::vector<unsigned char> text;
    for (const std::string& file : files) {
      std::string reason;
      if (!append(file, text, reason)) return unreadable(file, reason);
    }
    return text;
  } catch (const std::bad_alloc&) {
    return unreadable(path, "it does not fit into memory");
  } catch (const fs::filesystem_error& error) {
    return unreadable(path, error.code().message());
  }
}

}  // namespace piper::runtime
