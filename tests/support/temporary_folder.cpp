#include "tests/support/temporary_folder.h"

#include <stdlib.h>

#include <stdexcept>

#include "tests/support/golden.h"

namespace piper::test {

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "piper-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr)
    throw std::runtime_error("cannot make a temporary folder");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;  // nothing can be done about it here
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::write(const std::string& name, std::string_view text) const {
  const std::filesystem::path file = path_ / name;
  write_text(file, text);
  return file.string();
}

}  // namespace piper::test
