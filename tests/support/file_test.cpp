#include "tests/support/file_test.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "tests/support/golden.h"

namespace piper::test {
namespace {

namespace fs = std::filesystem;

struct Request {
  std::string suite;
  std::string folder;
  std::string extension;
  FileTestBody body;
};

// A function-local object: requests arrive from static initialisers of other files, in any order.
std::vector<Request>& requests() {
  static std::vector<Request> all;
  return all;
}

class FileCase : public testing::Test {
 public:
  FileCase(FileTest test, const FileTestBody& body) : test_(std::move(test)), body_(body) {}

  void TestBody() override {
    std::optional<std::string> text = read_text(test_.path);
    ASSERT_TRUE(text) << "cannot read " << test_.path;
    test_.text = *std::move(text);
    SCOPED_TRACE(test_.path);
    body_(test_);
  }

 private:
  FileTest test_;
  const FileTestBody& body_;
};

class EmptyFolder : public testing::Test {
 public:
  explicit EmptyFolder(const Request& request) : request_(request) {}
  void TestBody() override {
    FAIL() << request_.folder << " has no file `*" << request_.extension << "`";
  }

 private:
  const Request& request_;
};

std::vector<fs::path> files_of(const Request& request) {
  std::vector<fs::path> paths;
  std::error_code absent;  // an absent folder is an empty one, which fails
  for (const auto& entry : fs::recursive_directory_iterator(request.folder, absent)) {
    if (entry.is_regular_file() && entry.path().filename().string().ends_with(request.extension))
      paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace

std::string FileTest::beside(const std::string& extension) const {
  return (fs::path(path).parent_path() / fs::path(name).filename()).string() + extension;
}

bool add_file_tests(const char* suite, const char* folder, const char* extension,
                    FileTestBody body) {
  requests().push_back({suite, folder, extension, std::move(body)});
  return true;
}

void register_file_tests() {
  for (const Request& request : requests()) {
    const std::vector<fs::path> paths = files_of(request);
    if (paths.empty()) {
      testing::RegisterTest(request.suite.c_str(), "has_files", nullptr, nullptr, __FILE__,
                            __LINE__,
                            [&request]() -> testing::Test* { return new EmptyFolder(request); });
    }
    for (const fs::path& path : paths) {
      FileTest test;
      test.path = path.generic_string();
      test.name = path.lexically_relative(request.folder).generic_string();
      test.name.resize(test.name.size() - request.extension.size());
      testing::RegisterTest(
          request.suite.c_str(), test.name.c_str(), nullptr, nullptr, __FILE__, __LINE__,
          [test, &request]() -> testing::Test* { return new FileCase(test, request.body); });
    }
  }
}

}  // namespace piper::test
