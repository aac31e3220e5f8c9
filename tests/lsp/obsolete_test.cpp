// Requests about a text that is edited meanwhile, or cancelled: a file that is slow to read blocks
// the threads.

#include <gtest/gtest.h>

#include "tests/lsp/client.h"
#include "tests/lsp/slow_disk.h"

namespace piper::test {
namespace {

const std::string kMain = "/main.pipe", kOther = "/other.pipe";

/// A request that runs and waits for the disk, one that waits behind it, and one of another file
/// behind both.
class Obsolete : public testing::Test {
 protected:
  Obsolete() : client_(disk_) {
    client_.open(kOther, "mesh grid(q: 2)\n");
    EXPECT_NE(hover(kOther, "mesh ^grid"), json::Value(nullptr));
    client_.diagnostics(kOther);
    client_.open(kMain, "use slow\nmesh pair(p: 2)\n");
    running_ = client_.ask("textDocument/hover", client_.at(kMain, "mesh ^pair"));
    disk_.wait_for(2);  // it, and the check of the file
    waiting_ = client_.ask("textDocument/hover", client_.at(kMain, "mesh ^pair"));
    other_ = client_.ask("textDocument/hover", client_.at(kOther, "mesh ^grid"));
  }
  ~Obsolete() override { disk_.open(); }

  json::Value hover(const std::string& path, const std::string& place) {
    return client_.request("textDocument/hover", client_.at(path, place));
  }
  /// The code of an error; 0: an answer.
  std::int64_t code(std::int64_t id) {
    const json::Value answer = client_.answer(id);
    const json::Object* object = answer.getAsObject();
    return object != nullptr ? object->getInteger("code").value_or(0) : 0;
  }
  /// A request that the server handles after all earlier ones.
  void settle() { client_.request("workspace/nothing", {}); }

  SlowDisk disk_{"def depth() -> int { return 4 }\n"};
  Client client_;
  std::int64_t running_ = 0, waiting_ = 0, other_ = 0;
};

TEST_F(Obsolete, AnEditEndsWhatWasAskedOfItsText) {
  client_.edit(kMain, "p: 2", "p: 3");
  settle();
  disk_.open();
  EXPECT_EQ(code(running_), -32801);
  EXPECT_EQ(code(waiting_), -32801);
  EXPECT_EQ(code(other_), 0);
  EXPECT_NE(line(hover(kMain, "mesh ^pair")).find("p: 3"), std::string::npos);
}

TEST_F(Obsolete, SoDoesOneOfAFileThatItUses) {
  client_.open("/slow.pipe", "def depth() -> int { return 5 }\n");
  settle();
  disk_.open();
  EXPECT_EQ(code(running_), -32801);
  EXPECT_EQ(code(waiting_), -32801);
  EXPECT_EQ(code(other_), 0);
}

TEST_F(Obsolete, AnEditOfAnotherFileEndsWhatIsAskedOfThatOne) {
  client_.edit(kOther, "q: 2", "q: 4");
  settle();
  disk_.open();
  EXPECT_EQ(code(other_), -32801);
  EXPECT_NE(line(hover(kOther, "mesh ^grid")).find("q: 4"), std::string::npos);
}

TEST_F(Obsolete, CancelledRequestsAreNotAnswered) {
  for (const std::int64_t id : {running_, waiting_})
    client_.notify("$/cancelRequest", json::Object{{"id", id}});
  settle();
  disk_.open();
  EXPECT_EQ(code(running_), -32800);
  EXPECT_EQ(code(waiting_), -32800);
  EXPECT_EQ(code(other_), 0);
}

TEST_F(Obsolete, SettingsThatChangeNothingEndNothing) {
  const auto choose = [&](const char* width) {
    client_.notify(
        "workspace/didChangeConfiguration",
        json::Object{
            {"settings",
             json::Object{{"piper", json::Object{{"values", json::Object{{"width", width}}}}}}}});
    settle();
  };
  choose("4");  // the first ones end the earlier requests
  const std::int64_t with = client_.ask("textDocument/hover", client_.at(kOther, "mesh ^grid"));
  choose("4");
  disk_.open();
  EXPECT_EQ(code(running_), -32801);
  EXPECT_EQ(code(other_), -32801);
  EXPECT_EQ(code(with), 0);
}

TEST_F(Obsolete, TheFileThatWasEditedLastIsCheckedFirst) {
  client_.open("/a.pipe", "mesh a(p: 2)\n");
  client_.open("/b.pipe", "mesh b(p: 2)\n");
  client_.edit(kOther, "q: 2", "q: 8");
  settle();
  disk_.open();
  for (const std::string path : {"/a.pipe", "/b.pipe", kOther.c_str()}) client_.diagnostics(path);
  const std::vector<std::string>& order = client_.published_order();
  // The first was published before.
  const auto first = [&](const std::string& path) {
    return std::find(order.begin() + 1, order.end(), lsp::uri_of(path)) - order.begin();
  };
  EXPECT_LT(first(kOther), first("/b.pipe"));
  EXPECT_LT(first("/b.pipe"), first("/a.pipe"));
}

}  // namespace
}  // namespace piper::test
