#include "runtime/options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>
#include <utility>

namespace piper::runtime {
namespace {

bool parse(std::string_view text, std::uint32_t low, std::uint32_t high, std::uint32_t& out) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high)
    return false;
  out = value;
  return true;
}

bool parse(std::string_view text, double low, double high, double& out) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= low && value <= high))
    return false;
  out = value;
  return true;
}

bool parse(std::string_view text, bool& out) {
  if (text != "0" && text != "1") return false;
  out = text == "1";
  return true;
}

struct Row {
  OptionRow shown;
  bool (*set)(Options&, std::string_view);
};

constexpr Row kRows[] = {
    {{"PIPER_CHECK_MEMORY", "0 or 1", "0",
      "poison the arenas, guard their ends, count the bytes that are written"},
     [](Options& o, std::string_view text) { return parse(text, o.check_memory); }},
    {{"PIPER_CUDA_ATTENTION", "torch or builtin", "torch",
      "attention on a GPU; torch: LibTorch's for shapes that it supports; builtin: no LibTorch, slow"},
     [](Options& o, std::string_view text) {
       o.builtin_attention = text == "builtin";
       return o.builtin_attention || text == "torch";
     }},
    {{"PIPER_CUDA_DETERMINISTIC", "0 or 1", "1",
      "on a GPU, add the gradients of attention in one order; 0: faster, with other bits in each run"},
     [](Options& o, std::string_view text) { return parse(text, o.cuda_deterministic); }},
    {{"PIPER_CUDA_GRAPHS", "0 or 1", "1", "on a GPU, capture steps as graphs after the first two"},
     [](Options& o, std::string_view text) { return parse(text, o.cuda_graphs); }},
    {{"PIPER_HEARTBEAT_SECONDS", "0.1 to 3600", "1",
      "the time between two heartbeats of a process of a run"},
     [](Options& o, std::string_view text) { return parse(text, 0.1, 3600, o.heartbeat_seconds); }},
    {{"PIPER_HUGE_PAGES", "0 or 1", "1", "ask for huge pages for the arenas"},
     [](Options& o, std::string_view text) { return parse(text, o.huge_pages); }},
    {{"PIPER_MATH", "auto, mkl, onednn or builtin", "auto",
      "library of matrix products; auto: the faster of LibTorch's two; builtin: no LibTorch, slow"},
     [](Options& o, std::string_view text) {
       constexpr std::pair<std::string_view, Math> kNames[] = {{"auto", Math::automatic},
                                                               {"mkl", Math::mkl},
                                                               {"onednn", Math::onednn},
                                                               {"builtin", Math::builtin}};
       const auto* const named = std::find_if(std::begin(kNames), std::end(kNames),
                                              [&](const auto& each) { return each.first == text; });
       if (named == std::end(kNames)) return false;
       o.math = named->second;
       return true;
     }},
    {{"PIPER_MEET_SECONDS", "1 to 86400", "300",
      "how long the processes of a run wait for each other before step 1"},
     [](Options& o, std::string_view text) { return parse(text, 1, 86400, o.meet_seconds); }},
    {{"PIPER_PLUGINS", "folder", "beside the program", "the folder of the plugins"},
     [](Options& o, std::string_view text) {
       o.plugin_folder = text;
       return !text.empty();
     }},
    {{"PIPER_SILENCE_SECONDS", "0, or 0.5 to 86400", "10",
      "a process of a run without a heartbeat for this long ends it; 0: never"},
     [](Options& o, std::string_view text) {
       return parse(text, 0, 0, o.silence_seconds) || parse(text, 0.5, 86400, o.silence_seconds);
     }},
    {{"PIPER_SPIN", "0 to 1000000", "200",
      "polls before a thread sleeps; 0 unless there are more cores than devices"},
     [](Options& o, std::string_view text) { return parse(text, 0, 1000000, o.spin); }},
    {{"PIPER_STALL_SECONDS", "0 to 86400", "300",
      "a run in which nothing has moved for this long is ended; 0: never"},
     [](Options& o, std::string_view text) {
       std::uint32_t seconds = 0;
       if (!parse(text, 0, 86400, seconds)) return false;
       o.stall_seconds = seconds;
       return true;
     }},
    {{"PIPER_THREADS", "1 to 1024", "1", "threads of one device inside a library call"},
     [](Options& o, std::string_view text) { return parse(text, 1, 1024, o.threads); }},
};

}  // namespace

std::optional<Failure> Options::read_environment(const char* const* environment) {
  for (; environment && *environment; ++environment) {
    const std::string_view entry = *environment;
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    if (entry.substr(0, equals) == "OMP_WAIT_POLICY" || entry.substr(0, equals) == "GOMP_SPINCOUNT")
      openmp_waits_as_set = true;
    for (const Row& row : kRows) {
      if (entry.substr(0, equals) != row.shown.name) continue;
      const std::string_view text = entry.substr(equals + 1);
      if (row.set(*this, text)) continue;
      return Failure{.code = kBadOption,
                     .message = "the environment variable `" + std::string(row.shown.name) +
                                "` is `" + std::string(text) + "`",
                     .hint = "write " + std::string(row.shown.type) +
                             ", or unset it for the default, " + row.shown.initial};
    }
  }
  if (silence_seconds > 0 && silence_seconds < 2 * heartbeat_seconds)
    return Failure{
        .code = kBadOption,
        .message = "`PIPER_SILENCE_SECONDS` is less than twice `PIPER_HEARTBEAT_SECONDS`",
        .hint =
            "a process would count as lost between two heartbeats: raise the first one, or lower the second"};
  return std::nullopt;
}

std::span<const OptionRow> option_rows() {
  static const auto rows = [] {
    std::array<OptionRow, std::size(kRows)> out;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = kRows[i].shown;
    return out;
  }();
  return rows;
}

}  // namespace piper::runtime
