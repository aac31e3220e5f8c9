// New names: the references that follow, and refusals because the program or its data would change.

#include <gtest/gtest.h>

#include "tests/lsp/client.h"

namespace piper::test {
namespace {

const std::string kNets = "/nets.pipe", kPlans = "/plans.pipe", kMain = "/main.pipe";

const std::string kNetsText =
    "model tower(layers: int, width: int) {\n"
    "    input x: tensor[batch, dim: 4]\n"
    "    var h = dense(x, width)\n"
    "    for l in 0..layers { h = near(h) }\n"
    "    for l in 0..layers { h = far(h) }\n"
    "    loss square(noisy(h))\n"
    "}\n"
    "model dense(x: tensor[batch, dim], hidden: int) -> tensor[batch, hidden] {\n"
    "    weight gain[dim, hidden]\n"
    "    return x @ gain\n"
    "}\n"
    "model near(x: tensor[batch, hidden]) -> tensor[batch, hidden] { return gelu(x) }\n"
    "model far(x: tensor[batch, hidden]) -> tensor[batch, hidden] { return relu(x) }\n"
    "model noisy(x: tensor[batch, hidden]) -> tensor[batch, hidden] { return dropout(x, 0.1) }\n";

const std::string kPlansText =
    "def half(of: int, less: int = 0) -> int { return (of - less) / 2 }\n"
    "schedule cut(p: axis, m: int) {\n"
    "    partition model into stage: p\n"
    "    for s in 0..p { place stage[s] on p[s] }\n"
    "    split batch into mb: m\n"
    "}\n";

const std::string kMainText =
    "use nets\n"
    "use plans\n"
    "mesh line(p: 2)\n"
    "train t = tower(layers: 2, width: half(of: 8)) on line {\n"
    "    data:  synthetic(batch: 8)\n"
    "    optim: sgd(lr: 0.1)\n"
    "    steps: 1\n"
    "    cut(p, m: half(8))\n"
    "    recompute near[0]\n"
    "}\n";

class Rename : public testing::Test {
 protected:
  Rename() {
    for (const auto& [path, text] :
         {std::pair{kNets, kNetsText}, {kPlans, kPlansText}, {kMain, kMainText}}) {
      disk_.add(path, text);
      client_.open(path, text);
    }
  }

  json::Value renamed(const std::string& path, const std::string& place, const std::string& name) {
    json::Object params = client_.at(path, place);
    params["newName"] = name;
    return client_.request("textDocument/rename", std::move(params));
  }
  /// `main.pipe 4 | nets.pipe 1`: the lines with edits, or the reason why there are none.
  static std::string edits_of(const json::Value& answer) {
    const json::Object* changes = answer.getAsObject()->getObject("changes");
    if (changes == nullptr) return answer.getAsObject()->getString("message").value_or("").str();
    std::string all;
    for (const char* path : {"main.pipe", "nets.pipe", "plans.pipe"}) {
      const json::Array* edits = changes->getArray("file:///" + std::string(path));
      if (edits == nullptr) continue;
      all += (all.empty() ? "" : " | ") + std::string(path);
      for (const json::Value& edit : *edits)
        all += " " +
               std::to_string(
                   *edit.getAsObject()->getObject("range")->getObject("start")->getInteger("line") +
                   1);
    }
    return all;
  }

