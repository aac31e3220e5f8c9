#pragma once
// A client of the language server in the same process, over two streams.
//
//   Client client(disk);
//   client.open("/net.pipe", text);
//   EXPECT_EQ(client.diagnostics("/net.pipe"), "");
//   json::Value answer = client.request("textDocument/hover", client.at("/net.pipe", "pla^in"));

#include <condition_variable>
#include <deque>
#include <istream>
#include <map>
#include <mutex>
#include <optional>
#include <ostream>
#include <streambuf>
#include <string>
#include <thread>

#include "frontend/lsp/server.h"

namespace piper::test {

namespace json = llvm::json;

/// Bytes from one thread to another; reading waits.
class Pipe : public std::streambuf {
 public:
  void close();

 protected:
  int_type overflow(int_type c) override;
  std::streamsize xsputn(const char* bytes, std::streamsize count) override;
  int_type underflow() override;

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::string waiting_, reading_;
  bool closed_ = false;
};

class Client {
 public:
  /// Sends `initialize`, unless that is false.
  explicit Client(const source::FileSystem& disk, json::Object options = {}, bool initialize = true,
                  std::string cache_folder = {}, std::string program = {});
  ~Client();

  void send(const std::string& bytes);
  void send(json::Object message);
  void notify(std::string_view method, json::Object params);
  /// The `result`, or the whole `error`.
  json::Value request(std::string_view method, json::Object params);
  /// Sends a request; returns its id without waiting for the answer.
  std::int64_t ask(std::string_view method, json::Object params);
  json::Value answer(std::int64_t id);
  /// The next message that answers none of our requests, such as an error without an id.
  json::Value next();

  void open(const std::string& path, const std::string& text);
  /// Replaces the only occurrence of `from`.
  void edit(const std::string& path, const std::string& from, const std::string& to);
  /// Replaces bytes.
  void edit(const std::string& path, std::size_t begin, std::size_t end, const std::string& to);
  void replace(const std::string& path, const std::string& text);
  /// The diagnostics published for the newest text: `1:7 P2001 message`, a line each.
  std::string diagnostics(const std::string& path);
  /// Reads until a message published for the path contains `words`.
  void wait_for(const std::string& path, const std::string& words);
  /// The URIs of all published messages, in order.
  const std::vector<std::string>& published_order() const { return order_; }
  json::Array raw_diagnostics(const std::string& path);
  /// `textDocument` and `position`: of the `^` in an excerpt of the text.
  json::Object at(const std::string& path, std::string excerpt);
  json::Object file(const std::string& path) const;
  const std::string& text(const std::string& path) { return texts_[path].text; }

  /// Closes the stream to the server; its exit code.
  int leave();

 private:
  struct Text {
    std::string text;
    std::int64_t version = 0;
  };
  json::Object read();
  void sort_in(json::Object message);

  Pipe to_, from_;
  std::ostream out_{&to_};
  std::istream server_in_{&to_}, in_{&from_};
  std::ostream server_out_{&from_};
  lsp::Server server_;
  int code_ = -1;
  std::thread thread_;
  std::int64_t ids_ = 0;
  std::map<std::string, Text> texts_;
  std::map<std::int64_t, json::Value> answers_;
  std::map<std::string, json::Object> published_;
  std::vector<std::string> order_;
  std::deque<json::Value> notifications_;
};

/// A value of JSON on one line.
std::string line(const json::Value& value);

}  // namespace piper::test
