// Latencies of an editor: from a key to its diagnostics, for completion and for hover, over a
// recorded session in a file of 500 lines with every schedule of the library twice; the same while
// a large plan is compiled; and the memory after 10,000 edits. Goal: 50 ms; a large plan never
// blocks; nothing grows.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "tests/bench/measure.h"
#include "tests/lsp/client.h"

namespace piper::bench {
namespace {

namespace json = llvm::json;
using test::Client;

const std::string kPath = "/library.pipe";

/// A file's declarations, without its `use` lines.
std::string declarations_of(const std::filesystem::path& path) {
  std::string text;
  std::ifstream stream(path);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with("use ")) text += line + "\n";
  }
  return text;
}

/// The declarations of the library's schedules.
std::string schedules() {
  std::vector<std::filesystem::path> paths;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("stdlib/schedules", error))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::string text;
  for (const auto& path : paths) text += declarations_of(path);
  return text;
}

/// The same declarations under other names.
std::string renamed(const std::string& text) {
  std::string copy = text;
  const std::regex declaration("(?:^|\n)(?:schedule|def|model) (\\w+)");
  for (auto at = std::sregex_iterator(text.begin(), text.end(), declaration);
       at != std::sregex_iterator(); ++at) {
    copy = std::regex_replace(copy, std::regex("\\b" + (*at)[1].str() + "\\b(?=\\()"),
                              (*at)[1].str() + "_2");
  }
  return copy;
}

std::string library_text() {
  const std::string once = schedules();
  return once.empty() ? once : declarations_of("stdlib/models/gpt.pipe") + once + renamed(once);
}

struct Action {
  std::string verb, text;
};

/// tests/bench/editing_session.txt, which explains its lines.
std::vector<Action> recorded_session() {
  std::vector<Action> actions;
  std::ifstream stream("tests/bench/editing_session.txt");
  for (std::string line; std::getline(stream, line);) {
    if (line.empty() || line.starts_with("#")) continue;
    const std::size_t space = line.find(' ');
    std::string text = space == std::string::npos ? "" : line.substr(space + 1);
    for (std::size_t at; (at = text.find("\\n")) != std::string::npos;) text.replace(at, 2, "\n");
    actions.push_back({line.substr(0, space), std::move(text)});
  }
  return actions;
}

double milliseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

double percentile_90(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() * 9 / 10];
}

/// A person at a keyboard, who waits for the editor's display.
class Typist {
 public:
  Typist(Client& client, std::string path) : client_(client), path_(std::move(path)) {}

  void run(const Action& action) {
    if (action.verb == "after") {
      const std::size_t at = text().find(action.text);
      if (at == std::string::npos)
        throw std::runtime_error("the session's text is not there: " + action.text);
      cursor_ = at + action.text.size();
    } else if (action.verb == "type") {
      for (const char c : action.text) {
        key(cursor_, cursor_, std::string(1, c));
        ++cursor_;
      }
    } else if (action.verb == "back") {
      for (int left = std::stoi(action.text); left > 0; --left, --cursor_)
        key(cursor_ - 1, cursor_, "");
    } else if (action.verb == "complete") {
      SourceTable table;
      const FileId file = table.add("", text());
      json::Object params = client_.file(path_);
      params["position"] = lsp::to_json(
          table.line_column(file, static_cast<std::uint32_t>(cursor_), ColumnUnit::utf16));
      ask("textDocument/completion", std::move(params), completion);
    } else if (action.verb == "hover") {
      ask("textDocument/hover", client_.at(path_, action.text), hover);
    } else {
      throw std::runtime_error("no action: " + action.verb);
    }
  }

  bool waits_for_diagnostics = true;
  std::vector<double> diagnostics, completion, hover;  // milliseconds

 private:
  const std::string& text() { return client_.text(path_); }
  void key(std::size_t begin, std::size_t end, const std::string& put) {
    const auto pressed = std::chrono::steady_clock::now();
    client_.edit(path_, begin, end, put);
    if (!waits_for_diagnostics) return;
    client_.raw_diagnostics(path_);
    diagnostics.push_back(milliseconds_since(pressed));
  }
  void ask(const char* method, json::Object params, std::vector<double>& waited) {
    const auto asked = std::chrono::steady_clock::now();
    benchmark::DoNotOptimize(client_.request(method, std::move(params)));
    waited.push_back(milliseconds_since(asked));
  }

