// Completion: exactly the words that are possible at positions of each kind; and every word in the
// library and the examples is offered at its position.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "frontend/parse/lexemes.h"
#include "frontend/service/workspace.h"
#include "tests/lsp/client.h"
#include "tests/support/random_cases.h"

namespace piper::test {
namespace {

const std::string kPath = "/t.pipe";

std::vector<std::string> labels(const json::Value& answer) {
  std::vector<std::string> list;
  if (const json::Array* items = answer.getAsArray()) {
    for (const json::Value& item : *items)
      list.push_back(item.getAsObject()->getString("label")->str());
  }
  std::sort(list.begin(), list.end());
  return list;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

struct Row {
  const char* text;      // `^`: the cursor
  const char* expected;  // sorted
};

TEST(Completion, OffersWhatCanStandThere) {
  const source::MemoryFileSystem disk;
  Client client(disk);
  const Row rows[] = {
      {"^", "def machine mesh model names param schedule train use"},
      {"mesh m(p: 2)\nsch^", "def machine mesh model names param schedule train use"},
      {"mesh m(p: 2)\nmachine lab ^", "on"},
      {"mesh m(p: 2)\nmachine lab on ^", "m"},
      {"mesh m(p: 2)\nmachine lab on m {\n    ^\n}\n", "all: for if let p: repeat require var"},
      {"mesh m(p: 2)\nmachine lab on m {\n    p: ^\n}\n", "device link"},
      {"mesh m(p: 2)\nmachine lab on m {\n    all: ^\n}\n", "device"},
      {"mesh m(p: 2)\nmachine lab on m {\n    all: device(^)\n}\n",
       "abs at: bandwidth: ceil ceil_div efficiency: floor flops: flops_bf16: flops_f64: host: if kind: len max memory: min overlap: p round speed: sum"},
      {"mesh m(p: 2)\nmachine lab on m {\n    all: device(at: ^)\n}\n", "if p"},
      {"mesh m(p: 2)\nmachine lab on m {\n    all: device(memory: 1GiB, ^)\n}\n",
       "at: bandwidth: efficiency: flops: flops_bf16: flops_f64: host: kind: overlap: speed:"},
      {"mesh m(p: 2)\nmachine lab on m {\n    p: link(bandwidth: 1GiB, ^)\n}\n",
       "latency: shared:"},
      {"mesh m(p: 2, q: 2)\nmachine lab on m {\n    p: link(bandwidth: 1GiB)\n    ^\n}\n",
       "all: for if let p: q: repeat require var"},
      {"use std.^", "models names schedules"},
      {"use std.models.^", "gpt gpt2 llama mlp two_towers"},
      {"mesh m(p: 2)\nuse std.models.mlp\ntrain t = ^", "gpt gpt2 llama mlp two_towers"},
      {"mesh m(p: 2)\nuse std.models.mlp\ntrain t = mlp(layers: 1) ^", "on"},
      {"mesh m(p: 2)\nuse std.models.mlp\ntrain t = mlp(layers: 1) on ^", "m"},
      {"use std.models.mlp\nmesh m(p: 2)\ntrain t = mlp(layers: 1, ^) on m {\n}\n",
       "classes: features: hidden:"},
      {"schedule s(p: axis, m: int) {\n    partition ^\n}\n", "model"},
      {"schedule s(p: axis, m: int) {\n    partition model ^\n}\n", "into"},
      {"schedule s(p: axis, m: int) {\n    partition model into ^\n}\n", "stage:"},
      {"schedule s(p: axis, m: int) {\n    partition model into stage: p\n    place ^\n}\n",
       "B BI BW F model stage"},
      {"schedule s(p: axis, m: int) {\n    partition model into stage: p\n    place stage ^\n}\n",
       "on"},
      {"schedule s(p: axis, m: int) {\n    partition model into stage: p\n    place stage on ^\n}\n",
       "p"},
      {"schedule s(p: axis, q: axis, m: int) {\n    replicate model over ^\n}\n", "p q"},
      {"schedule s(p: axis, m: int) {\n    replicate model over p with ^\n}\n",
       "bucket: prefetch: reduce: zero:"},
      {"schedule s(p: axis, m: int) {\n    split ^\n}\n", "batch"},
      {"schedule s(p: axis, m: int) {\n    split batch into ^\n}\n", "copy: mb:"},
      {"schedule s(p: axis, m: int) {\n    stream grads: model.^\n}\n", "gather recv reduce send"},
      {"schedule s(p: axis, m: int) {\n    order {\n        rank r in ^\n    }\n}\n", "p"},
      {"schedule s(p: axis, m: int) {\n    partition model into stage: p\n    split batch into mb: m\n    order {\n        rank r in p {\n            cursor a = stage[r] ^\n        }\n    }\n}\n",
       "backward mb"},
      {"schedule s(p: axis, m: int) {\n    partition model into stage: p\n    order {\n        rank r in p {\n            cursor a = stage[r]\n            F ^\n        }\n    }\n}\n",
       "a stage"},
      {"schedule s(p: axis, m: int) {\n    partition model into stage: p\n    order {\n        rank r in p {\n            F stage[r].^\n        }\n    }\n}\n",
       "gather recv rest send"},
      {"schedule s(p: axis, m: int) {\n    partition model into stage: p\n    order {\n        rank r in p {\n            B stage[r].^\n        }\n    }\n}\n",
       "gather recv reduce rest send"},
      {"schedule s(p: axis, m: int) {\n    partition model into stage: p\n    order {\n        rank r in p {\n            F stage[r] & BW stage[r].^\n        }\n    }\n}\n",
       "gather reduce rest"},
      {"schedule s(p: axis, m: int) {\n    partition model into stage: p\n    order {\n        rank r in p {\n            cursor a = stage[r].^\n        }\n    }\n}\n",
       "rest"},
      {"schedule s(p: axis, m: int) {\n    partition model into stage: p\n    place stage[0].^\n}\n",
       "rest"},
      {"schedule s(p: axis, m: int) {\n    recompute model.^\n}\n", "rest"},
      {"schedule s(p: axis, m: int) {\n    order {\n        ^\n    }\n}\n",
       "for if let rank repeat require return var"},
      {"model f(x: tensor[batch, dim]) {\n    weight w[dim] = ^\n}\n",
       "constant normal ones uniform zeros"},
      {"model f(x: ^) {\n}\n", "bf16 bool bytes f32 f64 float i64 int string tensor"},
      {"use std.models.mlp\nmesh m(p: 2)\ntrain t = mlp(layers: 1) on m {\n    optim: ^\n}\n",
       "adamw sgd"},
      {"use std.models.mlp\nmesh m(p: 2)\ntrain t = mlp(layers: 1) on m {\n    dtype: ^\n}\n",
       "bf16 f32 f64"},
      {"use std.models.mlp\nmesh m(p: 2)\ntrain t = mlp(layers: 1) on m {\n    data: ^\n}\n",
       "arrays bytes synthetic tokens"},
      {"use std.models.mlp\nmesh m(p: 2)\ntrain t = mlp(layers: 1) on m {\n    data: arrays(\"x\", batch: 2, sampling: ^)\n}\n",
       "epoch replacement"},
      {"use std.models.mlp\nmesh m(p: 2)\ntrain t = mlp(layers: 1) on m {\n    data: tokens(\"x\", batch: 2, seq: 8, dtype: ^)\n}\n",
       "i32 u16 u32 u8"},
      {"use std.models.mlp\nmesh m(p: 2)\ntrain t = mlp(layers: 1) on m {\n    checkpoint: ^\n}\n",
       "every"},
      {"use std.models.mlp\nmesh m(p: 2)\ntrain t = mlp(layers: 1) on m {\n    evaluate: ^\n}\n",
       "every"},
      {"use std.models.mlp\nmesh m(p: 2)\ntrain t = mlp(layers: 1) on m {\n    init: ^\n}\n",
       "weights"},
      {"use std.models.mlp\nnames mine { w: \"w\"[dim] }\nmesh m(p: 2)\n"
       "train t = mlp(layers: 1) on m {\n    init: weights(\"w\", names: ^)\n}\n",
       "mine"},
      {"use std.models.mlp\nmesh m(p: 2)\ntrain t = mlp(layers: 1) on m {\n    skip_step: ^\n}\n",
       "norm"},
      {"use std.models.mlp\nmesh m(p: 2)\ntrain t = mlp(layers: 1) on m {\n    optim: adamw(lr: 0.1, decay: ^)\n}\n",
       "all matrices"},
      {"schedule s(p: axis, m: int) {\n    tune model with ^\n}\n", "decay: rate:"},
      {"use std.models.mlp\nmesh m(p: 2)\ntrain t = mlp(layers: 1) on m {\n    init: weights(\"w\", missing: ^)\n}\n",
       "init"},
      {"use std.models.mlp\nmesh m(p: 2)\ntrain t = mlp(layers: 1) on m {\n    checkpoint: every(steps: 5, ^)\n}\n",
       "best: keep:"},
      {"// a comment ^\n", ""},
      {"param x = \"a string ^\"\n", ""},
      {"param x ^", "in"},
      {"param x in [1] ^", ""},
      {"mesh ^", ""},
      {"schedule ^", ""},
  };
  std::int64_t number = 0;
  for (const Row& row : rows) {
    std::string text = row.text;
    const std::size_t mark = text.find('^');
    text.erase(mark, 1);
    const std::string path = "/t" + std::to_string(++number) + ".pipe";
    client.open(path, text);
    json::Object params = client.file(path);
    SourceTable table;
    const FileId file = table.add("", text);
    params["position"] =
        lsp::to_json(table.line_column(file, static_cast<std::uint32_t>(mark), ColumnUnit::utf16));
    EXPECT_EQ(joined(labels(client.request("textDocument/completion", std::move(params)))),
              row.expected)
        << row.text;
    client.notify("textDocument/didClose", client.file(path));
  }
}

/// Names that are one's own to choose, or labels of a model that the file does not know.
bool is_chosen(std::string_view text, const std::vector<parse::Lexeme>& all, std::size_t at) {
  const auto word = [&](std::size_t i) {
    return i < all.size() ? text.substr(all[i].begin, all[i].end - all[i].begin)
                          : std::string_view();
  };
  const std::string_view before = at > 0 ? word(at - 1) : std::string_view(), behind = word(at + 1);
  // Inside a `names` item are names of a model that the file does not know.
  const std::size_t item = text.substr(0, all[at].begin).rfind("\nnames ");
  if (item != std::string_view::npos && text.substr(item).find("\n}") + item > all[at].begin)
    return true;
  for (const std::string_view declares :
       {"use", "param", "mesh", "def", "schedule", "model", "train", "let", "var", "for", "rank",
        "cursor", "weight", "input", "region", "stream", "names"}) {
    if (before == declares) return true;
  }
  // A declaration's parameters, axes and dimensions; the second weight of a line; `backward` on a
  // separate line.
  const std::size_t line = text.rfind('\n', all[at].begin) + 1;
  const std::string_view first = text.substr(line, text.find(' ', line) - line);
  const bool declares =
      first == "def" || first == "schedule" || first == "model" || first == "mesh";
  const std::string_view indented =
      text.substr(std::min(text.find_first_not_of(' ', line), text.size()));
  const bool weight = indented.starts_with("weight") && behind == "[" && before == ",";
  return behind == "in" || before == "." || weight || word(at) == "backward" ||
         (behind == ":" && (declares || before != "("));
}

struct Source {
  std::string path, text;
  std::vector<parse::Lexeme> words;  // that are no comments
};

std::vector<Source> sources() {
  std::vector<Source> list;
  for (const char* folder : {"stdlib", "examples"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.path().extension() != ".pipe") continue;
      std::ifstream stream(entry.path());
      std::stringstream content;
      content << stream.rdbuf();
      Source source{std::filesystem::absolute(entry.path()).string(), content.str(), {}};
      source.words = parse::lexemes(source.text);
      std::erase_if(source.words, [](const parse::Lexeme& lexeme) {
        return lexeme.kind == parse::LexemeKind::comment;
      });
      list.push_back(std::move(source));
    }
  }
  std::sort(list.begin(), list.end(),
            [](const Source& a, const Source& b) { return a.path < b.path; });
  return list;
}

bool is_word(const parse::Lexeme& lexeme) {
  return lexeme.kind == parse::LexemeKind::name || lexeme.kind == parse::LexemeKind::keyword ||
         lexeme.kind == parse::LexemeKind::pass;
}

json::Object place(Client& client, const Source& source, std::uint32_t at) {
  SourceTable table;
  const FileId file = table.add("", source.text);
  json::Object params = client.file(source.path);
  params["position"] = lsp::to_json(table.line_column(file, at, ColumnUnit::utf16));
  return params;
}

TEST(Completion, OffersWhatStandsInTheLibraryAndTheExamples) {
  const source::RealFileSystem disk;
  Client client(disk);
  std::size_t asked = 0;
  for (const Source& source : sources()) {
    client.open(source.path, source.text);
    for (std::size_t i = 0; i < source.words.size(); ++i) {
      const parse::Lexeme& lexeme = source.words[i];
      if (!is_word(lexeme) || is_chosen(source.text, source.words, i)) continue;
      const std::string word = source.text.substr(lexeme.begin, lexeme.end - lexeme.begin);
      const std::vector<std::string> found =
          labels(client.request("textDocument/completion", place(client, source, lexeme.end)));
      const bool offered = std::find(found.begin(), found.end(), word) != found.end() ||
                           std::find(found.begin(), found.end(), word + ":") != found.end();
      EXPECT_TRUE(offered) << source.path << ", byte " << lexeme.begin << " `" << word
                           << "`: " << joined(found);
      ++asked;
    }
  }
  EXPECT_GT(asked, 1000u);
}

/// Mistakes that an offered word makes by itself, whatever follows it.
bool is_wrong_there(Code code) {
  switch (code) {
    case Code::unknown_name:
    case Code::misplaced_statement:
    case Code::not_available:
    case Code::unknown_setting:
    case Code::unknown_module: return true;
    default: return false;
  }
}

TEST(Completion, OffersNothingThatWouldBeWrong) {
  const source::RealFileSystem disk;
  Client client(disk);
  const std::vector<Source> all = sources();
  for (const Source& source : all) client.open(source.path, source.text);
  for_each_case(250, [&](Random& random) {
    const Source& source = random.pick(all);
    const std::size_t at = random.below(source.words.size());
    const parse::Lexeme& lexeme = source.words[at];
    if (!is_word(lexeme) || is_chosen(source.text, source.words, at)) return;
    const json::Value answer =
        client.request("textDocument/completion", place(client, source, lexeme.end));
    if (answer.getAsArray() == nullptr || answer.getAsArray()->empty()) return;
    const json::Object& item =
        *(*answer.getAsArray())[random.below(answer.getAsArray()->size())].getAsObject();
    const std::string insert = item.getObject("textEdit")->getString("newText")->str();
    std::string text = source.text;
    text.replace(lexeme.begin, lexeme.end - lexeme.begin, insert);
    std::size_t shift = 0;
    // A `use`, which stands before.
    if (const json::Array* more = item.getArray("additionalTextEdits")) {
      SourceTable table;
      const FileId file = table.add("", source.text);
      const json::Object* edit = more->front().getAsObject();
      const std::string use = edit->getString("newText")->str();
      shift = use.size();
      text.insert(table.offset(file, *lsp::position_of(edit->getObject("range")->get("start")),
                               ColumnUnit::utf16),
                  use);
    }
    service::Workspace workspace(disk);
    workspace.open(source.path, text);
    const auto document = workspace.document(source.path);
    for (const Diagnostic& diagnostic : document->program().diagnostics) {
      if (diagnostic.range.begin != lexeme.begin + shift || diagnostic.range.file.index() != 0)
        continue;
      EXPECT_FALSE(is_wrong_there(diagnostic.code))
          << source.path << ": `" << insert << "` in place of `"
          << source.text.substr(lexeme.begin, lexeme.end - lexeme.begin) << "`\n"
          << diagnostic.message;
    }
  });
}

}  // namespace
}  // namespace piper::test
