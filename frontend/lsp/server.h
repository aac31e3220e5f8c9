#pragma once
// The language server: one client, from `initialize` to `exit`.
//
//   Server server({.version = "0.1.0", .cache_folder = "/home/me/.cache/piper"}, disk);
//   return server.run(std::cin, std::cout);   // 0 after `shutdown` and `exit`, else 1
//
// Three threads. One reads: it applies edits, cancels, and answers requests of the protocol itself.
// One answers requests in their order. One checks the open files, publishes diagnostics, and
// answers requests that need a plan. A request for a text that was edited meanwhile is answered
// with ContentModified, one that the client cancelled with RequestCancelled; a check of such a text
// is given up.

#include <atomic>
#include <condition_variable>
#include <deque>
#include <istream>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "frontend/lsp/editor.h"
#include "frontend/lsp/methods.h"
#include "frontend/lsp/project.h"
#include "frontend/lsp/trains.h"
#include "frontend/lsp/transport.h"

namespace piper::lsp {

struct ServerOptions {
  std::string version;
  // Library files are written there for the editor to show; empty: they are not shown.
  std::string cache_folder;
  std::string program = {};  // runs trains; empty: nothing is run
};

class Server {
 public:
  Server(ServerOptions options, const source::FileSystem& disk);
  ~Server();

  /// Serves until `exit` or the end of `in`; gives the exit code.
  int run(std::istream& in, std::ostream& out);

 private:
  enum class Phase : std::uint8_t { fresh, serving, shut_down };

  /// A request that waits or is being answered.
  struct Job {
    Job(json::Value request_id, const Method& request_method, json::Object request_params)
        : id(std::move(request_id)), method(request_method), params(std::move(request_params)) {}
    json::Value id;
    const Method& method;
    json::Object params;
    std::shared_ptr<service::Document> document;  // null: it concerns no single file
    Cancellation cancellation;
    std::atomic<bool> modified = false;  // its text was edited
  };

  // The reading thread.
  bool handle(const json::Object& message);  // false: the client sent `exit`
  void request(const json::Value& id, llvm::StringRef method, json::Object params);
  void notify(llvm::StringRef method, const json::Object& params);
  void initialize(const json::Value& id, const json::Object& params);
  void take_settings(const json::Value* settings);
  void did_open(const json::Object& params);
  void did_change(const json::Object& params);
  void did_close(const json::Object& params);
  /// The text of that path, or a file that it uses, has changed: requests about older versions are
  /// obsolete, and dependent files are checked again.
  void changed(const std::string& path);
  void changed_on_disk(const std::string& path);
  void enqueue(const json::Value& id, const Method& method, json::Object params);
  void cancel(const json::Value* id);
  /// Ends a train, or keeps one that waits for its turn from beginning.
  void stop_train(const json::Value& id, const json::Object& params);

  // The answering thread.
  void answer_requests();
  void answer(Job& job);
  /// The next request of a lane; null: none waits. With `mutex_` held.
  std::shared_ptr<Job> take(Lane lane);
  bool all_answered() const;

  // The checking thread.
  void check_files();
  /// The file to check next, with its document and cancellation in place. With `mutex_` held.
  std::optional<OpenFile> next_unchecked();
  void check(const OpenFile& file);
  /// Publishes the diagnostics of a check of `origin`, which uses files at these paths, together
  /// with those of other checks in the same files.
  void publish(const OpenFile& origin, std::map<std::string, json::Array> found,
               std::set<std::string> uses);
  /// The diagnostics shown at a URI. With `mutex_` held.
  json::Array shown_at(const std::string& uri) const;

  void respond(const json::Value& id, json::Value result);
  void refuse(const json::Value& id, ErrorCode code, std::string_view message);
  void stop();

  const ServerOptions options_;
  Project project_;
  Transport* transport_ = nullptr;
  Phase phase_ = Phase::fresh;
  ColumnUnit unit_ = ColumnUnit::utf16;
  Editor editor_;
  Trains trains_;

  std::mutex mutex_;
  std::condition_variable work_, idle_;  // there is something to do; a thread has nothing to do
  bool stopping_ = false;
  std::deque<std::shared_ptr<Job>> queues_[2];  // by lane
  std::shared_ptr<Job> running_[2];
  std::set<std::string> unchecked_;  // paths
  std::vector<std::string> recent_;  // edited last first
  std::shared_ptr<service::Document> checked_document_;
  std::shared_ptr<Cancellation> check_cancellation_;
  std::map<std::string, std::map<std::string, json::Array>> published_;  // by origin and URI
  std::map<std::string, std::set<std::string>> uses_;                    // by origin: paths
  std::thread answering_, checking_thread_;
};

}  // namespace piper::lsp
