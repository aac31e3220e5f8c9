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
  bool replicates = false;  // the schedule itself has `replicate`
  bool offloads = false;    // and `offload`
};
void PrintTo(const LibraryCase& library_case, std::ostream* to);

/// The train `small`: on `devices` times two devices, replicated over the two in small buckets;
/// `cut` is a setting of the buckets.
std::string gpt_source(const LibraryCase& library_case, const std::string& cut = "zero: 1");
/// Whether the train `small` compiles; if not, the reason is in `why`.
bool compiles(const std::string& text, std::string& why, bool* offloads = nullptr);
/// Every schedule, at the first sizes that meet its `require`s; without devices if none of these
/// does. Its first axis is that of the pipeline, others are axes of replicas.
std::vector<LibraryCase> library_cases();
/// The same on a pipeline of `devices` ranks.
std::vector<LibraryCase> library_cases_on(int devices);

}  // namespace piper::test
