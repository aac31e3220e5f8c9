#pragma once
// Notifications and requests from the server to the client, beside answers and diagnostics:
// messages, documents to show, questions.
//
//   Editor editor;
//   editor.connect(transport, params_of_initialize);
//   editor.message(MessageKind::info, "`net`: 400 steps");
//
// Any thread may use it once it is connected.

#include <atomic>
#include <cstdint>
#include <string>

#include "frontend/lsp/protocol.h"
#include "frontend/lsp/transport.h"

namespace piper::lsp {

/// Their values are those of the protocol.
enum class MessageKind : int { error = 1, warning = 2, info = 3, log = 4 };

class Editor {
 public:
  void connect(Transport& transport, const json::Object& initialize);

  /// Shown to the person.
  void message(MessageKind kind, std::string_view words);
  /// A line of the client's log.
  void log(std::string_view words);
  /// Asks the client to show a file, or to open it in an external program; false if it cannot.
  bool show(const std::string& uri, bool external);
  /// Asks for the section `piper` of the settings; the answer comes as a message without a method.
  void ask_for_settings();
  /// Asks the client to report changes of files on the disk.
  void watch_files();

 private:
  void notify(std::string_view method, json::Object params);
  void ask(std::string_view topic, std::string_view method, json::Object params);

  Transport* transport_ = nullptr;
  bool has_settings_ = false;     // it answers `workspace/configuration`
  bool shows_documents_ = false;  // and `window/showDocument`
  // And `client/registerCapability` for `workspace/didChangeWatchedFiles`.
  bool watches_files_ = false;
  std::atomic<std::int64_t> asked_ = 0;
};

}  // namespace piper::lsp
