#pragma once
// Files that are written whole or not at all.
//
//   if (const std::error_code error = source::write_file("page.html", text)) report(path, error.message());

#include <string>
#include <string_view>
#include <system_error>

namespace piper::source {

/// The file has its old text or the new one, whatever happens: a full disk, an interrupt, two
/// writers. Links stay links, permissions stay unchanged. A device, a pipe or the like is written
/// to directly.
std::error_code write_file(const std::string& path, std::string_view text);

/// Creates and opens an empty file in the folder of `path` under a name that no file has: `path`, a
/// dot and eight digits. `path` may have any characters. The caller renames or removes the file.
std::error_code open_beside(const std::string& path, int& descriptor, std::string& aside);

/// Whether `write_file` can write there now; does not change the file. A command calls it before
/// long work whose result it writes at the end.
std::error_code check_writable(const std::string& path);

/// Whether both name one file that is there.
bool same_file(const std::string& a, const std::string& b);

}  // namespace piper::source
