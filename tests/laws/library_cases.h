#pragma once
// Every schedule of the standard library on a small GPT, as text.

#include <iosfwd>
#include <string>
#include <vector>

namespace piper::test {

struct LibraryCase {
  std::string schedule;
  std::string call;
  int devices = 0;
  bool replicates = false;  // it says itself what is replicated
  bool offloads = false;    // and what waits on the host
};
void PrintTo(const LibraryCase& each, std::ostream* to);

/// The train `small`: on `devices` times two devices, replicated over the two in small buckets; `cut` is said of the buckets.
std::string gpt_source(const LibraryCase& each, const std::string& cut = "zero: 1");
/// Whether the train `small` compiles; of one that does not, why.
bool compiles(const std::string& text, std::string& why, bool* offloads = nullptr);
/// Every schedule, at the first sizes that meet its `require`s; without devices where none of these does. Its first axis is that of the pipeline, others are that of replicas.
std::vector<LibraryCase> library_cases();

}  // namespace piper::test
