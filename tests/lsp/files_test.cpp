// Changes of files on disk without the server: deleted, renamed, restored, while they are open or
// used.

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/lsp/client.h"
#include "tests/support/temporary_folder.h"

namespace piper::test {
namespace {

namespace fs = std::filesystem;

const std::string kLibrary = "def width() -> int { return 6 }\n";
const std::string kMain = "use lib\nmesh pair(p: 2)\nparam w = width()\n";

class Files : public testing::Test {
 protected:
  // 1: created, 2: written, 3: deleted.
  void told(Client& client, const std::string& path, int kind) {
    client.notify("workspace/didChangeWatchedFiles",
                  json::Object{{"changes", json::Array{json::Object{{"uri", lsp::uri_of(path)},
                                                                    {"type", kind}}}}});
  }
  void close(Client& client, const std::string& path) {
    client.notify("textDocument/didClose", client.file(path));
  }
  std::string hover(Client& client, const std::string& path, const std::string& place) {
    return line(client.request("textDocument/hover", client.at(path, place)));
  }

  const TemporaryFolder folder_;
  const source::RealFileSystem disk_;
  const std::string library_ = folder_.write("lib.pipe", kLibrary);
  const std::string main_ = folder_.write("main.pipe", kMain);
};

// A file of models by itself has no shapes and nothing to compile: it has those of the train of
// another open file, and is compiled there.
TEST_F(Files, ModelsHaveTheShapesOfWhoUsesThem) {
  const std::string models =
      "model layer(x: tensor[batch, dim]) -> tensor[batch, dim] {\n"
      "    weight w[dim, inner: 2 * dim], v[inner, dim] = normal(0.1)\n"
      "    let h = x @ w\n"
      "    return gelu(h) @ v\n"
      "}\n";
  const std::string train =
      "use lib\n"
      "model net() {\n"
      "    input x: tensor[batch, dim: 6]\n"
      "    loss square(layer(x))\n"
      "}\n"
      "mesh one(p: 1)\n"
      "train t = net() on one {\n"
      "    data: synthetic(batch: 4)\n"
      "    optim: sgd(lr: 0.1)\n"
      "    steps: 1\n"
      "}\n";
  Client client(disk_);
  client.open(library_, models);
  client.wait_for(library_, "P6110");
  EXPECT_EQ(hover(client, library_, "let ^h").find("12"), std::string::npos);
  client.open(main_, train);
  client.wait_for(library_, "\"diagnostics\":[]");
  EXPECT_NE(hover(client, library_, "let ^h").find("inner: 12]"), std::string::npos)
      << hover(client, library_, "let ^h");
  json::Object all = client.file(library_);
  all["range"] = json::Object{{"start", json::Object{{"line", 0}, {"character", 0}}},
                              {"end", json::Object{{"line", 5}, {"character", 0}}}};
  EXPECT_NE(line(client.request("textDocument/inlayHint", std::move(all))).find("inner: 12]"),
            std::string::npos);
  client.edit(main_, "dim: 6", "dim: 5");
  EXPECT_NE(hover(client, library_, "let ^h").find("inner: 10]"), std::string::npos);
  close(client, main_);
  client.wait_for(library_, "P6110");
  EXPECT_EQ(hover(client, library_, "let ^h").find("inner: 1"), std::string::npos);
}

// A mistake that is found from two open files, of different versions, is shown once.
TEST_F(Files, AMistakeIsToldOnce) {
  Client client(disk_);
  client.open(library_, kLibrary);
  client.edit(library_, "6 }", "6 })");
  client.edit(library_, "def", " def");
  const std::string alone = client.diagnostics(library_);
  ASSERT_NE(line(json::Value(client.raw_diagnostics(library_))).find("\"fixes\""),
            std::string::npos);
  client.open(main_, kMain);
  client.diagnostics(main_);
  EXPECT_EQ(client.diagnostics(library_), alone);
}

TEST_F(Files, APipeIsNotWaitedFor) {
  fs::remove(library_);
  ASSERT_EQ(mkfifo(library_.c_str(), 0600), 0);
  Client client(disk_);
  client.open(main_, kMain);
  client.wait_for(main_, "not waited for");
}

TEST_F(Files, OneThatIsDeletedWhileOpenIsItsText) {
  Client client(disk_);
  client.open(library_, kLibrary);
  client.open(main_, kMain);
  client.wait_for(main_, "P6110");  // nothing to compile: no mistake
  fs::remove(library_);
  fs::remove(main_);
  told(client, library_, 3);
  told(client, main_, 3);
  EXPECT_NE(hover(client, main_, "= wid^th()").find("def width"), std::string::npos);
  client.edit(library_, "width", "depth");
  client.edit(main_, "width()", "depth() + breadth");
  EXPECT_EQ(client.diagnostics(main_), "3:21 P2010 there is no `breadth` here\n");
  client.edit(main_, " + breadth", "");
  EXPECT_NE(hover(client, main_, "= dep^th()").find("def depth"), std::string::npos);
  // Once closed it is gone: for files that use it, and for itself.
  close(client, library_);
  client.wait_for(main_, "P1001");
  EXPECT_EQ(hover(client, library_, "def de^pth"), "null");
  close(client, main_);
  EXPECT_EQ(hover(client, main_, "par^am w"), "null");
}

TEST_F(Files, OneThatIsUsedVanishesAndComesBack) {
  Client client(disk_);
  client.open(main_, kMain);
  client.wait_for(main_, "P6110");
  fs::remove(library_);
  told(client, library_, 3);
  client.wait_for(main_, "P1001");
  folder_.write("lib.pipe", "def width() -> int { return many }\n");
  told(client, library_, 1);
  // Errors of that file are reported in that file.
  client.wait_for(library_, "there is no `many` here");
  folder_.write("lib.pipe", kLibrary);
  told(client, library_, 2);
  client.wait_for(library_, "\"diagnostics\":[]");
  client.wait_for(main_, "P6110");
}

TEST_F(Files, WithoutNotificationsFilesAreReadAtEachSave) {
  Client client(disk_);
  client.open(main_, kMain);
  client.wait_for(main_, "P6110");
  fs::remove(library_);
  client.notify("textDocument/didSave", client.file(main_));
  client.wait_for(main_, "P1001");
  folder_.write("lib.pipe", kLibrary);
  client.notify("textDocument/didSave", client.file(main_));
  client.wait_for(main_, "P6110");
  client.notify("textDocument/didSave", client.file("/never/opened.pipe"));
  EXPECT_NE(hover(client, main_, "= wid^th()"), "null");
}

TEST_F(Files, OneThatIsRenamedIsAnother) {
  Client client(disk_);
  client.open(library_, "def width() -> int { return many }\n");
  client.open(main_, kMain);
  client.wait_for(library_, "there is no `many` here");
  const std::string renamed = (folder_.path() / "other.pipe").string();
  fs::rename(library_, renamed);
  close(client, library_);
  client.open(renamed, kLibrary);
  told(client, library_, 3);
  told(client, renamed, 1);
  client.wait_for(library_, "\"diagnostics\":[]");
  client.wait_for(main_, "P1001");
  client.edit(main_, "use lib", "use other");
  EXPECT_EQ(client.diagnostics(main_).substr(0, 9), "1:1 P6110") << client.diagnostics(main_);
}

TEST_F(Files, ClientsThatWatchAreAskedTo) {
  const auto asks = [&](bool watches) {
    json::Object watched{{"didChangeWatchedFiles", json::Object{{"dynamicRegistration", watches}}}};
    Client client(disk_,
                  json::Object{{"capabilities", json::Object{{"workspace", std::move(watched)}}}});
    client.open(main_, kMain);
    client.wait_for(main_, "P6110");
    client.notify("exit", {});
    client.leave();
    std::string asked;
    try {
      asked = line(client.next());
    } catch (const std::runtime_error&) {  // it said nothing more
    }
    return asked;
  };
  EXPECT_NE(asks(true).find("client/registerCapability"), std::string::npos);
  EXPECT_EQ(asks(false), "");
}

}  // namespace
}  // namespace piper::test
