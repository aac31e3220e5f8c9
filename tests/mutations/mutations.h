#pragma once
// Changes one thing of a planned `.pir` text at a time, and checks that each change is refused.
//
// Every node, action, wait, operand, peer and communicator entry is deleted, duplicated or
// redirected, dependent neighbours are swapped, every buffer is moved onto state that persists, and
// gets another size and class; pass, chunk, samples, axes and order of a node, members, stream and
// window of a communicator, the bytes of a role and the class of an edge or operand are changed.
// Changes that leave another legal plan are left out: neighbours that no access, no communicator
// and no order relates, operands of workspace, waits that others imply.
//
//   const MutationReport report = run_mutations(text);
//   EXPECT_TRUE(report.survivors.empty());

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace piper::test {

struct MutationReport {
  std::size_t tried = 0;
  std::size_t independent = 0;         // neighbours that may be swapped
  std::vector<std::string> survivors;  // changes that were not refused
};

/// `limit`: at most that many changes, and of those of `plan_changes.h`, spread evenly; 0: all. The
/// text must be planned and legal.
MutationReport run_mutations(std::string_view text, std::size_t limit = 0);

/// Whether neither the parser nor `verify` reports an error.
bool is_legal(std::string_view text);

}  // namespace piper::test
