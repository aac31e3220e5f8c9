// Files of measured costs.

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <set>

#include "frontend/service/cost_text.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"

namespace piper::service {

namespace {

/// JSON that is nested deeper is no file of costs, and the reader of JSON calls itself.
constexpr int kDeepest = 16;

bool is_too_deep(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && (text[i] == '{' || text[i] == '[') && ++depth > kDeepest) {
      return true;
    } else if (!quoted && (text[i] == '}' || text[i] == ']')) {
      --depth;
    }
  }
  return false;
}

/// The place of a key that its object has already, in a text that is JSON; keys are compared as
/// they are written.
std::optional<std::uint32_t> repeated_key(std::string_view text) {
  std::vector<std::set<std::string_view>> open;  // the keys of each bracket
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{' || text[i] == '[') open.emplace_back();
    if (text[i] == '}' || text[i] == ']') open.pop_back();
    if (text[i] != '"') continue;
    const std::size_t begin = i++;
    for (; text[i] != '"'; ++i) i += text[i] == '\\' ? 1 : 0;
    const std::size_t next = text.find_first_not_of(" \t\r\n", i + 1);
    const bool key = next != std::string_view::npos && text[next] == ':';
    if (key && !open.back().insert(text.substr(begin, i - begin)).second)
      return static_cast<std::uint32_t>(begin);
  }
  return std::nullopt;
}

class Reader {
 public:
  Reader(FileId file, std::string_view text, DiagnosticSink& sink)
      : file_(file), text_(text), sink_(sink) {}

  std::optional<MeasuredCosts> read() {
    if (is_too_deep(text_)) return wrong("brackets are nested too deep for a file of costs", 0);
    auto parsed = llvm::json::parse(text_);
    if (!parsed) {
      std::string said = llvm::toString(parsed.takeError());
      std::uint32_t at = 0;
      if (const std::size_t byte = said.find("byte="); byte != std::string::npos)
        std::from_chars(said.data() + byte + 5, said.data() + said.size(), at);
      if (const std::size_t place = said.find("]: "); place != std::string::npos)
        said.erase(0, place + 3);
      if (const std::size_t place = said.rfind(" ["); place != std::string::npos) said.erase(place);
      return wrong("this is no JSON: " + said,
                   std::min(at, static_cast<std::uint32_t>(text_.size())));
    }
    if (const auto again = repeated_key(text_))
      return wrong("a name appears twice in one object", *again);
    const llvm::json::Object* root = parsed->getAsObject();
    if (root == nullptr) return wrong("a file of costs is an object", 0);
    if (root->getInteger("schema") != 1) return wrong("a file of costs has `\"schema\": 1`", 0);
    for (const auto& [key, value] : *root) {
      const std::string name = llvm::StringRef(key).str();
      if (name == "schema") continue;
      const llvm::json::Object* object = value.getAsObject();
      if (name != "rates" && name != "bodies" && name != "actions")
        return wrong("a file of costs has no `" + name + "`, but `rates`, `bodies` and `actions`",
                     place_of(name));
      if (object == nullptr) return wrong("`" + name + "` is an object of numbers", place_of(name));
      if (!(name == "rates"
                ? read_rates_of(*object)
                : read_times(*object, name == "bodies" ? costs_.bodies : costs_.actions)))
        return std::nullopt;
    }
    return std::move(costs_);
  }

 private:
  std::nullopt_t wrong(const std::string& what, std::uint32_t at) {
    sink_.report(Code::bad_costs_file, SourceRange{file_, at, at}, "{}", what)
        .hint("a file of costs is `{}`",
              R"({"schema": 1, "rates": {"flops": 1e12}, "bodies": {"stage0.F": 0.002}})");
    return std::nullopt;
  }

  /// The first place of a key.
  std::uint32_t place_of(const std::string& key) const {
    const std::size_t at = text_.find("\"" + key + "\"");
    return at == std::string_view::npos ? 0 : static_cast<std::uint32_t>(at);
  }

  bool read_times(const llvm::json::Object& times,
                  std::vector<std::pair<std::string, double>>& list) {
    for (const auto& [key, value] : times) {
      const std::string name = llvm::StringRef(key).str();
      const auto seconds = value.getAsNumber();
      if (!seconds || !(*seconds >= 0 && *seconds <= 1e9)) {
        wrong("the time of `" + name + "` is no number of seconds from 0 to 1e9", place_of(name));
        return false;
      }
      list.emplace_back(name, *seconds);
    }
    return true;
  }

  bool read_rates_of(const llvm::json::Object& rates) {
    for (const auto& [key, value] : rates) {
      const std::string name = llvm::StringRef(key).str();
      const auto number = value.getAsNumber();
      if (!number) {
        wrong("the rate `" + name + "` is no number", place_of(name));
        return false;
      }
      char text[40];
      std::snprintf(text, sizeof text, "=%.17g", *number);
      if (!read_rates(name + text, costs_.rates, sink_)) return false;
    }
    return true;
  }

  FileId file_;
  std::string_view text_;
  DiagnosticSink& sink_;
  MeasuredCosts costs_;
};

}  // namespace

