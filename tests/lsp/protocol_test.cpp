// The protocol itself: its order, bad input, cancelling, edits, the end.

#include <gtest/gtest.h>

#include "tests/lsp/client.h"
#include "tests/support/process.h"
#include "tests/support/temporary_folder.h"

namespace piper::test {
namespace {

const source::MemoryFileSystem kDisk;

std::int64_t code_of(const json::Value& answer) {
  const json::Object* error = answer.getAsObject();
  return error != nullptr ? error->getInteger("code").value_or(0) : 0;
}

TEST(Protocol, ExitCodesAreThoseOfTheSpecification) {
  Client orderly(kDisk);
  EXPECT_EQ(orderly.request("shutdown", {}), json::Value(nullptr));
  EXPECT_EQ(code_of(orderly.request("textDocument/hover", orderly.file("/a.pipe"))), -32600);
  orderly.notify("exit", {});
  EXPECT_EQ(orderly.leave(), 0);
  Client died(kDisk);
  EXPECT_EQ(died.leave(), 1);
  Client in_a_hurry(kDisk);
  in_a_hurry.notify("exit", {});
  EXPECT_EQ(in_a_hurry.leave(), 1);
}

TEST(Protocol, BadRequestsAreRefusedAndTheServerGoesOn) {
  Client client(kDisk, {}, false);
  EXPECT_EQ(code_of(client.request("textDocument/hover", client.file("/a.pipe"))), -32002);
  client.open("/early.pipe", "mesh m(p: 2)\n");  // before `initialize`: dropped
  client.request("initialize", json::Object{{"capabilities", json::Object()}});
  EXPECT_EQ(code_of(client.request("initialize", {})), -32600);
  EXPECT_EQ(code_of(client.request("textDocument/dance", {})), -32601);
  EXPECT_EQ(code_of(client.request("textDocument/hover", {})), -32602);
  client.open("/a.pipe", "mesh m(p: 2)\n");
  EXPECT_EQ(code_of(client.request("textDocument/hover", client.file("/a.pipe"))), -32602);
  json::Object far = client.file("/a.pipe");
  far["position"] = json::Object{{"line", 4000000}, {"character", 4000000}};
  EXPECT_EQ(client.request("textDocument/hover", std::move(far)), json::Value(nullptr));
  json::Object negative = client.file("/a.pipe");
  negative["position"] = json::Object{{"line", -1}, {"character", 0}};
  EXPECT_EQ(code_of(client.request("textDocument/hover", std::move(negative))), -32602);
  client.notify("$/unknown", {});
  client.notify("workspace/unknown", {});
  for (const char* bytes : {"Content-Length: 5\r\n\r\n{\"a\":", "Content-Length: many\r\n\r\n",
                            "Content-Type: x\r\n\r\n", "Content-Length: 2\r\n\r\n[]"}) {
    client.send(bytes);
    EXPECT_NE(code_of(*client.next().getAsObject()->get("error")), 0) << bytes;
  }
  const std::string deep = std::string(100000, '[');
  client.send("Content-Length: " + std::to_string(deep.size()) + "\r\n\r\n" + deep);
  EXPECT_EQ(code_of(*client.next().getAsObject()->get("error")), -32700);
  EXPECT_NE(client.request("textDocument/hover", client.at("/a.pipe", "mesh ^m")),
            json::Value(nullptr));
}

TEST(Protocol, EditsApplyOneAfterTheOtherInUtf16) {
  Client client(kDisk);
  client.open("/a.pipe", "// \xF0\x9F\x98\x80 one\r\nmesh m(p: 2)\r\n");
  client.edit("/a.pipe", "one", "two");
  client.edit("/a.pipe", "p: 2", "p: q");
  EXPECT_EQ(client.diagnostics("/a.pipe"), "2:11 P2010 there is no `q` here\n");
  client.edit("/a.pipe", "q", "4");
  EXPECT_EQ(client.diagnostics("/a.pipe").substr(0, 9), "1:1 P6110");
}

TEST(Protocol, MessagesOutOfOrderChangeNothing) {
  Client client(kDisk);
  const std::string path = "/a.pipe", text = "mesh m(p: 2)\r\nparam x = y\r\n";
  const auto change = [&](const std::string& of, json::Array changes) {
    json::Object params = client.file(of);
    (*params.getObject("textDocument"))["version"] = 1;
    params["contentChanges"] = std::move(changes);
    client.notify("textDocument/didChange", std::move(params));
  };
  const auto place = [](std::int64_t row, std::int64_t character) {
    return json::Object{{"line", row}, {"character", character}};
  };
  const auto edit = [&](json::Object start, json::Object end, const char* with) {
    return json::Object{
        {"range", json::Object{{"start", std::move(start)}, {"end", std::move(end)}}},
        {"text", with}};
  };
  // Never opened, closed twice, saved before: no text is open.
  change("/none.pipe", json::Array{json::Object{{"text", "mesh"}}});
  client.notify("textDocument/didClose", client.file("/none.pipe"));
  client.notify("textDocument/didSave", client.file("/none.pipe"));
  client.open(path, "mesh old(p: 2)\n");
  client.open(path, text);  // opened twice: the second text counts
  // An end before the start, a position after the text, no text, no list: the edit does as much as
  // it can, or nothing.
  change(path, json::Array{edit(place(0, 8), place(0, 2), ""),
                           edit(place(900, 0), place(901, 5), "// end\r\n"),
                           json::Object{{"range", 1}}, json::Value(nullptr), json::Value(7)});
  client.notify("textDocument/didChange", client.file(path));
  client.notify("$/cancelRequest", json::Object{{"id", 12345}});
  client.notify("$/cancelRequest", {});
  client.notify(
      "workspace/didChangeWatchedFiles",
      json::Object{{"changes", json::Array{json::Value(nullptr), json::Object{{"uri", 3}}}}});
  // Answers without a request.
  client.send(json::Object{{"id", 99}, {"result", json::Array{json::Value(nullptr)}}});
  client.send(json::Object{{"id", "none"}, {"error", json::Object{{"code", 1}, {"message", ""}}}});
  client.send(json::Object{{"id", nullptr}, {"method", "textDocument/hover"}});
  EXPECT_EQ(code_of(*client.next().getAsObject()->get("error")), -32600);
  client.send(
      json::Object{{"id", 1000}, {"method", "textDocument/hover"}, {"params", json::Array{1, 2}}});
  EXPECT_EQ(code_of(client.answer(1000)), -32602);
  client.edit(path, "y", "q");
  EXPECT_EQ(client.diagnostics(path), "2:11 P2010 there is no `q` here\n");
  // A document of Windows stays one.
  client.edit(path, "param x = q", "param  x=1");
  const std::string formatted = line(client.request("textDocument/formatting", client.file(path)));
  EXPECT_NE(formatted.find("param x = 1"), std::string::npos) << formatted;
  EXPECT_EQ(
      line(client.request("textDocument/hover", client.at("/a.pipe", "mesh ^m"))).find("null"),
      std::string::npos);
}

TEST(Protocol, AClientThatDiesInAMessageEndsTheServer) {
  for (const char* bytes :
       {"Content-Length: 100\r\n\r\n{\"jsonrpc\":", "Content-Len", "Content-Length: 5\r\n", ""}) {
    Client client(kDisk);
    client.open("/a.pipe", "mesh m(p: 2)\n");
    client.send(bytes);
    EXPECT_EQ(client.leave(), 1) << bytes;
  }
}

TEST(Protocol, EncodingsAreNegotiated) {
  for (const auto& [name, character] : {std::pair{"utf-8", 19}, {"utf-16", 17}, {"utf-32", 16}}) {
    json::Object options{
        {"capabilities",
         json::Object{{"general", json::Object{{"positionEncodings", json::Array{name}}}}}}};
    Client client(kDisk, std::move(options));
    client.open("/a.pipe", "param x = \"\xF0\x9F\x98\x80\" + y\n");
    const json::Array found = client.raw_diagnostics("/a.pipe");
    ASSERT_FALSE(found.empty()) << name;
    EXPECT_EQ(
        found.back().getAsObject()->getObject("range")->getObject("start")->getInteger("character"),
        character)
        << name;
  }
}

TEST(Protocol, ObsoleteRequestsAreNotAnswered) {
  Client client(kDisk);
  client.open("/a.pipe", "mesh m(p: 2)\n");
  // In one message each: the server reads the edit and the cancellation before or while it answers;
  // whichever, it answers once.
  std::vector<std::int64_t> ids;
  for (int i = 0; i < 20; ++i)
    ids.push_back(client.ask("textDocument/semanticTokens/full", client.file("/a.pipe")));
  client.edit("/a.pipe", "p: 2", "p: 3");
  for (int i = 0; i < 20; ++i)
    ids.push_back(client.ask("textDocument/semanticTokens/full", client.file("/a.pipe")));
  client.notify("$/cancelRequest", json::Object{{"id", ids.back()}});
  for (const std::int64_t id : ids) {
    const std::int64_t code = code_of(client.answer(id));
    EXPECT_TRUE(code == 0 || code == -32801 || code == -32800) << code;
  }
}

TEST(Protocol, FilesOfFiveMegabytesDoNotBlock) {
  Client client(kDisk);
  std::string text = "mesh m(p: 2)\n";
  while (text.size() < (5u << 20))
    text +=
        "// a comment that fills the file, line after line, so that there is something to read and nothing to compile\n";
  client.open("/large.pipe", text);
  client.edit("/large.pipe", "p: 2", "p: 3");
  EXPECT_EQ(client.diagnostics("/large.pipe").substr(0, 9), "1:1 P6110");
  EXPECT_NE(client.request("textDocument/hover", client.at("/large.pipe", "mesh ^m")),
            json::Value(nullptr));
}

TEST(Protocol, CyclesClosedAndMissingFilesAreDiagnosticsOrNone) {
  Client client(kDisk);
  client.open("/two.pipe", "use one\n");
  client.open("/one.pipe", "use two\n");
  client.open("/gone.pipe", "use nowhere\nmesh m(p: 2)\n");
  // The `use` that closes the cycle is reported at its own location.
  client.wait_for("/one.pipe", "uses itself");
  client.wait_for("/two.pipe", "uses itself");
  EXPECT_NE(client.diagnostics("/gone.pipe").find("P1001"), std::string::npos);
  client.notify("textDocument/didClose", client.file("/two.pipe"));
  client.edit("/one.pipe", "use two", "mesh m(p: 2)");
  EXPECT_EQ(client.diagnostics("/one.pipe").substr(0, 9), "1:1 P6110");
  // Never opened, and not on the disk.
  json::Object nowhere = client.file("/nowhere.pipe");
  nowhere["position"] = json::Object{{"line", 0}, {"character", 0}};
  EXPECT_EQ(client.request("textDocument/hover", std::move(nowhere)), json::Value(nullptr));
}

TEST(Protocol, UnsavedTextsOfSeveralFilesAreUsedTogether) {
  Client client(kDisk);
  client.open("/lib.pipe", "def width() -> int { return 6 }\n");
  client.open("/main.pipe", "use lib\nparam w = width()\n");
  EXPECT_EQ(client.diagnostics("/main.pipe").substr(0, 9), "1:1 P6110");
  client.edit("/lib.pipe", "width", "breadth");
  client.edit("/main.pipe", "use lib", "use lib\n");
  EXPECT_NE(client.diagnostics("/main.pipe").find("P2"), std::string::npos);
}

TEST(Protocol, SettingsGiveValues) {
  Client client(kDisk, json::Object{{"initializationOptions",
                                     json::Object{{"values", json::Object{{"n", 3}}}}}});
  const std::string text = "param n = 2\nmesh m(p: n)\ndef f() -> int { return n }\n";
  client.open("/a.pipe", text);
  EXPECT_NE(line(client.request("textDocument/hover", client.at("/a.pipe", "param ^n")))
                .find("param n = 2"),
            std::string::npos);
  client.notify(
      "workspace/didChangeConfiguration",
      json::Object{
          {"settings",
           json::Object{{"piper", json::Object{{"values", json::Object{{"n", "many"}}}}}}}});
  client.edit("/a.pipe", "p: n", "p: n ");
  EXPECT_NE(client.diagnostics("/a.pipe").find("P2321"), std::string::npos)
      << client.diagnostics("/a.pipe");
}

TEST(Protocol, TheProgramSpeaksItOnPipes) {
  const TemporaryFolder folder;
  std::string input;
  for (
      const char* body :
      {R"({"jsonrpc":"2.0","id":1,"method":"initialize","params":{"capabilities":{}}})",
       R"({"jsonrpc":"2.0","method":"initialized","params":{}})",
       R"({"jsonrpc":"2.0","method":"textDocument/didOpen","params":{"textDocument":{"uri":"file:///x.pipe","version":1,"text":"mesh m(p: 2)\n"}}})",
       R"({"jsonrpc":"2.0","id":2,"method":"textDocument/documentSymbol","params":{"textDocument":{"uri":"file:///x.pipe"}}})",
       R"({"jsonrpc":"2.0","id":3,"method":"shutdown"})", R"({"jsonrpc":"2.0","method":"exit"})"}) {
    input += "Content-Length: " + std::to_string(std::string_view(body).size()) + "\r\n\r\n" + body;
  }
  const std::string path = folder.write("input", input);
  const ProcessResult result =
      run_process({"/bin/sh", "-c", "exec \"$0\" lsp < \"$1\"", program_path("piper"), path});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.err, "");
  EXPECT_NE(result.out.find("\"positionEncoding\":\"utf-16\""), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("\"name\":\"m\""), std::string::npos) << result.out;
}

}  // namespace
}  // namespace piper::test
