#pragma once
// Expected output in files. `--update` makes a test program rewrite its goldens instead of
// comparing.
//
// Guarantees: paths are relative to the project root, in which every test program runs, wherever it
// was started; no golden contains the location of the tree.
//
//   expect_golden("tests/ir/testdata/dag/two_stages.expected.pir", print(dag));

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace piper::test {

/// Whether the program was started with `--update`.
bool updating();
void set_updating(bool on);

/// The whole file; empty if it cannot be read.
std::optional<std::string> read_text(const std::filesystem::path& path);
/// Writes the whole file, making its folders; a failure is a test failure.
void write_text(const std::filesystem::path& path, std::string_view text);

/// Fails the current test if the file differs from `actual`, with the differing lines; with
/// `--update` writes it.
void expect_golden(const std::filesystem::path& path, std::string_view actual);

/// The lines that differ, `-` expected and `+` actual, with two lines around each change; empty
/// when equal.
std::string line_difference(std::string_view expected, std::string_view actual);

}  // namespace piper::test
