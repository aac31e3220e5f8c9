// Every request about files, on one program.

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "frontend/parse/lexemes.h"
#include "ir/directive/directive_rows.h"
#include "tests/lsp/client.h"
#include "tests/lsp/slow_disk.h"
#include "tests/support/temporary_folder.h"

namespace piper::test {
namespace {

const std::string kPath = "/net.pipe";
const std::string kNet =
    "use std.models.mlp\n"
    "use std.schedules.gpipe\n"
    "\n"
    "/// How wide the middle is.\n"
    "param width = 6\n"
    "mesh pair(pp: 2, dp: 2)\n"
    "\n"
    "/// One after the other.\n"
    "schedule plain(p: axis, m: int) {\n"
    "    let last = p - 1\n"
    "    partition model into stage: p\n"
    "    split batch into mb: m\n"
    "    for s in 0..p { place stage[s] on p[s] }\n"
    "    order {\n"
    "        rank r in p {\n"
    "            cursor a = stage[r] mb[0..m]\n"
    "            repeat min(last - r, m) { F a }\n"
    "            repeat left(F a) { F a; B a }\n"
    "            repeat left(B a) { B a }\n"
    "        }\n"
    "    }\n"
    "}\n"
    "\n"
    "model scale(x: tensor[batch, dim]) -> tensor[batch, dim] {\n"
    "    weight gain[dim] = ones\n"
    "    let y = rms_norm(x)\n"
    "    return y * gain\n"
    "}\n"
    "\n"
    "train net = mlp(layers: 2, features: 4, hidden: width, classes: 3) on pair {\n"
    "    data:  synthetic(batch: 8, classes: 3)\n"
    "    optim: sgd(lr: 0.1)\n"
    "    steps: 3\n"
    "    plain(pp, 4)\n"
    "    replicate model over dp\n"
    "}\n";

struct Row {
  const char* method;
  const char* place;  // with `^`
  const char* holds;  // in the answer
  json::Object more = {};
};

TEST(Requests, EachAnswersWithWhatIsThere) {
  const TemporaryFolder cache;
  const source::MemoryFileSystem disk;
  Client client(disk, {}, true, cache.path().string());
  client.open(kPath, kNet);
  EXPECT_EQ(client.diagnostics(kPath), "");
  const Row rows[] = {
      {"hover", "param wid^th", "param width = 6"},
      {"hover", "hidden: wid^th", "How wide the middle is."},
      {"hover", "hidden: wid^th", "value: `6`"},
      {"hover", "let la^st", "let last: int"},
      {"hover", "let la^st", "value: `1`"},
      {"hover", "rank ^r in", "0, 1"},
      {"hover", "pl^ain(pp", "One after the other."},
      {"hover", "me^sh pair", "devices as a grid"},
      {"hover", "^pair(pp", "4 devices"},
      {"hover", "over d^p", "axis of pair"},
      {"hover", "rms_^norm", "rms_norm(x: tensor"},
      {"hover", "let ^y =", "let y: tensor"},
      {"hover", "opt^im:", "the optimizer"},
      {"hover", "F^ a }\n            repeat left(F", "the forward of a chunk"},
      {"hover", "= ml^p(", "model mlp("},
      {"hover", "last ^- r", "value: `1, 0`"},
      {"hover", "schedule pl^ain", "bubble 27.3%"},
      {"hover", "schedule pl^ain", "rank 0  F0 F1"},
      {"hover", "train ne^t", "bubble 19.2%"},
      {"hover", "= ml^p(", "parameters"},
      {"hover", "replicate mod^el over", "flop in a forward of the batch"},
      {"hover", "place st^age[s]", "region stage"},
      {"definition", "plain(p^p, 4)", R"("line":5)"},
      {"definition", "hidden: wid^th", R"("line":4)"},
      {"definition", "pl^ain(pp", R"("line":8)"},
      {"definition", "F ^a; B a", R"("line":15)"},
      {"definition", "= ml^p(", "std/models/mlp.pipe"},
      {"definition", "std.models.m^lp", "std/models/mlp.pipe"},
      {"definition", "over d^p", R"("line":5)"},
      {"references", "let la^st", R"("line":16)"},
      {"references", "cursor ^a", R"("line":18)"},
      {"documentHighlight", "repeat left(^F a) { F a; B", R"("line":17)"},
      {"documentHighlight", "let la^st", R"("kind":3)"},
      {"prepareRename", "let la^st", R"("placeholder":"last")"},
      {"prepareRename", "= ml^p(", "the standard library declares this name"},
      {"prepareRename", "gain[d^im]", "dimensions are known by their names"},
      {"prepareRename", "mod^el into", "no name that can be changed"},
      {"rename", "let la^st", R"("newText":"deepest")", json::Object{{"newName", "deepest"}}},
      {"rename", "let la^st", "`m` is declared already, at /net.pipe:10",
       json::Object{{"newName", "m"}}},
      {"rename", "let la^st", "is no name", json::Object{{"newName", "rank"}}},
      {"rename", "let la^st", "is no name", json::Object{{"newName", "a b"}}},
      {"rename", "schedule pl^ain", R"("line":33)", json::Object{{"newName", "simple"}}},
      {"signatureHelp", "plain(pp, ^4)", R"("activeParameter":1)"},
      {"signatureHelp", "sgd(lr: ^0.1)", "momentum: float = 0"},
      {"signatureHelp", "hidden: ^width", R"("activeParameter":2)"},
      {"foldingRange", "^", R"("startLine":13)"},
      {"foldingRange", "^", R"("kind":"imports")"},
      {"documentSymbol", "^", R"("name":"plain")"},
      {"codeLens", "^", "show grid"},
      {"codeLens", "^", "piper.open"},
      {"codeLens", "^", "piper.check"},
      {"codeLens", "^", "piper.train"},
      {"semanticTokens/full", "^", R"("data":[0,0,3,0,0,0,4,3,5,0)"},
      // `layers` behind `mlp(`: a parameter, of another file too.
      {"semanticTokens/full", "^", "0,4,6,11,0"},
      {"selectionRange", "^", R"("parent")",
       json::Object{{"positions", json::Array{json::Object{{"line", 16}, {"character", 24}}}}}},
      {"inlayHint", "^", R"("label":" = 1")",
       json::Object{
           {"range", json::Object{{"start", json::Object{{"line", 0}, {"character", 0}}},
                                  {"end", json::Object{{"line", 99}, {"character", 0}}}}}}},
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

TEST(Requests, LensesTellBubbleAndPeakAndShowTheGrid) {
  const TemporaryFolder cache;
  const source::MemoryFileSystem disk;
  Client client(disk, {}, true, cache.path().string());
  client.open(kPath, kNet);
  const json::Object subject{{"uri", "file:///net.pipe"}, {"name", "net"}};
  const std::string lens =
      line(client.request("codeLens/resolve", json::Object{{"data", json::Object(subject)}}));
  EXPECT_NE(lens.find("bubble 19.2%, peak "), std::string::npos) << lens;
  const std::string alone = line(client.request(
      "codeLens/resolve",
      json::Object{{"data", json::Object{{"uri", "file:///net.pipe"}, {"name", "plain"}}}}));
  EXPECT_NE(alone.find("p=4 m=8: bubble 27.3%"), std::string::npos) << alone;
  json::Array arguments;
  arguments.push_back(json::Object(subject));
  const std::string grid = line(
      client.request("workspace/executeCommand",
                     json::Object{{"command", "piper.grid"}, {"arguments", std::move(arguments)}}));
  EXPECT_NE(grid.find("rank 0  F0 F1"), std::string::npos) << grid;
  client.replace(kPath, "train");
  EXPECT_NE(line(client.request("codeLens/resolve", json::Object{{"data", json::Object(subject)}}))
                .find("no plan"),
            std::string::npos);
}

json::Value execute(Client& client, const char* command, const std::string& path,
                    const char* name) {
  json::Array arguments;
  arguments.push_back(json::Object{{"uri", lsp::uri_of(path)}, {"name", name}});
  return client.request("workspace/executeCommand",
                        json::Object{{"command", command}, {"arguments", std::move(arguments)}});
}

TEST(Requests, CommandsCheckAndShowPages) {
  const TemporaryFolder cache;
  const source::MemoryFileSystem disk;
  json::Object capabilities{
      {"window", json::Object{{"showDocument", json::Object{{"support", true}}}}}};
  Client client(disk, json::Object{{"capabilities", std::move(capabilities)}}, true,
                cache.path().string());
  client.open(kPath, kNet);
  const std::string opened = line(execute(client, "piper.open", kPath, "net"));
  EXPECT_NE(opened.find("net.html"), std::string::npos) << opened;
  const std::string asked = line(client.next());
  EXPECT_NE(asked.find("window/showDocument"), std::string::npos) << asked;
  EXPECT_NE(line(execute(client, "piper.check", kPath, "net")).find("\"errors\":0"),
            std::string::npos);
  EXPECT_NE(line(client.next()).find("no mistake in `net.pipe`"), std::string::npos);
  client.edit(kPath, "hidden: width", "hidden: widt");
  EXPECT_NE(line(execute(client, "piper.check", kPath, "net")).find("P2010"), std::string::npos);
  EXPECT_NE(line(execute(client, "piper.train", kPath, "net")).find("save the file first"),
            std::string::npos);
  EXPECT_NE(line(execute(client, "piper.train", kPath, "plain")).find("no train named"),
            std::string::npos);
  EXPECT_NE(line(execute(client, "piper.stop", kPath, "net")).find("false"), std::string::npos);
  EXPECT_NE(line(execute(client, "piper.dance", kPath, "net")).find("no command"),
            std::string::npos);
}

TEST(Requests, TrainsRunAsChildren) {
  const TemporaryFolder folder;
  const std::string script = folder.write(
      "trainer", "#!/bin/sh\necho \"runs $1 $3\"\n[ \"$3\" = net ] && exit 3\nsleep 100\n");
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  const std::string path =
      folder.write("net.pipe", kNet + kNet.substr(kNet.find("train net")).replace(6, 3, "two"));
  const source::RealFileSystem disk;
  Client client(disk, {}, true, folder.path().string(), script);
  client.open(path, *disk.read(path, 1 << 20).text);
  const auto until = [&](const std::string& words) {
    for (std::string seen; seen.find(words) == std::string::npos;) seen = line(client.next());
  };
  EXPECT_NE(line(execute(client, "piper.train", path, "net")).find("true"), std::string::npos);
  until("net: runs train net");
  until("ended with exit code 3");
  EXPECT_NE(line(execute(client, "piper.train", path, "two")).find("true"), std::string::npos);
  until("two: runs train two");
  EXPECT_NE(line(execute(client, "piper.train", path, "two")).find("is being trained"),
            std::string::npos);
  EXPECT_NE(line(execute(client, "piper.stop", path, "two")).find("true"), std::string::npos);
  until("ended with exit code");
  // One that runs when the client leaves ends with the server.
  EXPECT_NE(line(execute(client, "piper.train", path, "two")).find("true"), std::string::npos);
}

TEST(Requests, StoppingATrainWaitsForNoCheck) {
  SlowDisk disk("param a = 1\n");
  Client client(disk, {}, true, {}, "/bin/false");
  client.open("/main.pipe", "use slow\n");
  disk.wait_for(1);  // by the thread that checks, which would run the train too
  client.open(kPath, kNet);
  json::Array arguments;
  arguments.push_back(json::Object{{"uri", lsp::uri_of(kPath)}, {"name", "net"}});
  const std::int64_t train =
      client.ask("workspace/executeCommand",
                 json::Object{{"command", "piper.train"}, {"arguments", std::move(arguments)}});
  EXPECT_NE(line(execute(client, "piper.stop", kPath, "other")).find("false"), std::string::npos);
  EXPECT_NE(line(execute(client, "piper.stop", kPath, "net")).find("true"), std::string::npos);
  EXPECT_NE(
      line(client.request("workspace/executeCommand", json::Object{{"command", "piper.stop"}}))
          .find("names no file"),
      std::string::npos);
  disk.open();
  EXPECT_NE(line(client.answer(train)).find("was cancelled"), std::string::npos);
}

TEST(Requests, HintsTellWhatLoopsLeaveToCursors) {
  const source::MemoryFileSystem disk;
  Client client(disk);
  client.open(kPath, kNet);
  const json::Object all{{"start", json::Object{{"line", 0}, {"character", 0}}},
                         {"end", json::Object{{"line", 99}, {"character", 0}}}};
  const auto hints = [&](const std::string& text) {
    client.replace(kPath, text);
    json::Object params = client.file(kPath);
    params["range"] = json::Object(all);
    std::string found;
    const json::Value answer = client.request("textDocument/inlayHint", std::move(params));
    for (const json::Value& hint : *answer.getAsArray()) {
      const std::string label = hint.getAsObject()->getString("label")->str();
      if (label.find("left(") != std::string::npos)
        found +=
            std::to_string(*hint.getAsObject()->getObject("position")->getInteger("line") + 1) +
            label + "\n";
    }
    return found;
  };
  EXPECT_EQ(hints(kNet),
            "17 left(F a) = 3, 4\n18 left(F a) = 0; left(B a) = 1, 0\n19 left(B a) = 0\n");
  // Outer loops stand for the inner ones; cursors that a function takes are those of its caller;
  // halves of backwards wait for `BW`.
  const std::string nested =
      "def warm(a: cursor, n: int) -> steps { repeat n { F a } }\n"
      "schedule s(p: axis, m: int) {\n"
      "    partition model into stage: p\n"
      "    split batch into mb: m\n"
      "    for s in 0..p { place stage[s] on p[s] }\n"
      "    order {\n"
      "        rank r in p {\n"
      "            cursor a = stage[r] mb[0..m]\n"
      "            warm(a, m)\n"
      "            for i in 0..2 { repeat m / 2 { BI a } }\n"
      "            repeat left(BW) { BW }\n"
      "        }\n"
      "    }\n"
      "}\n";
  EXPECT_EQ(hints(nested), "1 left(F a) = 0\n10 left(B a) = 0\n");
  // Entries with the same numbers are listed together.
  std::string halves = kNet;
  halves.replace(halves.find("repeat left(B a) { B a }"), 24, "repeat left(B a) { BI a; BW a }");
  EXPECT_EQ(hints(halves),
            "17 left(F a) = 3, 4\n18 left(F a) = 0; left(B a) = 1, 0\n19 left(B a, BW a) = 0\n");
  // If the order is wrong, the findings before the fault are reported.
  std::string wrong = kNet;
  wrong.replace(wrong.find("repeat left(F a)"), 16, "repeat left(B a)");
  EXPECT_EQ(hints(wrong).substr(0, 20), "17 left(F a) = 3, 4\n");
}

TEST(Requests, FixesOfOrdersAreTried) {
  const source::MemoryFileSystem disk;
  struct OrderRow {
    const char *right, *wrong, *code, *edit;
  };
  for (const OrderRow& row :
       {OrderRow{"{ F a; B a }", "{ B a; F a }", "P3108", R"("newText":"F a; B a")"},
        OrderRow{"repeat left(B a) { B a }", "repeat left(B a) { BI a }", "P3210",
                 "repeat left(BW) { BW }"}}) {
    Client client(disk);
    client.open(kPath, kNet);
    client.edit(kPath, row.right, row.wrong);
    std::string offered;
    for (const json::Value& diagnostic : client.raw_diagnostics(kPath)) {
      if (diagnostic.getAsObject()->getString("code") != llvm::StringRef(row.code)) continue;
      json::Object params = client.file(kPath);
      params["range"] = *diagnostic.getAsObject()->get("range");
      params["context"] = json::Object{{"diagnostics", json::Array{diagnostic}}};
      offered += line(client.request("textDocument/codeAction", std::move(params)));
    }
    EXPECT_NE(offered.find(row.edit), std::string::npos) << row.code << "\n"
                                                         << offered << client.diagnostics(kPath);
  }
}

TEST(Requests, ValuesAreThoseOfTheChosenTrain) {
  const source::MemoryFileSystem disk;
  const std::string text =
      kNet +
      "train wide = mlp(layers: 2, features: 4, hidden: width, classes: 3) on pair {\n    data:  synthetic(batch: 8, classes: 3)\n"
      "    optim: sgd(lr: 0.1)\n    steps: 3\n    plain(dp, 8)\n    place model on pp[0]\n}\n";
  for (const auto& [train, value] : {std::pair{"", "value: `4, 8`"},
                                     {"net", "value: `4`"},
                                     {"wide", "value: `8`"},
                                     {"none", "value: `4, 8`"}}) {
    Client client(disk, json::Object{{"initializationOptions", json::Object{{"train", train}}}});
    client.open(kPath, text);
    const std::string answer =
        line(client.request("textDocument/hover", client.at(kPath, "into mb: ^m")));
    EXPECT_NE(answer.find(value), std::string::npos) << train << "\n" << answer;
  }
}

TEST(Requests, ThePageIsOfWhatTheCursorIsIn) {
  const source::MemoryFileSystem disk;
  Client client(disk);
  client.open(kPath, kNet);
  const auto page = [&](const std::string& place, const std::string& name) {
    json::Object argument = client.at(kPath, place);
    argument["uri"] = "file:///net.pipe";
    argument["name"] = name;
    return client.request(
        "workspace/executeCommand",
        json::Object{{"command", "piper.page"}, {"arguments", json::Array{std::move(argument)}}});
  };
  struct Expected {
    const char *place, *before, *title;
  };
  for (const Expected& each : {Expected{"let la^st", "", "plain at p=4 m=8"},
                               {"plain(p^p", "plain", "net"},
                               {"wid^th = 6", "", "plain at p=4 m=8"},
                               {"wid^th = 6", "net", "net"}}) {
    const json::Value answer = page(each.place, each.before);
    const json::Object* found = answer.getAsObject();
    ASSERT_NE(found, nullptr);
    EXPECT_EQ(found->getString("title"), llvm::StringRef(each.title)) << each.place;
    EXPECT_NE(found->getString("grid").value_or("").find("rank 0  F0 F1"), llvm::StringRef::npos)
        << each.place;
    EXPECT_NE(found->getString("page").value_or("").find("<title>" + std::string(each.title) +
                                                         "</title>"),
              llvm::StringRef::npos)
        << each.place;
    EXPECT_NE(found->getString("memory").value_or("").find("<svg"), llvm::StringRef::npos)
        << each.place;
  }
  client.replace(kPath, "param a = 1\n");
  EXPECT_NE(line(page("par^am", "")).find("no train and no schedule"), std::string::npos);
}

TEST(Requests, CallsAreFollowedBothWays) {
  const TemporaryFolder cache;
  const source::RealFileSystem disk;  // the library is opened from the cache
  Client client(disk, {}, true, cache.path().string());
  client.open(kPath, kNet);
  const auto item = [&](const std::string& place) {
    const json::Value prepared =
        client.request("textDocument/prepareCallHierarchy", client.at(kPath, place));
    const json::Array* list = prepared.getAsArray();
    return list != nullptr && !list->empty() ? json::Value((*list)[0]) : json::Value(nullptr);
  };
  const auto calls = [&](const char* way, json::Value of) {
    return line(client.request(way, json::Object{{"item", std::move(of)}}));
  };
  const json::Value plain = item("pl^ain(pp");
  EXPECT_NE(line(plain).find("\"name\":\"plain\""), std::string::npos) << line(plain);
  const std::string incoming = calls("callHierarchy/incomingCalls", plain);
  EXPECT_NE(incoming.find("\"name\":\"net\""), std::string::npos) << incoming;
  const std::string outgoing = calls("callHierarchy/outgoingCalls", item("train ne^t"));
  EXPECT_NE(outgoing.find("\"name\":\"plain\""), std::string::npos) << outgoing;
  EXPECT_NE(outgoing.find("\"name\":\"mlp\""), std::string::npos) << outgoing;
  EXPECT_EQ(outgoing.find("\"name\":\"width\""), std::string::npos) << outgoing;
  // Into the library: the functions that its `mlp` calls.
  const json::Value mlp = item("= ml^p(");
  EXPECT_NE(line(mlp).find("models/mlp.pipe"), std::string::npos) << line(mlp);
  EXPECT_NE(calls("callHierarchy/outgoingCalls", mlp).find("fromRanges"), std::string::npos);
  EXPECT_EQ(line(item("par^am width")), "null");
  EXPECT_NE(line(client.request("callHierarchy/incomingCalls",
                                json::Object{{"item", json::Object{{"uri", "file:///net.pipe"}}}}))
                .find("selectionRange"),
            std::string::npos);
}

TEST(Requests, FixesOfDiagnosticsApply) {
  const source::MemoryFileSystem disk;
  Client client(disk);
  client.open(kPath, kNet);
  client.edit(kPath, "{ F a; B a }", "{ B a; F a }");
  client.edit(kPath, "hidden: width", "hidden: widt");
  const std::string found = client.diagnostics(kPath);
  EXPECT_NE(found.find("P2010"), std::string::npos) << found;
  std::string titles;
  for (const json::Value& diagnostic : client.raw_diagnostics(kPath)) {
    json::Object params = client.file(kPath);
    params["range"] = *diagnostic.getAsObject()->get("range");
    params["context"] = json::Object{{"diagnostics", json::Array{diagnostic}}};
    titles += line(client.request("textDocument/codeAction", std::move(params)));
  }
  EXPECT_NE(titles.find("\"newText\":\"width\""), std::string::npos) << titles;
  client.edit(kPath, "hidden: widt", "hidden: width");
  EXPECT_NE(client.diagnostics(kPath).find("18:32 P3108"), std::string::npos)
      << client.diagnostics(kPath);
  const std::string hover =
      line(client.request("textDocument/hover", client.at(kPath, "{ ^B a; F a }")));
  EXPECT_NE(hover.find("# P3108"), std::string::npos) << hover;
}

TEST(Requests, OtherFilesOfTheProjectAreLookedAt) {
  const TemporaryFolder folder;
  const std::string library = folder.write("lib.pipe", "def width() -> int { return 6 }\n");
  const std::string main = folder.write("main.pipe", "use lib\nparam w = width()\n");
  const source::RealFileSystem disk;
  Client client(disk, json::Object{{"rootUri", lsp::uri_of(folder.path().string())}});
  client.open(library, "def width() -> int { return 6 }\n");
  EXPECT_NE(line(client.request("workspace/symbol", json::Object{{"query", "wd"}}))
                .find("\"name\":\"width\""),
            std::string::npos);
  const std::string places =
      line(client.request("textDocument/references", client.at(library, "def wi^dth")));
  EXPECT_NE(places.find("main.pipe"), std::string::npos) << places;
  json::Object params = client.at(library, "def wi^dth");
  params["newName"] = "breadth";
  const std::string edits = line(client.request("textDocument/rename", std::move(params)));
  EXPECT_NE(edits.find("main.pipe"), std::string::npos) << edits;
  EXPECT_NE(edits.find("lib.pipe"), std::string::npos) << edits;
}

TEST(Requests, HalfTypedTextKeepsTheRestWorking) {
  const source::MemoryFileSystem disk;
  Client client(disk);
  client.open(kPath, kNet);
  client.edit(kPath, "    partition model into stage: p\n", "    partition model into\n");
  for (const auto& [method, place, holds] : {std::tuple{"hover", "hidden: wid^th", "param width"},
                                             {"definition", "pl^ain(pp", "\"line\":8"},
                                             {"hover", "let la^st", "let last"}}) {
    const std::string answer =
        line(client.request(std::string("textDocument/") + method, client.at(kPath, place)));
    EXPECT_NE(answer.find(holds), std::string::npos) << place << "\n" << answer;
  }
  EXPECT_EQ(client.diagnostics(kPath).substr(0, 3), "11:");
}

/// The grammar of an editor without comments, which are in English.
std::string grammar_text(const std::string& path) {
  std::ifstream stream(path);
  std::stringstream content;
  content << stream.rdbuf();
  const char* const comment = path.ends_with(".js")     ? "//[^\n]*"
                              : path.ends_with(".json") ? "$^"
                                                        : ";[^\n]*";
  return std::regex_replace(content.str(), std::regex(comment), "");
}

void expect_word(const std::string& path, const std::string& text, std::string_view word) {
  const std::regex whole("[^a-z]" + std::string(word) + "[^a-z]");
  EXPECT_TRUE(std::regex_search(text, whole)) << path << " lacks `" << word << "`";
}

// The grammars of editors know the words of the language; the queries know the directives.
TEST(Editors, GrammarsNameEveryKeyword) {
  for (const char* path : {"editors/vscode/syntaxes/pipe.tmLanguage.json",
                           "editors/emacs/piper-mode.el", "editors/tree-sitter-piper/grammar.js"}) {
    const std::string text = grammar_text(path);
    for (const std::string& keyword : parse::keywords()) expect_word(path, text, keyword);
  }
  const char* const queries = "editors/tree-sitter-piper/queries/highlights.scm";
  const std::string text = grammar_text(queries);
  for (const directive::DirectiveRow& row : directive::directive_rows())
    expect_word(queries, text, row.keyword);
}

}  // namespace
}  // namespace piper::test
