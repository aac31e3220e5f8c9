// Random edits and requests: no crash, an answer to each request, and after the last edit the
// answers of a server that knows only the last text. `lsp_test --gtest_filter='Fuzz.*' --cases=400`
// sends 100,000.

#include <gtest/gtest.h>

#include "frontend/lsp/methods.h"
#include "tests/lsp/client.h"
#include "tests/support/random_cases.h"

namespace piper::test {
namespace {

const std::string kPath = "/f.pipe";
const std::string kStart =
    "use std.schedules.gpipe\n"
    "mesh pair(pp: 2)\n"
    "schedule plain(p: axis, m: int) {\n"
    "    partition model into stage: p\n"
    "    split batch into mb: m\n"
    "    for s in 0..p { place stage[s] on p[s] }\n"
    "    order {\n"
    "        rank r in p {\n"
    "            cursor a = stage[r] mb[0..m]\n"
    "            repeat left(F a) { F a }\n"
    "            repeat left(B a) { B a }\n"
    "        }\n"
    "    }\n"
    "}\n"
    "model scale(x: tensor[batch, dim: 4]) {\n"
    "    weight gain[dim] = ones\n"
    "    loss square(x * gain)\n"
    "}\n"
    "train t = scale() on pair {\n"
    "    data:  synthetic(batch: 8)\n"
    "    optim: sgd(lr: 0.1)\n"
    "    steps: 1\n"
    "    place model on pp[0]\n"
    "}\n";

const std::vector<std::string> kPieces = {
    "{",        "}",          "(",          ")",       "[",  "]",      "\n",
    "\r\n",     " ",          ",",          ".",       ":",  "=",      "F a",
    "let x = ", "place ",     "stage[",     "mb[0",    "\"", "// c\n", "\xF0\x9F\x98\x80",
    "use std.", "rank r in ", "train u = ", "on pair", "7",  "1e",     "B",
    "model ",   "order {",    "\t",         "\xC3\xA9"};

json::Object position_of(const std::string& text, std::size_t at) {
  SourceTable table;
  const FileId file = table.add("", text);
  return lsp::to_json(table.line_column(file, static_cast<std::uint32_t>(at), ColumnUnit::utf16));
}

std::size_t character_start(const std::string& text, std::size_t at) {
  while (at > 0 && at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) --at;
  // No position of the protocol lies inside of a line end.
  if (at > 0 && at < text.size() && text[at - 1] == '\r' && text[at] == '\n') --at;
  return at;
}

json::Object params_of(Random& random, Client& client, std::string_view method) {
  const std::string& text = client.text(kPath);
  json::Object params = client.file(kPath);
  const auto place = [&] {
    return position_of(text, character_start(text, random.below(text.size() + 1)));
  };
  params["position"] = place();
  params["range"] = json::Object{{"start", place()}, {"end", place()}};
  params["positions"] = json::Array{place(), place()};
  params["newName"] = random.chance(0.5) ? "renamed" : "p";
  params["context"] = json::Object{{"diagnostics", json::Array()}, {"includeDeclaration", true}};
  params["query"] = "s";
  static const std::vector<std::string> commands = {"piper.check", "piper.grid", "piper.open",
                                                    "piper.page",  "piper.stop", "piper.train",
                                                    "piper.none"};
  params["command"] = random.pick(commands);
  params["item"] = json::Object{{"uri", lsp::uri_of(kPath)},
                                {"selectionRange", json::Object{{"start", place()}}}};
  params["data"] =
      json::Object{{"uri", lsp::uri_of(kPath)}, {"name", random.chance(0.5) ? "plain" : "t"}};
  json::Array arguments;
  arguments.push_back(json::Object(*params.getObject("data")));
  params["arguments"] = std::move(arguments);
  if (method == "workspace/executeCommand" || method == "codeLens/resolve" ||
      method.starts_with("callHierarchy/"))
    params.erase("textDocument");
  return params;
}

/// The diagnostics after the whole check: those of names and types are published earlier. A plan is
/// requested after all checks.
std::string checked(Client& client) {
  json::Object lens = client.file(kPath);
  lens["data"] = json::Object{{"uri", lsp::uri_of(kPath)}, {"name", "none"}};
  lens["range"] = json::Object{{"start", json::Object{{"line", 0}, {"character", 0}}},
                               {"end", json::Object{{"line", 0}, {"character", 0}}}};
  client.request("codeLens/resolve", std::move(lens));
  return client.diagnostics(kPath);
}

TEST(Fuzz, RandomEditsAndRequestsGiveAnswersForTheNewestText) {
  const source::MemoryFileSystem disk;
  for_each_case(12, [&](Random& random) {
    Client client(disk);
    client.open(kPath, kStart);
    std::vector<std::int64_t> asked;
    for (int step = 0; step < 250; ++step) {
      const std::string& text = client.text(kPath);
      if (random.chance(0.35)) {
        // An edit at a place, as an editor sends it.
        const std::size_t begin = character_start(text, random.below(text.size() + 1));
        const std::size_t end = character_start(
            text, std::min(text.size(), begin + random.below(random.chance(0.9) ? 4 : 200)));
        const std::string piece = random.chance(0.7) ? random.pick(kPieces) : "";
        if (random.chance(0.05)) {
          client.replace(kPath, kStart);
        } else {
          client.edit(kPath, begin, std::max(begin, end), piece);
        }
      } else {
        const lsp::Method& method = lsp::methods()[random.below(lsp::methods().size())];
        asked.push_back(client.ask(method.name, params_of(random, client, method.name)));
        if (random.chance(0.1))
          client.notify("$/cancelRequest", json::Object{{"id", asked.back()}});
      }
    }
    for (const std::int64_t id : asked) client.answer(id);
    // Its diagnostics now equal those of a fresh server.
    Client fresh(disk);
    fresh.open(kPath, client.text(kPath));
    for (const char* method : {"documentSymbol", "semanticTokens/full", "foldingRange"}) {
      const std::string name = std::string("textDocument/") + method;
      EXPECT_EQ(line(client.request(name, client.file(kPath))),
                line(fresh.request(name, fresh.file(kPath))))
          << client.text(kPath);
    }
    EXPECT_EQ(checked(client), checked(fresh)) << client.text(kPath);
  });
}

}  // namespace
}  // namespace piper::test