  Client& client_;
  const std::string path_;
  std::size_t cursor_ = 0;
};

void report(benchmark::State& state, const std::string& what, const std::vector<double>& waited) {
  if (waited.empty()) return;
  state.counters[what + "_ms"] = median(waited);
  state.counters[what + "_p90_ms"] = percentile_90(waited);
}

void BM_EditingSession(benchmark::State& state) {
  const std::string text = library_text();
  const std::vector<Action> session = recorded_session();
  if (text.empty() || session.empty()) return state.SkipWithError("run it from the project's root");
  const source::MemoryFileSystem disk;
  Client client(disk);
  client.open(kPath, text);
  client.raw_diagnostics(kPath);
  Typist typist(client, kPath);
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    for (const Action& action : session) typist.run(action);
    state.SetIterationTime(milliseconds_since(begin) / 1e3);
    if (client.text(kPath) != text)
      return state.SkipWithError("the session does not end with the text that it began with");
  }
  state.counters["lines"] = static_cast<double>(std::count(text.begin(), text.end(), '\n'));
  state.counters["keys"] =
      static_cast<double>(typist.diagnostics.size()) / static_cast<double>(state.iterations());
  report(state, "diagnostics", typist.diagnostics);
  report(state, "completion", typist.completion);
  report(state, "hover", typist.hover);
}

/// In a file with a train whose plan takes seconds: completion and hover after each key, while the
/// check of the earlier text is cancelled and begins again.
void BM_TypingBesideALargePlan(benchmark::State& state) {
  const std::string path = "/large.pipe";
  const std::string text =
      "use std.models.mlp\nuse std.schedules.zbv\n\nmesh cluster(pp: 64)\n\n"
      "train large = mlp(layers: 128, features: 16, hidden: 16, classes: 4) on cluster {\n"
      "    data:  synthetic(batch: 4096, classes: 4)\n    optim: sgd(lr: 0.1)\n    steps: 1\n    zbv(pp, 2048)\n}\n";
  const source::MemoryFileSystem disk;
  Client client(disk);
  client.open(path, text);
  Typist typist(client, path);
  typist.waits_for_diagnostics = false;
  for (auto _ : state) {
    const auto begin = std::chrono::steady_clock::now();
    typist.run({"after", "steps: 1"});
    for (const char digit : std::string("024680")) {
      typist.run({"type", std::string(1, digit)});
      typist.run({"complete", ""});
      typist.run({"hover", "    zb^v(pp"});
    }
    typist.run({"back", "6"});
    state.SetIterationTime(milliseconds_since(begin) / 1e3);
  }
  report(state, "completion", typist.completion);
  report(state, "hover", typist.hover);
}

double resident_mib() {
  std::ifstream statm("/proc/self/statm");
  double pages = 0, resident = 0;
  statm >> pages >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1024 * 1024);
}

/// The memory of the process after 1,000 edits and after 10,000, each answered.
void BM_MemoryOfEdits(benchmark::State& state) {
  const std::string text = declarations_of("stdlib/schedules/alternate.pipe") +
                           declarations_of("stdlib/schedules/one_f_one_b.pipe") +
                           declarations_of("stdlib/schedules/gpipe.pipe");
  if (text.empty()) return state.SkipWithError("run it from the project's root");
  for (auto _ : state) {
    const source::MemoryFileSystem disk;
    Client client(disk);
    client.open(kPath, text);
    Typist typist(client, kPath);
    double early = 0;
    for (int edit = 0; edit < 10000; edit += 2) {
      typist.run({"after", "schedule gpipe(p: axis, m: int) {\n"});
      typist.run({"type", std::string(1, static_cast<char>('a' + edit / 2 % 26))});
      typist.run({"hover", "schedule gpi^pe("});
      typist.run({"back", "1"});
      if (edit == 1000) early = resident_mib();
    }
    state.counters["after_1000_mib"] = early;
    state.counters["after_10000_mib"] = resident_mib();
    state.counters["ratio"] = resident_mib() / early;
  }
}

BENCHMARK(BM_EditingSession)->Unit(benchmark::kMillisecond)->UseManualTime()->Iterations(1);
BENCHMARK(BM_TypingBesideALargePlan)->Unit(benchmark::kMillisecond)->UseManualTime()->Iterations(3);
BENCHMARK(BM_MemoryOfEdits)->Unit(benchmark::kSecond)->Iterations(1);

}  // namespace
}  // namespace piper::bench
