// Directives as text: every kind, printed and read back.

#include <gtest/gtest.h>

#include <algorithm>
#include <type_traits>

#include "ir/dag/parse.h"
#include "ir/dag/print.h"

namespace piper::test {
namespace {

const char* const kText = R"(pir 2 built
train "a train" #1 {
  steps 200
  dtype f64
  seed 9223372036854775807
  data tokens("corpus \"x\"\n.bin", batch: 32, seq: 128, dtype: u16, sampling: replacement) #2
  held_out synthetic(classes: 10, batch: 4, seq: 8, batches: 3)
  optim sgd(lr: linear(0.1, warmup: 3, floor: 1e-05), momentum: 0.9, weight_decay: 0, decay: matrices, clip: 1.5)
  checkpoint every 1125899906842624 keep 2147483647 best #3
  evaluate every 50 #4
  ema 0.999 #5
  skip_step norm > 10 #6
  init weights("a \"file\"\n.safetensors", names: mine, missing: init) #7
}
mesh cluster(pp: 2, dp: 2)
directives {
  partition gpt into stage: 4 with sizes: [1, 2, 3, 4] #8
  partition gpt block[0, 3] into part: 2
  split batch into copy: 2, mb: 4
  split batch into mb: 4 in stage[0] #9, stage[1] #10
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
  tune stage[0], "tune"[1] with rate: 0.5, decay: 0
  tune model with rate: 1e-05
  require bubble <= 0.25 else "too idle" #11
  require peak_memory < 8589934592
  order {
    rank cluster[pp: 0] #12 {
      F stage[0] mb[0] #13
      { F stage[0] mb[1]; ( B stage[0] mb[0] & { BW stage[0] mb; BI "F"[1] } ) #14 }
      B stage[0] mb[2], B stage[1] mb[2] #15
      F stage[1] .gather
      F .rest[1] mb[0]
      B stage[1] .rest mb[0] .send
    }
    rank cluster[pp: 1] {
    }
    trim mb 3 #16
  } #17
}
graph {
}
locations {
  1 "t.pipe":1:1-1:6
  2 "t.pipe":2:1-2:6
  3 "t.pipe":2:8-2:9
  4 "t.pipe":2:10-2:11
  5 "t.pipe":2:14-2:15
  6 "t.pipe":2:16-2:17
  7 "t.pipe":2:12-2:13
  8 "t.pipe":3:1-3:6
  9 "t.pipe":4:1-4:6
  10 "t.pipe":4:8-4:9
  11 "t.pipe":5:1-5:6
  12 "t.pipe":6:1-6:6
  13 "t.pipe":7:1-7:6
  14 "t.pipe":8:1-8:6
  15 "t.pipe":8:8-8:9
  16 "t.pipe":9:1-9:6
  17 "t.pipe":10:1-10:6
}
)";

TEST(DirectiveText, EveryKindReadsBack) {
  Context context;
  DiagnosticSink sink(context.locations);
  const FileId file = context.locations.files().add("t.pir", kText);
  std::vector<directive::Directive> directives;
  const std::optional<dag::Dag> dag = dag::parse(file, context, sink, &directives);
  ASSERT_TRUE(dag) << render_text(sink.sorted(), context.locations.files());
  EXPECT_EQ(directives.size(), 19u);
  EXPECT_EQ(dag->settings.seed, 9223372036854775807u);
  EXPECT_EQ(print(*dag, directives), kText);
}

/// The parts that the `fields` of a line describe.
struct DescribedParts : directive::IgnoreFields {
  std::string subject;
  directive::Clauses clauses;  // all of them as needed ones
  std::vector<std::string> settings;
  directive::DirectiveKind kind;

  explicit DescribedParts(directive::DirectiveKind of) : kind(of) {}
  void region(auto&) { subject += "region"; }
  void dimension(auto&, auto&) { subject += "dimension"; }
  void name(auto&) { subject += "named "; }
  void targets(auto&) { subject += "targets"; }
  void into(auto&, const directive::Number&) { add(directive::Clause::into); }
  void in(auto&) { add(directive::Clause::in); }
  void on(auto&) { add(directive::Clause::on); }
  void over(auto&) { add(directive::Clause::over); }
  template <typename Value>
  void setting(std::string_view name, const Value& value, auto&...) {
    add(directive::Clause::with);
    settings.emplace_back(name);
    const directive::SettingRow* const row = directive::find_setting(kind, name);
    if (row == nullptr) return;
    if constexpr (std::is_integral_v<Value>) {
      EXPECT_EQ(std::to_string(value), row->value) << name;
    } else if constexpr (std::is_enum_v<Value>) {
      EXPECT_EQ(directive::words_of(*row)[static_cast<std::size_t>(value)], row->value) << name;
    }
  }

 private:
  void add(directive::Clause clause) { clauses.needed |= directive::Clauses::bit(clause); }
};

template <typename Line>
void expect_row(const Line& line) {
  const directive::DirectiveRow& row = directive::row_of(kind_of(line));
  SCOPED_TRACE(row.keyword);
  DescribedParts parts(row.kind);
  line.fields(parts, line);
  constexpr std::string_view kSubjects[] = {"region", "dimension", "targets", "named targets"};
  EXPECT_EQ(parts.subject, kSubjects[static_cast<std::size_t>(row.subject)]);
  EXPECT_EQ(parts.clauses.needed, row.clauses.needed | row.clauses.optional);
  std::vector<std::string> settings;
  for (const directive::SettingRow& setting : directive::settings_of(row.kind))
    settings.emplace_back(setting.name);
  std::sort(parts.settings.begin(), parts.settings.end());
  EXPECT_EQ(parts.settings, settings);
}

/// The fields of a line are its subject, its clauses and its settings in directives.def, and a line
/// has their defaults.
TEST(DirectiveRows, FieldsAreThoseOfTheRow) {
#define DIRECTIVE(keyword, Line, ...) expect_row(directive::Line{});
#include "ir/directive/directives.def"
}

TEST(DirectiveRows, WordsHaveASettingAndSettingsOfWordsHaveWords) {
  for (const directive::DirectiveRow& row : directive::directive_rows()) {
    for (const directive::SettingRow& setting : directive::settings_of(row.kind)) {
      EXPECT_EQ(directive::words_of(setting).empty(), setting.type != directive::SettingType::word)
          << row.keyword << ' ' << setting.name;
    }
  }
}

}  // namespace
}  // namespace piper::test
