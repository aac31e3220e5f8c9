#pragma once
// Expectations under the column they point to, in the source text of a test:
//
//   place stage[0] on q[0]
//   //                ^ error P2004: no axis is named `q`
//   //             ^^ note: `on` takes a list of devices
//
// Guarantees: range, severity, code and text are all compared; a finding without expectation and an
// expectation without finding both fail; a comment that starts like an expectation but is none
// fails. `--update` rewrites the file's expectations and touches nothing else. Expectation lines
// are removed before the text is checked, so they do not change the line numbers after them.
//
// If carets are impossible (columns 1 and 2, empty ranges, several lines, no location) the range is
// written out, columns from 1, the end exclusive, `+N` lines further down:
//
//   // @1-4 error P1010: ...
//   // @5-+2:3 error P1010: ...

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/file_test.h"

namespace piper::test {

/// One finding of a checker. Lines and columns count from 1, columns in code points, the end is
/// exclusive. Line 0: no location in this file.
struct Finding {
  int line = 0;
  int column = 1;
  int end_line = 0;
  int end_column = 1;
  std::string severity;  // `error`, `warning`, `note`, `hint`, ...: one word
  std::string code;      // `P2004`; may be empty
  std::string message;

  friend auto operator<=>(const Finding&, const Finding&) = default;
};

/// The text without its expectations, and these; `malformed` has the lines that look like
/// expectations but are none.
struct AnnotatedSource {
  std::string source;
  std::vector<Finding> expected;
  std::vector<std::string> malformed;
};

AnnotatedSource parse_annotated(std::string_view text);

/// `source` with one expectation line per finding, in order of position.
std::string annotate(std::string_view source, std::vector<Finding> findings);

/// Takes the path and the source without expectations.
using CheckSource =
    std::function<std::vector<Finding>(const std::string& path, const std::string& source)>;

/// Fails the current test unless the findings of `check` are exactly those the file expects; with
/// `--update` rewrites them.
void expect_findings(const FileTest& test, const CheckSource& check);

}  // namespace piper::test
