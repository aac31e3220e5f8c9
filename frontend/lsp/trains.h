#pragma once
// Trains that run as children of the server: their output is passed on line by line, and they end
// with the server.
//
//   Trains trains("/usr/bin/piper");
//   trains.start("/a/net.pipe net", {"train", "/a/net.pipe", "net"}, [&](std::string_view line) { editor.log(line); }, [&](int code) { ... });

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace piper::lsp {

class Trains {
 public:
  /// Empty: nothing can be run.
  explicit Trains(std::string program) : program_(std::move(program)) {}
  ~Trains() { end_all(); }
  Trains(const Trains&) = delete;
  Trains& operator=(const Trains&) = delete;

  enum class Start : std::uint8_t { started, runs_already, failed };
  /// Runs the program with these words, under a key. `ended` gets the exit code, 128 and more for a
  /// signal. Both are called by a thread of their own.
  Start start(const std::string& key, const std::vector<std::string>& words,
              std::function<void(std::string_view line)> said, std::function<void(int code)> ended);
  static std::string key(std::string_view path, std::string_view name) {
    return std::string(path) + " " + std::string(name);
  }
  /// Asks it to end; false if none of that key runs.
  bool stop(const std::string& key);
  void end_all();

 private:
  struct Run {
    std::thread thread;
    int stop[2] = {-1, -1};  // a pipe
    bool over = false;       // under `mutex_`
    ~Run();
  };

  const std::string program_;
  std::mutex mutex_;
  std::map<std::string, std::unique_ptr<Run>> runs_;
};

}  // namespace piper::lsp
