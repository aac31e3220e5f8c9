#pragma once
// Completions at the cursor: words, names, arguments. None that would be an error there.

#include <string>
#include <vector>

#include "frontend/lsp/scope.h"
#include "frontend/lsp/statement_at.h"

namespace piper::lsp {

/// The protocol's numbers.
enum class CandidateKind : int {
  function = 3,
  variable = 6,
  class_ = 7,
  interface = 8,
  module = 9,
  property = 10,
  value = 12,
  keyword = 14,
  constant = 21,
  struct_ = 22,
  type = 25
};

struct Candidate {
  std::string label;
  CandidateKind kind{};
  std::string detail, doc;
  std::string insert = {};  // empty: the label
  std::string sort = "5";   // a lower one comes first
  std::string use = {};     // the library file that it is in, which the text does not use yet
};

std::vector<Candidate> candidates(Request& request, const StatementAt& statement, std::uint32_t at);

}  // namespace piper::lsp