  source::MemoryFileSystem disk_;
  Client client_{disk_};
};

TEST_F(Rename, FollowsWhatMeansTheSameAndSaysWhyNot) {
  struct Row {
    const std::string path;
    const char *place, *name, *expected;
  };
  const Row rows[] = {
      // Names of arguments are their parameter's: of models, functions, schedules, in this file and
      // others.
      {kNets, "tower(lay^ers", "depth", "main.pipe 4 | nets.pipe 1 4 5"},
      {kMain, "tower(lay^ers", "depth", "main.pipe 4 | nets.pipe 1 4 5"},
      {kPlans, "half(^of", "all", "main.pipe 4 | plans.pipe 1 1"},
      {kPlans, "less^: int", "without", "plans.pipe 1 1"},
      {kMain, "cut(p, ^m:", "parts", "main.pipe 8 | plans.pipe 2 5"},
      {kNets, "model to^wer", "net", "main.pipe 4 | nets.pipe 1"},
      {kNets, "= fa^r(h)", "distant", "nets.pipe 5 13"},
      // The error that it would cause is reported.
      {kNets, "tower(lay^ers", "width",
       "with `width` in place of `layers` there would be an error: `width` is declared already, at /nets.pipe:1"},
      {kPlans, "for ^s in", "stage",
       "with `stage` in place of `s` there would be an error: `stage` is an `int` here, not a selector, at /plans.pipe:4"},
      {kPlans, "half(^of", "less",
       "with `less` in place of `of` there would be an error: `less` is declared already, at /plans.pipe:1"},
      // Regions are named by their models.
      {kNets, "model ne^ar", "close",
       "regions are known by the name of their model: directives name it at /main.pipe:9"},
      {kNets, "model fa^r", "near",
       "regions are known by the name of their model, and directives mean something else by `near` at /main.pipe:9"},
      {kNets, "model fa^r", "stage",
       "regions are known by the name of their model, and directives mean something else by `stage` at /plans.pipe:3"},
      {kNets, "model fa^r", "mb",
       "regions are known by the name of their model, and directives mean something else by `mb` at /plans.pipe:5"},
      {kNets, "model fa^r", "batch",
       "regions are known by the name of their model, and directives mean something else by `batch` at /plans.pipe:5"},
      // Data, directives and first values have the others by name.
      {kNets, "input ^x", "y", "inputs are known by their names: data finds its columns by them"},
      {kNets, "weight ga^in", "scale",
       "weights are known by their names: a weight's name decides its first values"},
      {kNets, "x @ ga^in", "scale",
       "weights are known by their names: a weight's name decides its first values"},
      {kNets, "model den^se", "wide",
       "weights and dropout are known by the models that they are in: first values and random numbers would be others"},
      {kNets, "model no^isy", "loud",
       "weights and dropout are known by the models that they are in: first values and random numbers would be others"},
      {kNets, "gain[d^im", "size",
       "dimensions are known by their names: data, directives and other models refer to the same one"},
      {kNets, "hid^den: int", "size",
       "dimensions are known by their names: data, directives and other models refer to the same one"},
  };
  for (const Row& row : rows)
    EXPECT_EQ(edits_of(renamed(row.path, row.place, row.name)), row.expected)
        << row.place << " " << row.name;
}

TEST_F(Rename, FilesWithoutTheNameMustMeanTheSameToo) {
  client_.replace(kMain, "use nets\nuse plans\nparam n = half(4)\n");
  client_.replace(kNets, kNetsText + "def third(of: int) -> int { return of / 3 }\n");
  EXPECT_EQ(edits_of(renamed(kNets, "def thi^rd", "quarter")), "nets.pipe 15");
  const std::string refused = edits_of(renamed(kNets, "def thi^rd", "half"));
  EXPECT_NE(refused.find("at /main.pipe:3"), std::string::npos) << refused;
}

TEST_F(Rename, NamesOfArgumentsLeadToTheirParameter) {
  const std::string definition =
      line(client_.request("textDocument/definition", client_.at(kMain, "half(o^f: 8")));
  EXPECT_NE(definition.find("/plans.pipe"), std::string::npos) << definition;
  json::Object params = client_.at(kPlans, "half(^of");
  params["context"] = json::Object{{"includeDeclaration", false}};
  const std::string references =
      line(client_.request("textDocument/references", std::move(params)));
  EXPECT_NE(references.find("/main.pipe"), std::string::npos) << references;
  client_.edit(kPlans, "}\nschedule cut", "}\nparam two = half(of: 4)\nschedule cut");
  const std::string highlight =
      line(client_.request("textDocument/documentHighlight", client_.at(kPlans, "half(^of: int")));
  EXPECT_NE(highlight.find(R"("line":1)"), std::string::npos) << highlight;
}

}  // namespace
}  // namespace piper::test
