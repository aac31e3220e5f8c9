#include "frontend/repl/completion.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "frontend/repl/commands.h"

namespace piper::repl {
namespace {

constexpr std::string_view kRates[] = {"bandwidth=", "bytes=", "flops=", "latency=", "reset"};
constexpr std::string_view kCosts[] = {
    "b=",    "bi=", "bw=",   "f=",          "keep=",        "p2p=",
    "pair=", "r=",  "reset", "stages=cost", "stages=equal", "w="};

std::vector<std::string> files_like(std::string_view word) {
  const std::size_t slash = word.rfind('/');
  const std::string folder(slash == std::string_view::npos ? std::string_view()
                                                           : word.substr(0, slash + 1));
  std::vector<std::string> list;
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(folder.empty() ? "." : folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('.')) continue;
    if (entry.is_directory(error)) {
      list.push_back(folder + name + "/");
    } else if (name.ends_with(".pipe")) {
      list.push_back(folder + name);
    }
  }
  return list;
}

std::vector<std::string> sizes_of(Session& session, const std::string& subject) {
  std::vector<std::string> list;
  for (const std::string& name : session.parameters_of(subject)) list.push_back(name + "=");
  return list;
}

std::vector<std::string> words_of(Session& session, const CommandRow& row, std::string_view behind,
                                  std::string_view word) {
  std::vector<std::string> list;
  switch (row.words) {
    case WordSort::nothing: break;
    case WordSort::file: return files_like(word);
    case WordSort::rate: list.assign(std::begin(kRates), std::end(kRates)); break;
    case WordSort::cost: list.assign(std::begin(kCosts), std::end(kCosts)); break;
    case WordSort::size: list = sizes_of(session, session.last_subject()); break;
    case WordSort::command:
      for (const CommandRow& each : command_rows()) list.emplace_back(each.name);
      break;
    case WordSort::definition: list = session.defined(); break;
    case WordSort::explained:
    case WordSort::subject: {
      list = session.subjects();
      std::string error;
      const auto before = split_words(behind.substr(0, behind.size() - word.size()), error);
      const std::string named = before ? before->first() : "";
      if (row.takes_values) {
        for (std::string& size : sizes_of(session, named.empty() ? session.last_subject() : named))
          list.push_back(std::move(size));
      }
      break;
    }
  }
  return list;
}

bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

}  // namespace

Completion completion_of(Session& session, std::string_view text) {
  Completion found;
  std::vector<std::string> all;
  std::string_view word;
  const std::size_t first = text.find_first_not_of(' ');
  if (first != std::string_view::npos && text[first] == ':') {
    const std::size_t end = std::min(text.find(' ', first), text.size());
    if (end == text.size()) {
      found.begin = first;
      for (const CommandRow& row : command_rows()) all.push_back(":" + std::string(row.name));
    } else {
      found.begin = text.find_last_of(' ') + 1;
      const CommandRow* row = find_command(text.substr(first + 1, end - first - 1));
      if (row == nullptr) return found;
      all = words_of(session, *row, text.substr(end), text.substr(found.begin));
    }
  } else {
    found.begin = text.size();
    while (found.begin > 0 && in_word(text[found.begin - 1])) --found.begin;
    all = session.names();
  }
  word = text.substr(found.begin);
  for (std::string& candidate : all) {
    if (candidate.starts_with(word)) found.candidates.push_back(std::move(candidate));
  }
  std::sort(found.candidates.begin(), found.candidates.end());
  found.candidates.erase(std::unique(found.candidates.begin(), found.candidates.end()),
                         found.candidates.end());
  return found;
}

}  // namespace piper::repl
