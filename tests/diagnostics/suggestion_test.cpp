#include "ir/diagnostics/suggestion.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace piper {
namespace {

using Names = std::vector<std::string_view>;

TEST(Suggestion, TheFewestEditsThenTheFirst) {
  EXPECT_EQ(nearest_name("replicat", Names{"place", "replicate"}), "replicate");
  EXPECT_EQ(nearest_name("stag", Names{"stay", "stage"}), "stay");
  EXPECT_EQ(nearest_name("stagee", Names{"stay", "stage"}), "stage");
  EXPECT_EQ(nearest_name("layer", Names{"layer"}), "");
}

TEST(Suggestion, LettersThatChangedPlacesAreOneEdit) {
  EXPECT_EQ(nearest_name("sned", Names{"recv", "send"}), "send");
  EXPECT_EQ(nearest_name("sned", Names{"seed", "send"}), "seed");
}

TEST(Suggestion, CallersSayHowFar) {
  EXPECT_EQ(nearest_name("gird", Names{"graph"}, 1), "");
  EXPECT_EQ(nearest_name("grap", Names{"graph"}, 1), "graph");
  EXPECT_EQ(nearest_name("grph", Names{"grid"}, 2), "grid");
  EXPECT_EQ(nearest_name("x", Names{"y", "ab"}, 3), "");
}

}  // namespace
}  // namespace piper
