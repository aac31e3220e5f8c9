// Requests about `names` items.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/lsp/client.h"

namespace piper::test {
namespace {

const std::string kPath = "/map.pipe";
const std::string kText =
    "model net(layers: int) {\n"
    "    input x: tensor[batch, dim: 4]\n"
    "    var h = x\n"
    "    for l in 0..layers { h = layer(h) }\n"
    "    loss square(h)\n"
    "}\n"
    "model layer(x: tensor[batch, dim]) -> tensor[batch, dim] {\n"
    "    weight up[dim, hidden: 8], down[hidden, dim] = normal(0.1)\n"
    "    return x + tanh(x @ up) @ down\n"
    "}\n"
    "mesh one(p: 1)\n"
    "\n"
    "/// The names of a file.\n"
    "names mine {\n"
    "    layer[l].up: \"up.{l}\"[hidden, dim]\n"
    "    layer[l].down: \"down.{l}\"[dim, hidden]\n"
    "    config { layers: layers }\n"
    "}\n"
    "train t = net(layers: 2) on one {\n"
    "    data:  synthetic(batch: 4)\n"
    "    optim: sgd(lr: 0.1)\n"
    "    steps: 1\n"
    "    init:  weights(\"w\", names: mine)\n"
    "}\n";

std::string line(const json::Value& value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  return text;
}

TEST(NamesItem, AnswersRequests) {
  const source::MemoryFileSystem disk;
  Client client(disk);
  client.open(kPath, kText);
  EXPECT_EQ(client.diagnostics(kPath), "");
  struct Row {
    const char* method;
    const char* place;
    const char* holds;
    json::Object more = {};
  };
  const Row rows[] = {
      {"hover", "names: mi^ne", "The names of a file."},
      {"hover", "^names mine", "parameters of a model as tensors"},
      {"hover", "layer[l].u^p:", "weight up[dim, hidden: 8]"},
      {"definition", "names: mi^ne", R"("line":13)"},
      {"references", "names mi^ne", R"("line":22)"},
      {"rename", "names mi^ne", R"("newText":"yours")", json::Object{{"newName", "yours"}}},
      {"rename", "names mi^ne", R"("newText":"names")", json::Object{{"newName", "names"}}},
      {"documentSymbol", "^names mine", R"("detail":"names")"},
      {"foldingRange", "^names mine", R"("endLine":16)"},
  };
  for (const Row& row : rows) {
    json::Object params = client.at(kPath, row.place);
    for (const auto& [name, value] : row.more) params[name] = value;
    const std::string answer =
        line(client.request(std::string("textDocument/") + row.method, std::move(params)));
    EXPECT_NE(answer.find(row.holds), std::string::npos)
        << row.method << " at " << row.place << "\n"
        << answer;
  }
}

TEST(NamesItem, CompletesPathsAndDimensions) {
  const source::MemoryFileSystem disk;
  Client client(disk);
  const std::pair<const char*, const char*> rows[] = {
      {"    ^", "config ignore layer[l].down layer[l].up"},
      {"    layer[l].up: \"up\"[hidden]\n    ^", "config ignore layer[l].down"},
      {"    layer[l].^", "down up"},
      {"    layer[l].(up, ^", "down up"},
      {"    layer[l].up[^", "dim hidden"},
      {"    layer[l].up: \"up.{l}\"[dim, ^", "hidden"},
      {"    layer[l].(up, down): \"up.{l}\"[^", "dim hidden of"},
      {"    layer[l].up[dim, hidden = half: 2 pair]: \"up.{l}\"[^", "dim half pair"},
      {"    layer[l].up[hidden = half: 2 pair]: \"up.{l}\"[half, ^", "dim pair"},
      {"    layer[l].up[hidden = half: 2 pair, ^", "dim"},
      {"    layer[l].up: \"up.{l}\"[dim, hidden] ^", "or"},
      {"    layer[l].up: \"up.{l}\"[dim, hidden] or ^", "none"},
  };
  std::int64_t number = 0;
  for (const auto& [typed, expected] : rows) {
    const std::string path = "/c" + std::to_string(++number) + ".pipe";
    std::string text = kText.substr(0, kText.find("/// The names")) + "names mine {\n";
    const std::string mark = typed;
    const std::size_t cursor = text.size() + mark.find('^');
    text += mark.substr(0, mark.find('^')) + "\n}\n";
    client.open(path, text);
    json::Object params = client.file(path);
    SourceTable table;
    const FileId file = table.add("", text);
    params["position"] = lsp::to_json(
        table.line_column(file, static_cast<std::uint32_t>(cursor), ColumnUnit::utf16));
    std::vector<std::string> found;
    const json::Value answer = client.request("textDocument/completion", std::move(params));
    if (const json::Array* items = answer.getAsArray()) {
      for (const json::Value& item : *items)
        found.push_back(item.getAsObject()->getString("label")->str());
    }
    std::sort(found.begin(), found.end());
    std::string all;
    for (const std::string& label : found) all += (all.empty() ? "" : " ") + label;
    EXPECT_EQ(all, expected) << typed;
  }
}

/// Two models that both call two others, and so on: the calls double at each level.
TEST(NamesItem, CompletesBehindManyCalls) {
  const source::MemoryFileSystem disk;
  Client client(disk);
  const auto head = [](const std::string& name) {
    return "model " + name + "(x: tensor[batch, dim]) -> tensor[batch, dim] {\n";
  };
  std::string text = head("a0") + "    return x\n}\n" + head("b0") + "    return x\n}\n";
  constexpr int kDepth = 40;
  for (int level = 1; level <= kDepth; ++level) {
    const std::string below = std::to_string(level - 1);
    for (const std::string name : {"a", "b"})
      text += head(name + std::to_string(level)) + "    return a" + below + "(x) + b" + below +
              "(x)\n}\n";
  }
  const std::string top = std::to_string(kDepth);
  text +=
      "model net() {\n    input x: tensor[batch, dim: 4]\n    weight w[dim, out: 3]\n"
      "    loss square(a" +
      top + "(x) @ w)\n}\nnames mine {\n    \n}\n";
  client.open(kPath, text);
  const std::string answer =
      line(client.request("textDocument/completion", client.at(kPath, "names mine {\n    ^")));
  EXPECT_NE(answer.find(R"("label":"w")"), std::string::npos) << answer;
}

}  // namespace
}  // namespace piper::test
