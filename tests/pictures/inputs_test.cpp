// The inputs of an entry of a picture.
#include <gtest/gtest.h>

#include "frontend/pictures/picture.h"
#include "frontend/service/compilation.h"
#include "passes/simulate/operations.h"

namespace piper::test {
namespace {

/// Two ranks of each stage, which do the same.
constexpr const char* kRows = R"(use std.models.mlp
mesh grid(p: 2, d: 2)
train net = mlp(layers: 2, features: 8, hidden: 8, classes: 4) on grid {
    data:  synthetic(batch: 8, classes: 4)
    optim: sgd(lr: 0.1)
    steps: 1
    partition model into stage: 2
    split batch into mb: 2
    for s in 0..2 { place stage[s] on p[s] }
    replicate model over d
    order {
        rank r in p, k in d {
            for i in 0..2 { F stage[r] mb[i] }
            for i in 0..2 { B stage[r] mb[i] }
        }
    }
}
)";

TEST(Inputs, AnEntryReadsWhatItsOwnRankMade) {
  source::MemoryFileSystem files;
  files.add("rows.pipe", kRows);
  service::Compilation compilation(files, {});
  DiagnosticSink sink(compilation.context().locations);
  ASSERT_TRUE(compilation.open("rows.pipe", sink));
  auto subject = compilation.subject("", false, sink);
  ASSERT_TRUE(subject) << render_text(sink.sorted(), compilation.context().locations.files());
  const auto dag = compilation.compile(*subject, {}, sink);
  ASSERT_TRUE(dag) << render_text(sink.sorted(), compilation.context().locations.files());
  const pictures::Picture picture = pictures::make_picture(
      "rows", *passes::simulate_operations(*dag, {}, sink), &*dag, compilation.context().locations);
  const passes::Timeline& timeline = picture.timeline;
  ASSERT_EQ(timeline.ranks.size(), 4u);
  std::size_t own = 0;
  for (const passes::Timeline::Lane& lane : timeline.lanes) {
    for (std::uint32_t e = lane.first; e < lane.end; ++e) {
      for (const std::uint32_t from : picture.inputs_of(e)) {
        if (timeline.operation_of(from).stage != timeline.operation_of(e).stage) continue;
        EXPECT_TRUE(from >= lane.first && from < lane.end)
            << timeline.label(timeline.operation_of(e));
        ++own;
      }
    }
  }
  EXPECT_EQ(own, 8u);  // each backward reads its forward
}

}  // namespace
}  // namespace piper::test
