// Highlights of an operation: its other passes, or the other end of a communication.

#include <gtest/gtest.h>

#include <sstream>

#include "tests/lsp/client.h"

namespace piper::test {
namespace {

const std::string kPath = "/h.pipe";
const std::string kText =
    "schedule s(p: axis, m: int) {\n"
    "    partition model into stage: 4\n"
    "    split batch into mb: m\n"
    "    stream p2p: model.send, model.recv with window: 4\n"
    "    stream own: stage[0].send, stage[0].recv, stage[1].recv\n"
    "    stream zero: model.gather, model.reduce\n"
    "    stream moe: ffn.enter, ffn.leave\n"
    "    order {\n"
    "        rank r in p {\n"
    "            cursor a = stage[r] mb[0..m]\n"
    "            F stage[r].recv mb[0]; F a; F stage[r].send mb[0]\n"
    "            B stage[r].recv mb[1]; B a; BI stage[r].send mb[1]; BW a\n"
    "            F stage[r].recv mb[1]\n"
    "            B stage[r].reduce\n"
    "        }\n"
    "        rank q in p[0] { F stage[2] mb[3]; F stage[2].send mb[3]; B stage[2].send mb[3]; B stage[2] mb[3] }\n"
    "        rank q in p[1] { F stage[3].recv mb[3]; F stage[2].recv mb[3]; B stage[1].recv mb[3]; B stage[3].recv mb[3] }\n"
    "    }\n"
    "}\n"
    "schedule other() { order { rank r in p { F a; F stage[r].send mb[0] } } }\n";

/// `8 F a | 8 B a`: the highlights, with their lines from 1.
std::string highlighted(Client& client, const std::string& place) {
  std::vector<std::string> lines;
  std::istringstream text(kText);
  for (std::string each; std::getline(text, each);) lines.push_back(each);
  std::string all;
  const json::Value answer =
      client.request("textDocument/documentHighlight", client.at(kPath, place));
  if (answer.getAsArray() == nullptr) return line(answer);
  for (const json::Value& each : *answer.getAsArray()) {
    const json::Object& range = *each.getAsObject()->getObject("range");
    const auto at = [&](const char* end, const char* what) {
      return static_cast<std::size_t>(*range.getObject(end)->getInteger(what));
    };
    const std::size_t row = at("start", "line"), begin = at("start", "character");
    all += (all.empty() ? "" : " | ") + std::to_string(row + 1) + " " +
           lines[row].substr(begin, at("end", "character") - begin);
  }
  return all;
}

TEST(Highlight, OperationsThatBelongTogether) {
  const source::MemoryFileSystem disk;
  Client client(disk);
  client.open(kPath, kText);
  struct Row {
    const char *place, *expected;
  };
  const Row rows[] = {
      {"^F a; F stage[r].send mb[0]\n", "11 F a | 12 B a | 12 BW a"},
      {"B^W a", "11 F a | 12 B a | 12 BW a"},
      {"{ ^F stage[2] mb[3]", "16 F stage[2] mb[3] | 16 B stage[2] mb[3]"},
      // For the stage of a rank: forwards are received where forwards are sent.
      {"a; F stage[r].^send mb[0]\n", "11 F stage[r].recv mb[0] | 11 F stage[r].send mb[0]"},
      {"a; ^F stage[r].send mb[0]\n", "11 F stage[r].recv mb[0] | 11 F stage[r].send mb[0]"},
      {"B stage[r].rec^v mb[1]", "12 B stage[r].recv mb[1] | 12 BI stage[r].send mb[1]"},
      {"F stage[r].rec^v mb[1]", "13 F stage[r].recv mb[1]"},
      {"B stage[r].red^uce", "14 B stage[r].reduce"},
      // For stages with numbers: from one to the next, and back.
      {"F stage[2].se^nd mb[3]", "16 F stage[2].send mb[3] | 17 F stage[3].recv mb[3]"},
      {"^B stage[2].send mb[3]", "16 B stage[2].send mb[3] | 17 B stage[1].recv mb[3]"},
      {"F stage[3].re^cv mb[3]", "16 F stage[2].send mb[3] | 17 F stage[3].recv mb[3]"},
      {"F stage[2].re^cv mb[3]", "17 F stage[2].recv mb[3]"},
      // Streams name parts of work, in every pass.
      {"p2p: model.se^nd", "4 model.send | 4 model.recv"},
      {"model.re^cv", "4 model.send | 4 model.recv"},
      {"own: stage[0].se^nd", "5 stage[0].send | 5 stage[0].recv"},
      {"model.gat^her", "6 model.gather | 6 model.reduce"},
      {"model.red^uce", "6 model.gather | 6 model.reduce"},
      {"ffn.ent^er", "7 ffn.enter | 7 ffn.leave"},
      {"stream z^ero", ""},
  };
  for (const Row& row : rows) EXPECT_EQ(highlighted(client, row.place), row.expected) << row.place;
}

}  // namespace
}  // namespace piper::test
