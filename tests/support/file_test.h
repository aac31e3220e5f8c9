#pragma once
// A test is a file: every file of a testdata folder becomes a GoogleTest case.
//
// Guarantees: cases are sorted by path and named after it (`dag/two_stages`); a folder without a
// matching file is a failing case, so that a misspelt folder cannot pass.
//
//   PIPER_FILE_TEST(Dag, "tests/ir/testdata/dag", ".pir", [](const FileTest& test) {
//     expect_golden(test.beside(".out"), print(parse(test.text)));
//   });
//
// `tests/ir/testdata/dag/two_stages.pir` and `two_stages.out` are then input and golden; outputs of
// a test use another extension than its inputs.

#include <functional>
#include <string>

namespace piper::test {

struct FileTest {
  std::string path;  // relative to the project root
  std::string name;  // relative to the folder, without extension
  std::string text;

  /// The path of a file beside the input: `beside(".out")` is `.../two_stages.out`.
  std::string beside(const std::string& extension) const;
};

using FileTestBody = std::function<void(const FileTest&)>;

/// Adds one case per file under `folder` (searched recursively) whose name ends in `extension`.
/// Called while static objects are initialised; the cases are registered when the program starts.
bool add_file_tests(const char* suite, const char* folder, const char* extension,
                    FileTestBody body);

/// Registers the added cases; `main` calls it in the project root.
void register_file_tests();

}  // namespace piper::test

#define PIPER_FILE_TEST(suite, folder, extension, ...)       \
  [[maybe_unused]] static const bool file_tests_of_##suite = \
      ::piper::test::add_file_tests(#suite, folder, extension, __VA_ARGS__)
