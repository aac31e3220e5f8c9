// Directives as text: every kind, printed and read back.

#include <gtest/gtest.h>

#include "ir/dag/parse.h"
#include "ir/dag/print.h"

namespace piper::test {
namespace {

const char* const kText = R"(pir 1 built
train "a train" loc("t.pipe":1:1-1:6) {
  steps 200
  dtype f64
  seed 9223372036854775807
  data bytes("corpus \"x\"\n.txt", batch: 32, seq: 128) loc("t.pipe":2:1-2:6)
  held_out synthetic(classes: 10, batch: 4, seq: 8, batches: 3)
  optim sgd(lr: linear(0.1, warmup: 3, floor: 1e-05), momentum: 0.9, weight_decay: 0, clip: 1.5)
}
mesh cluster(pp: 2, dp: 2)
directives {
  partition gpt into stage: 4 with sizes: [1, 2, 3, 4] loc("t.pipe":3:1-3:6)
  partition gpt block[0, 3] into part: 2
  split batch into copy: 2, mb: 4
  split batch into mb: 4 in stage[0] loc("t.pipe":4:1-4:6), stage[1] loc("t.pipe":4:8-4:9)
  place stage[0], BW stage[1] mb[0, 1] on cluster[pp: 0]
  place model on cluster[] with depth: 2
  place model .rest, F block[1] .rest[0, 1] mb[0] on cluster[pp: 1]
  replicate model over pp, dp with zero: 1, bucket: 26214400, prefetch: 2
  replicate stage[0] over dp with zero: 0
  stream grads: model .reduce, stage[0] .send with window: 4, priority: high
  stream p2p: F model .recv
  recompute stage[0]
  freeze stage[1], "split"[0] "order"[1]
  offload "model" "in"[0] with window: 2
  require bubble <= 0.25 else "too idle" loc("t.pipe":5:1-5:6)
  require peak_memory < 8589934592
  order {
    rank cluster[pp: 0] loc("t.pipe":6:1-6:6) {
      F stage[0] mb[0] loc("t.pipe":7:1-7:6)
      { F stage[0] mb[1]; ( B stage[0] mb[0] & { BW stage[0] mb; BI "F"[1] } ) loc("t.pipe":8:1-8:6) }
      B stage[0] mb[2], B stage[1] mb[2] loc("t.pipe":8:8-8:9)
      F stage[1] .gather
      F .rest[1] mb[0]
      B stage[1] .rest mb[0] .send
    }
    rank cluster[pp: 1] {
    }
    trim mb 3 loc("t.pipe":9:1-9:6)
  } loc("t.pipe":10:1-10:6)
}
graph {
}
)";

TEST(DirectiveText, EveryKindReadsBack) {
  Context context;
  DiagnosticSink sink(context.locations);
  const FileId file = context.locations.files().add("t.pir", kText);
  std::vector<directive::Directive> directives;
  const std::optional<dag::Dag> dag = dag::parse(file, context, sink, &directives);
  ASSERT_TRUE(dag) << render_text(sink.sorted(), context.locations.files());
  EXPECT_EQ(directives.size(), 17u);
  EXPECT_EQ(dag->settings.seed, 9223372036854775807u);
  EXPECT_EQ(print(*dag, directives), kText);
}

}  // namespace
}  // namespace piper::test
