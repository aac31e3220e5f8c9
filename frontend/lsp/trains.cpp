#include "frontend/lsp/trains.h"

#include <fcntl.h>
#include <unistd.h>

#include "backend/jit/command.h"

namespace piper::lsp {

namespace {

/// Calls `said` with whole lines; a step that is written over (`\r`) is one too.
class Lines {
 public:
  explicit Lines(const std::function<void(std::string_view)>& said) : said_(said) {}

  void add(std::string_view part) {
    for (const char c : part) {
      if (c != '\n' && c != '\r') {
        line_ += c;
      } else {
        finish();
      }
    }
  }
  void finish() {
    if (!line_.empty()) said_(line_);
    line_.clear();
  }

 private:
  const std::function<void(std::string_view)>& said_;
  std::string line_;
};

}  // namespace

Trains::Run::~Run() {
  if (stop[1] >= 0) close(stop[1]);  // which the other end reads as a word to stop
  if (thread.joinable()) thread.join();
  if (stop[0] >= 0) close(stop[0]);
}

Trains::Start Trains::start(const std::string& key, const std::vector<std::string>& words,
                            std::function<void(std::string_view)> said,
                            std::function<void(int)> ended) {
  if (program_.empty()) return Start::failed;
  const std::lock_guard lock(mutex_);
  if (const auto known = runs_.find(key); known != runs_.end()) {
    if (!known->second->over) return Start::runs_already;
    runs_.erase(known);
  }
  auto run = std::make_unique<Run>();
  if (pipe2(run->stop, O_CLOEXEC) != 0) return Start::failed;
  std::vector<std::string> line = {program_};
  line.insert(line.end(), words.begin(), words.end());
  const backend::Command command = backend::start(line);
  if (command.error != 0) {
    backend::finish(command, -1);
    return Start::failed;
  }
  run->thread = std::thread(
      [this, command, run = run.get(), said = std::move(said), ended = std::move(ended)] {
        Lines lines(said);
        const backend::CommandEnd end =
            backend::finish(command, run->stop[0], [&](std::string_view part) { lines.add(part); });
        lines.finish();
        {
          const std::lock_guard over(mutex_);
          run->over = true;  // before anyone hears of it and starts it again
        }
        ended(end.signal != 0 ? 128 + end.signal : end.status);
      });
  runs_[key] = std::move(run);
  return Start::started;
}

bool Trains::stop(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto known = runs_.find(key);
  return known != runs_.end() && !known->second->over && write(known->second->stop[1], "", 1) == 1;
}

void Trains::end_all() {
  std::map<std::string, std::unique_ptr<Run>> runs;  // whose threads take the lock at their end
  const std::lock_guard lock(mutex_);
  runs.swap(runs_);
}

}  // namespace piper::lsp
