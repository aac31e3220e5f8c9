// Whole answers of every request about one program, in goldens: other tests check only parts of an
// answer. Ranges are `line:column-line:column` as the protocol counts them, columns in UTF-16 units
// after characters that take two.

#include <gtest/gtest.h>

#include "frontend/lsp/methods.h"
#include "tests/lsp/client.h"
#include "tests/support/golden.h"
#include "tests/support/temporary_folder.h"

namespace piper::test {
namespace {

const std::string kFolder = "tests/lsp/testdata/answers/";

std::string place(const json::Object& position) {
  return std::to_string(*position.getInteger("line")) + ":" +
         std::to_string(*position.getInteger("character"));
}

/// Ranges and positions as text, and the cache under one name.
json::Value short_form(const json::Value& value, const std::string& cache) {
  if (const json::Object* object = value.getAsObject()) {
    const json::Object *start = object->getObject("start"), *end = object->getObject("end");
    if (object->size() == 2 && start != nullptr && end != nullptr)
      return place(*start) + "-" + place(*end);
    if (object->size() == 2 && object->getInteger("line") && object->getInteger("character"))
      return place(*object);
    json::Object made;
    for (const auto& [key, each] : *object) made[key] = short_form(each, cache);
    return made;
  }
  if (const json::Array* array = value.getAsArray()) {
    json::Array made;
    for (const json::Value& each : *array) made.push_back(short_form(each, cache));
    return made;
  }
  const auto text = value.getAsString();
  if (!text) return value;
  std::string own = text->str();
  for (std::size_t at = 0; !cache.empty() && (at = own.find(cache, at)) != std::string::npos;)
    own.replace(at, cache.size(), "/CACHE");
  return own;
}

/// An element a line.
std::string lines(const json::Value& value) {
  const json::Array* array = value.getAsArray();
  if (array == nullptr) return line(value) + "\n";
  std::string text;
  for (const json::Value& each : *array) text += line(each) + "\n";
  return text.empty() ? "[]\n" : text;
}

/// Tokens by absolute place, length, type and modifiers.
std::string tokens(const json::Object& answer) {
  std::string text;
  std::int64_t row = 0, column = 0;
  const json::Array& data = *answer.getArray("data");
  for (std::size_t i = 0; i + 4 < data.size(); i += 5) {
    const std::int64_t down = *data[i].getAsInteger(), right = *data[i + 1].getAsInteger();
    row += down;
    column = down > 0 ? right : column + right;
    text +=
        (i > 0 && down > 0 ? "\n" : " ") + std::to_string(row) + ":" + std::to_string(column) +
        "+" + std::to_string(*data[i + 2].getAsInteger()) + " " +
        std::string(
            lsp::semantic_token_types()[static_cast<std::size_t>(*data[i + 3].getAsInteger())]) +
        "/" + std::to_string(*data[i + 4].getAsInteger());
  }
  return text + "\n";
}

class Answers : public testing::Test {
 protected:
  Answers() : client_(disk_, {}, true, cache_.path().string()) {
    for (const char* name : {"shapes", "net"})
      client_.open("/" + std::string(name) + ".pipe", *read_text(kFolder + name + ".pipe"));
    EXPECT_EQ(client_.diagnostics(kNet), "");
    client_.wait_for(kShapes, "\"diagnostics\":[]");  // it is used
  }

  std::string answer(const std::string& method, json::Object params) {
    return lines(short_form(client_.request(method, std::move(params)), cache_.path().string()));
  }
  json::Object whole(const std::string& path, std::int64_t first = 0, std::int64_t last = 99) {
    json::Object params = client_.file(path);
    params["range"] = json::Object{{"start", json::Object{{"line", first}, {"character", 0}}},
                                   {"end", json::Object{{"line", last}, {"character", 0}}}};
    return params;
  }
  static void expect(const char* name, const std::string& text) {
    expect_golden(kFolder + name + ".txt", text);
  }

