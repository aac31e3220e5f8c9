// Schedules of the library: the names that the field has for them, and the sizes that a refusal
// offers.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <regex>

#include "frontend/service/compilation.h"

namespace piper::service {
namespace {

TEST(LibraryNames, TheFieldsNamesAreFound) {
  const std::pair<const char*, const char*> rows[] = {
      {"gpipe", "gpipe"},
      {"GPipe", "gpipe"},
      {"fill-drain", "gpipe"},
      {"1f1b", "one_f_one_b"},
      {"1F1B", "one_f_one_b"},
      {"PipeDream-Flush", "one_f_one_b"},
      {"dapple", "one_f_one_b"},
      {"interleaved 1f1b", "interleaved"},
      {"Interleaved1F1B", "interleaved"},
      {"interleaved-1f1b", "interleaved"},
      {"vpp", "interleaved"},
      {"zb-h1", "zb_h1"},
      {"zbh1", "zb_h1"},
      {"ZB1P", "zb_h1"},
      {"zero bubble", "zb_h1"},
      {"ZB-H2", "zb_h2"},
      {"zb-v", "zbv"},
      {"ZBV", "zbv"},
      {"ZBVZeroBubble", "zbv"},
      {"dualpipe", "dual_pipe"},
      {"DualPipe", "dual_pipe"},
      {"dualpipev", "dual_pipe_v"},
      {"dual-pipe-v", "dual_pipe_v"},
      {"LoopedBFS", "looped_bfs"},
      {"breadth-first", "looped_bfs"},
      {"InterleavedZeroBubble", "interleaved_zb"},
      {"GIS", "group_interleaved"},
      {"Chimera", "chimera"},
      {"BitPipe", "bit_pipe"},
      {"V-Min", "v_min"},
      {"VHalf", "v_half"},
      {"V-1F1B", "v_1f1b"},
      {"ZB-2p", "zb_auto"},
      {"V-auto", "v_auto"},
      {"Hanayo", "hanayo"},
      {"GEMS", "gems"},
      {"fsdp", "zero"},
      {"ZeRO-3", "zero"},
  };
  const source::MemoryFileSystem files;
  Compilation compilation(files);
  for (const auto& [word, name] : rows)
    EXPECT_EQ(compilation.library_schedule_called(word), name) << word;
  for (const char* word : {"", "-", "2f2b", "alternate", "pipe"})
    EXPECT_EQ(compilation.library_schedule_called(word), std::nullopt) << word;
  for (const std::string& name : compilation.library_schedules())
    EXPECT_EQ(compilation.library_schedule_called(name), name);
}

using Sizes = std::map<std::string, std::string>;

/// The refusal of a requirement; empty if there is none.
Diagnostic refusal(const std::string& schedule, const Sizes& sizes) {
  const source::MemoryFileSystem files;
  std::vector<lower::Override> overrides;
  for (const auto& [name, value] : sizes) overrides.push_back({name, value});
  Compilation compilation(files, overrides);
  DiagnosticSink sink(compilation.context().locations);
  EXPECT_TRUE(compilation.open(schedule, sink));
  (void)compilation.subject(schedule, false, sink);
  for (const Diagnostic& diagnostic : sink.sorted()) {
    if (diagnostic.code == Code::requirement_not_met) return diagnostic;
    if (diagnostic.severity == Severity::error) ADD_FAILURE() << schedule << diagnostic.message;
  }
  return {};
}

/// "`m` = 4, `m` = 8 or `p` = 2 with `m` = 4"
std::vector<Sizes> offered(const std::string& hint) {
  std::vector<Sizes> all;
  static const std::regex kOffer(R"(`(\w+)` = (\d+)( with `(\w+)` = (\d+))?)");
  for (std::sregex_iterator at(hint.begin(), hint.end(), kOffer), end; at != end; ++at) {
    Sizes sizes{{(*at)[1], (*at)[2]}};
    if ((*at)[4].matched) sizes[(*at)[4]] = (*at)[5];
    all.push_back(sizes);
  }
  return all;
}

TEST(LegalSizes, EachRefusalOffersSizesThatAreAccepted) {
  const source::MemoryFileSystem files;
  std::size_t refused = 0;
  for (const std::string& schedule : Compilation(files).library_schedules()) {
    Compilation compilation(files);
    DiagnosticSink sink(compilation.context().locations);
    ASSERT_TRUE(compilation.open(schedule, sink));
    const auto declared = compilation.declared(schedule);
    ASSERT_TRUE(declared);
    for (int p = 1; p <= 6; ++p) {
      for (int m = 1; m <= 13; ++m) {
        Sizes sizes;
        for (const Declared::Parameter& parameter : declared->parameters) {
          if (!parameter.has_default)
            sizes[parameter.name] = std::to_string(parameter.is_axis ? p : m);
          if (parameter.name == "stage") sizes[parameter.name] = std::to_string(m);
        }
        const Diagnostic diagnostic = refusal(schedule, sizes);
        if (diagnostic.message.empty()) continue;
        ++refused;
        const std::vector<Sizes> offers = offered(diagnostic.hint);
        EXPECT_FALSE(offers.empty()) << schedule << " p=" << p << " m=" << m << " "
                                     << diagnostic.message << " " << diagnostic.hint;
        for (const Sizes& offer : offers) {
          Sizes changed = sizes;
          for (const auto& [name, value] : offer) changed[name] = value;
          EXPECT_EQ(refusal(schedule, changed).message, "")
              << schedule << " p=" << p << " m=" << m << " " << diagnostic.hint;
        }
      }
    }
  }
  EXPECT_GT(refused, 100u);
}

TEST(LegalSizes, TheNearestAreOffered) {
  const auto hint = [](const char* schedule, const Sizes& sizes) {
    return refusal(schedule, sizes).hint;
  };
  EXPECT_EQ(hint("interleaved", {{"p", "4"}, {"m", "6"}, {"group", "4"}}),
            "the nearest that `interleaved` accepts: `group` = 6, `m` = 4 or `m` = 8");
  EXPECT_EQ(hint("interleaved", {{"p", "4"}, {"m", "8"}, {"group", "3"}}),
            "the nearest that `interleaved` accepts: `group` = 4 or `m` = 3");
  EXPECT_EQ(hint("interleaved", {{"p", "4"}, {"m", "6"}}), "");
  EXPECT_EQ(hint("group_interleaved", {{"p", "4"}, {"m", "8"}, {"group", "5"}}),
            "the nearest that `group_interleaved` accepts: `group` = 4");
  EXPECT_EQ(hint("chimera", {{"p", "4"}, {"m", "6"}}),
            "the nearest that `chimera` accepts: `m` = 4 or `m` = 8");
  EXPECT_EQ(hint("zb_h1", {{"p", "4"}, {"m", "3"}}), "the nearest that `zb_h1` accepts: `m` = 4");
  EXPECT_EQ(hint("dual_pipe", {{"p", "3"}, {"m", "8"}}),
            "the nearest that `dual_pipe` accepts: `p` = 2 or `p` = 4");
  EXPECT_EQ(hint("dual_pipe", {{"p", "3"}, {"m", "5"}}),
            "the nearest that `dual_pipe` accepts: `p` = 2 with `m` = 4 or `p` = 2 with `m` = 6");
}

}  // namespace
}  // namespace piper::service
