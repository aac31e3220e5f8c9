// The meaning of arguments and settings, at hover and while they are typed.

#include <gtest/gtest.h>

#include "frontend/lsp/builtin_meanings.h"
#include "frontend/lsp/describe.h"
#include "frontend/parse/lexemes.h"
#include "tests/lsp/client.h"

namespace piper::test {
namespace {

const std::string kPath = "/a.pipe";
const std::string kText =
    "use std.models.mlp\n"
    "mesh pair(pp: 2, dp: 2)\n"
    "machine lab on pair {\n"
    "    all: device(memory: 80GiB, overlap: 1.1)\n"
    "    pp:  link(bandwidth: 50GiB, latency: 5us)\n"
    "}\n"
    "train net = mlp(layers: 2, features: 4, hidden: 6, classes: 3) on pair {\n"
    "    data:  synthetic(batch: 8, classes: 3)\n"
    "    optim: adamw(lr: cosine(3e-4, warmup: 2), clip: 1.0)\n"
    "    steps: 3\n"
    "    checkpoint: every(2, keep: 4)\n"
    "    init: weights(\"w\", missing: init)\n"
    "    place model on pp[0]\n"
    "    replicate model over dp with bucket: 1MiB, zero: 1\n"
    "    stream p2p: model.send with window: 4\n"
    "    offload model with window: 3\n"
    "}\n"
    "param rate in [0.1, 0.2]\n";

TEST(Arguments, BuiltinsAndDirectivesAreExplained) {
  const source::MemoryFileSystem disk;
  Client client(disk);
  client.open(kPath, kText);
  struct Row {
    const char *method, *place, *holds;
  };
  const Row rows[] = {
      {"hover", "(l^r:", "lr: rate"},
      {"hover", "(l^r:", "the learning rate"},
      {"hover", "war^mup", "warmup: int = 0"},
      {"hover", "war^mup", "steps in which the rate rises"},
      {"hover", "cl^ip", "clip: float = none"},
      {"hover", "ada^mw", "decoupled weight decay"},
      {"hover", "check^point:", "how often weights and optimizer state are written"},
      {"hover", "ev^ery(2", "every(steps: int, keep: int = none, best: bool = false) -> every"},
      {"hover", "ke^ep: 4", "how many checkpoints are kept"},
      {"hover", "in^it: weights", "the first values of parameters"},
      {"hover", "wei^ghts(",
       "weights(path: string, names: names = none, missing: fallback = none) -> weights"},
      {"hover", "mis^sing: init", "parameters that the file lacks"},
      {"hover", "(bat^ch: 8", "samples of a step"},
      {"hover", "over^lap", "overlap: float = 1"},
      {"hover", "lat^ency", "before the first byte arrives"},
      {"hover", "li^nk(", "messages and collectives of an axis"},
      {"hover", "a^ll:", "every device"},
      {"hover", "hid^den", "hidden: int"},
      {"hover", "buc^ket", "bucket: bytes = 25MiB"},
      {"hover", "ze^ro", "zero: int = 0"},
      {"hover", "ze^ro", "optimizer state"},
      {"hover", "window^: 4", "how many may be under way"},
      {"hover", "window^: 3", "window: int = 1"},
      {"hover", "ra^te in", "param rate in [0.1, 0.2]"},
      {"signatureHelp", "(lr: ^cosine", "the learning rate"},
      {"signatureHelp", "(lr: ^cosine", R"("activeParameter":0)"},
      {"signatureHelp", "warmup: ^2", R"("activeParameter":1)"},
      {"signatureHelp", "every(^2", "the number of steps from one time to the next"},
      {"signatureHelp", "keep: ^4", R"("activeParameter":1)"},
      {"signatureHelp", "missing: ^init", R"("activeParameter":2)"},
      {"signatureHelp", "overlap: ^1", R"("activeParameter":2)"},
      {"signatureHelp", "overlap: ^1", "the factor by which work takes longer"},
      {"signatureHelp", "bandwidth: ^50", "bytes per second"},
      {"signatureHelp", "zero: ^1", "replicate ... with bucket: bytes = 25MiB, prefetch"},
      {"signatureHelp", "zero: ^1", R"("activeParameter":3)"},
      {"signatureHelp", "bucket: ^1MiB", R"("activeParameter":0)"},
      {"signatureHelp", "window: ^3", R"("activeParameter":1)"},
      {"signatureHelp", "place mod^el", "null"},
  };
  for (const Row& row : rows) {
    const std::string answer = line(
        client.request(std::string("textDocument/") + row.method, client.at(kPath, row.place)));
    EXPECT_NE(answer.find(row.holds), std::string::npos)
        << row.method << " at " << row.place << "\n"
        << answer;
  }
}

TEST(Arguments, EveryBuiltinAndEveryArgumentHasAMeaning) {
  for (const bool methods : {false, true}) {
    for (const std::string_view name : sema::builtin_names(methods)) {
      for (const sema::Signature* row : sema::find_builtins(name, methods)) {
        EXPECT_FALSE(lsp::meaning_of(row->id).empty()) << row->text;
        for (const sema::BuiltinParam& param : row->params)
          EXPECT_FALSE(lsp::meaning_of_argument(row->name, param.name).empty())
              << row->text << ": " << param.name;
      }
    }
  }
  EXPECT_EQ(lsp::meaning_of_argument("sgd", "tempo"), "");
}

TEST(Arguments, EveryKeywordHasAMeaning) {
  for (const std::string& keyword : parse::keywords())
    EXPECT_FALSE(lsp::meaning_of_word(keyword).empty()) << keyword;
}

}  // namespace
}  // namespace piper::test