std::optional<MeasuredCosts> read_cost_file(std::string_view path, const source::FileSystem& disk,
                                            SourceTable& files, DiagnosticSink& sink) {
  const auto file = source::open(path, {}, disk, files, sink);
  if (!file) return std::nullopt;
  return Reader(*file, files.text(*file), sink).read();
}

std::string cost_file_text(const MeasuredCosts& costs) {
  const auto times = [](const std::vector<std::pair<std::string, double>>& list) {
    llvm::json::Object object;
    for (const auto& [name, seconds] : list) object[name] = seconds;
    return object;
  };
  const passes::MachineRates& rates = costs.rates;
  llvm::json::Object root{{"schema", 1},
                          {"rates", llvm::json::Object{{"flops", rates.flops},
                                                       {"bytes", rates.bytes},
                                                       {"latency", rates.latency},
                                                       {"bandwidth", rates.bandwidth}}},
                          {"bodies", times(costs.bodies)},
                          {"actions", times(costs.actions)}};
  std::string text;
  llvm::raw_string_ostream(text) << llvm::formatv("{0:2}", llvm::json::Value(std::move(root)));
  return text + "\n";
}

passes::ActionCosts costs_of(const dag::Dag& dag, const MeasuredCosts& measured,
                             DiagnosticSink& sink) {
  passes::ActionCosts costs = passes::action_costs(dag, measured.rates);
  if (!measured.actions.empty()) {
    const std::map<std::string_view, double> seconds(measured.actions.begin(),
                                                     measured.actions.end());
    costs.work.assign(dag.nodes.size(), -1);
    for (std::size_t node = 0; node < dag.nodes.size(); ++node) {
      if (const auto found = seconds.find(dag.name(dag::NodeId::at(node))); found != seconds.end())
        costs.work[node] = found->second;
    }
  }
  if (measured.bodies.empty()) return costs;
  std::map<std::string_view, std::size_t> number;
  for (std::size_t b = 0; b < dag.bodies.size(); ++b)
    number[dag.context->text(dag.bodies[b].name)] = b;
  std::size_t known = 0;
  for (const auto& [name, seconds] : measured.bodies) {
    const auto body = number.find(name);
    if (body == number.end()) continue;
    costs.body[body->second] = seconds;
    ++known;
  }
  if (known < dag.bodies.size() || known < measured.bodies.size()) {
    sink.report(
            Code::costs_of_another_program, SourceRange(),
            "the file of costs has times of {} of the program's {} bodies, and of {} that it does not have",
            known, dag.bodies.size(), measured.bodies.size() - known)
        .hint("the others take the times of the op table at the rates of the machine");
  }
  return costs;
}

}  // namespace piper::service