  const std::string kNet = "/net.pipe", kShapes = "/shapes.pipe";
  const TemporaryFolder cache_;
  const source::MemoryFileSystem disk_;
  Client client_;
};

/// The requests at a position, `^` in an excerpt of the text.
TEST_F(Answers, AtPlaces) {
  const std::pair<const char*, std::vector<const char*>> asked[] = {
      {"hover",
       {"param wid^th",
        "hidden: twice(wid^th)",
        "let la^st",
        "rank ^r in",
        "pl^ain(pp",
        "^pair {\n    data:  synthetic(batch: 8",
        "over d^p",
        "let mid^dle",
        "sca^le(grow",
        "= no^rmal(0.1)",
        "opt^im: adamw",
        "F^ a }\n            repeat left(F",
        "last ^- r",
        "schedule pl^ain",
        "train sma^ll",
        "model n^et",
        "mod^el over",
        "place st^age[s]",
        "req^uire m",
        "gpi^pe(pp",
        "repeat lef^t(F a)",
        "us^e shapes",
        "th^en",
        "zer^o: 1"}},
      {"definition",
       {"hidden: twice(wid^th)", "pl^ain(pp", "sca^le(grow", "gro^w(x, h", "F ^a; B a", "gpi^pe(pp",
        "use shap^es", "over d^p"}},
      {"references", {"let la^st", "cursor ^a", "param wid^th", "sca^le(grow"}},
      {"documentHighlight", {"repeat left(^F a) { F a; B", "let la^st", "mid^dle)", "cursor ^a"}},
      {"prepareRename", {"let la^st", "gpi^pe(pp", "mid^dle)", "sca^le(grow"}},
      {"signatureHelp", {"plain(pp,^ 4)", "twice(wid^th)", "min(last - r,^ m)", "adamw(lr:^ 0.1)"}},
      {"selectionRange", {"min(la^st - r", "mid^dle)"}},
      {"prepareCallHierarchy", {"def twi^ce", "pl^ain(pp", "sca^le(grow"}},
      {"completion",
       {"let last = ^p - 1", "repeat min(la^st", "plain(^pp, 4)", "dp with ^zero: 1",
        "loss ^square(middle)", "use std.schedules.^gpipe", "on p[^s]", "optim: ^sgd"}},
  };
  for (const auto& [method, places] : asked) {
    std::string text;
    for (const char* excerpt : places) {
      json::Object params = client_.at(kNet, excerpt);
      if (std::string_view(method) == "references")
        params["context"] = json::Object{{"includeDeclaration", text.empty()}};
      if (std::string_view(method) == "selectionRange")
        params["positions"] = json::Array{*params.get("position")};
      std::string shown(excerpt);
      for (std::size_t at = 0; (at = shown.find('\n', at)) != std::string::npos;)
        shown.replace(at, 1, "\\n");
      text +=
          "# " + shown + "\n" + answer("textDocument/" + std::string(method), std::move(params));
    }
    expect(method, text);
  }
}

TEST_F(Answers, AboutFiles) {
  for (const char* method : {"documentSymbol", "foldingRange", "codeLens", "inlayHint"}) {
    std::string text;
    for (const std::string& path : {kNet, kShapes})
      text += "# " + path + "\n" + answer("textDocument/" + std::string(method), whole(path));
    if (std::string_view(method) == "inlayHint")
      text += "# lines 9 to 12\n" + answer("textDocument/inlayHint", whole(kNet, 9, 12));
    expect(method, text);
  }
  std::string text;
  for (const std::string& path : {kNet, kShapes})
    text +=
        "# " + path + "\n" +
        tokens(
            *client_.request("textDocument/semanticTokens/full", client_.file(path)).getAsObject());
  expect("semanticTokens", text);
  expect("symbols", answer("workspace/symbol", json::Object{{"query", "s"}}));
}

TEST_F(Answers, ThatFormat) {
  const std::string untidy = *read_text("tests/format/testdata/untidy.pipe"),
                    tidy = *read_text("tests/format/testdata/untidy.expected");
  client_.open("/untidy.pipe", untidy);
  const json::Value edits =
      client_.request("textDocument/formatting", client_.file("/untidy.pipe"));
  expect("formatting", lines(short_form(edits, "")));
  client_.open("/tidy.pipe", tidy);
  client_.open("/text.pir", untidy);
  for (const char* path : {"/tidy.pipe", "/text.pir"})
    EXPECT_EQ(line(client_.request("textDocument/formatting", client_.file(path))), "[]") << path;
}

TEST_F(Answers, FollowingRequests) {
  std::string text;
  for (const char* excerpt : {"def twi^ce", "pl^ain(pp", "sca^le(grow"}) {
    const json::Value items =
        client_.request("textDocument/prepareCallHierarchy", client_.at(kNet, excerpt));
    for (const char* direction : {"incoming", "outgoing"}) {
      text += "# " + std::string(excerpt) + " " + direction + "\n" +
              answer("callHierarchy/" + std::string(direction) + "Calls",
                     json::Object{{"item", items.getAsArray()->front()}});
    }
  }
  expect("calls", text);
  text.clear();
  const json::Value lenses = client_.request("textDocument/codeLens", client_.file(kNet));
  for (const json::Value& lens : *lenses.getAsArray()) {
    if (lens.getAsObject()->get("command") == nullptr)
      text += answer("codeLens/resolve", json::Object(*lens.getAsObject()));
  }
  expect("lenses", text);
  text.clear();
  for (const char* excerpt : {"let la^st", "mid^dle)", "param wid^th", "cursor ^a"}) {
    json::Object params = client_.at(kNet, excerpt);
    params["newName"] = "other_name";
    text += "# " + std::string(excerpt) + "\n" + answer("textDocument/rename", std::move(params));
  }
  expect("rename", text);
}

/// Diagnostics with their places, related places and fixes, and the actions that the fixes become.
TEST_F(Answers, AboutMistakes) {
  const std::tuple<const char*, const char*, const char*> mistakes[] = {
      {"let last = p - 1", "let last = q - 1", "unknown name"},
      {"repeat min(last", "repeat mim(last", "misspelt"},
      {"adamw(lr: 0.1)", "adamw(lr = 0.1)", "named with ="},
      {"    for s in 0..p", "    let unused = 3; for s in 0..p", "unused"},
      {"let middle = scale", "let middle = skale", "misspelt model"},
      {"use std.schedules.gpipe\n", "", "without its use"},
      {"x: tensor[batch, dim: 4]", "x: tensor[batch, dim]", "no size"},
      {"F a; B a", "B a; F a", "an order that hangs"},
  };
  std::string text;
  const std::string program = client_.text(kNet);
  for (const auto& [from, to, title] : mistakes) {
    std::string changed = program;
    changed.replace(changed.find(from), std::string_view(from).size(), to);
    client_.replace(kNet, changed);
    const json::Array found = client_.raw_diagnostics(kNet);
    text += "# " + std::string(title) + "\n" +
            lines(short_form(json::Array(found), cache_.path().string()));
    json::Object params = whole(kNet);
    params["context"] = json::Object{{"diagnostics", json::Array(found)}};
    text += answer("textDocument/codeAction", std::move(params));
  }
  expect("mistakes", text);
}

}  // namespace
}  // namespace piper::test
