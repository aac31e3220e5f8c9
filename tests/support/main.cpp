// The `main` of every test program. Flags beside GoogleTest's: `--update` (goldens), `--seed=N`,
// `--cases=N`.

#include <gtest/gtest.h>

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <string_view>

#include "tests/support/file_test.h"
#include "tests/support/golden.h"
#include "tests/support/random_cases.h"

namespace {

namespace fs = std::filesystem;

// The build lies inside the tree, so the root is above the program.
bool enter_project_root() {
  for (fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();;
       folder = folder.parent_path()) {
    if (fs::exists(folder / "CMakePresets.json")) {
      fs::current_path(folder);
      return true;
    }
    if (folder == folder.parent_path()) return false;
  }
}

template <typename Number>
bool take_number(std::string_view argument, std::string_view flag, Number& value) {
  if (!argument.starts_with(flag)) return false;
  argument.remove_prefix(flag.size());
  const auto [end, error] =
      std::from_chars(argument.data(), argument.data() + argument.size(), value);
  return error == std::errc() && end == argument.data() + argument.size();
}

}  // namespace

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  piper::test::CaseOptions& cases = piper::test::case_options();
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--update") {
      piper::test::set_updating(true);
    } else if (!take_number(argument, "--seed=", cases.seed) &&
               !take_number(argument, "--cases=", cases.count)) {
      std::fprintf(
          stderr,
          "unknown argument `%s`; known are --update, --seed=N, --cases=N and GoogleTest's\n",
          argv[i]);
      return 2;
    }
  }
  if (!enter_project_root()) {
    std::fprintf(stderr, "the test program does not lie inside the project's tree\n");
    return 2;
  }
  piper::test::register_file_tests();
  return RUN_ALL_TESTS();
}
