#include "tests/lsp/client.h"

#include <gtest/gtest.h>

#include <chrono>

#include "frontend/lsp/protocol.h"

namespace piper::test {

void Pipe::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  arrived_.notify_all();
}

Pipe::int_type Pipe::overflow(int_type c) {
  const char byte = traits_type::to_char_type(c);
  xsputn(&byte, 1);
  return c;
}

std::streamsize Pipe::xsputn(const char* bytes, std::streamsize count) {
  const std::lock_guard lock(mutex_);
  waiting_.append(bytes, static_cast<std::size_t>(count));
  arrived_.notify_all();
  return count;
}

Pipe::int_type Pipe::underflow() {
  std::unique_lock lock(mutex_);
  // A missing answer is a failed test, not a hang.
  const bool came = arrived_.wait_for(lock, std::chrono::minutes(2),
                                      [&] { return closed_ || !waiting_.empty(); });
  if (!came) throw std::runtime_error("nothing came for two minutes");
  if (waiting_.empty()) return traits_type::eof();
  reading_ = std::exchange(waiting_, {});
  setg(reading_.data(), reading_.data(), reading_.data() + reading_.size());
  return traits_type::to_int_type(reading_[0]);
}

Client::Client(const source::FileSystem& disk, json::Object options, bool initialize,
               std::string cache_folder, std::string program)
    : server_({"test", std::move(cache_folder), std::move(program)}, disk), thread_([this] {
        code_ = server_.run(server_in_, server_out_);
        from_.close();
      }) {
  if (!initialize) return;
  if (options.get("capabilities") == nullptr) options["capabilities"] = json::Object();
  request("initialize", std::move(options));
  notify("initialized", {});
}

Client::~Client() {
  if (thread_.joinable()) leave();
}

int Client::leave() {
  to_.close();
  thread_.join();
  return code_;
}

void Client::send(const std::string& bytes) { out_ << bytes << std::flush; }

void Client::send(json::Object message) {
  message["jsonrpc"] = "2.0";
  const std::string body = line(std::move(message));
  send("Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body);
}

void Client::notify(std::string_view method, json::Object params) {
  send(json::Object{{"method", std::string(method)}, {"params", std::move(params)}});
}

std::int64_t Client::ask(std::string_view method, json::Object params) {
  send(
      json::Object{{"id", ++ids_}, {"method", std::string(method)}, {"params", std::move(params)}});
  return ids_;
}

json::Value Client::request(std::string_view method, json::Object params) {
  return answer(ask(method, std::move(params)));
}

json::Value Client::answer(std::int64_t id) {
  while (!answers_.contains(id)) sort_in(read());
  json::Value found = std::move(answers_.at(id));
  answers_.erase(id);
  return found;
}

json::Value Client::next() {
  while (notifications_.empty()) sort_in(read());
  json::Value found = std::move(notifications_.front());
  notifications_.pop_front();
  return found;
}

json::Object Client::read() {
  std::string header;
  std::size_t length = 0;
  while (std::getline(in_, header) && header != "\r") {
    if (header.starts_with("Content-Length: ")) length = std::stoul(header.substr(16));
  }
  std::string body(length, '\0');
  in_.read(body.data(), static_cast<std::streamsize>(length));
  if (!in_) throw std::runtime_error("the server has ended");
  llvm::Expected<json::Value> value = json::parse(body);
  if (!value) throw std::runtime_error("no JSON: " + llvm::toString(value.takeError()));
  return *value->getAsObject();
}

void Client::sort_in(json::Object message) {
  const auto id = message.getInteger("id");
  if (message.getString("method") == "textDocument/publishDiagnostics") {
    const json::Object& params = *message.getObject("params");
    published_[params.getString("uri")->str()] = params;
    order_.push_back(params.getString("uri")->str());
  } else if (id && message.get("method") == nullptr) {
    answers_.emplace(
        *id, message.get("error") != nullptr ? *message.get("error") : *message.get("result"));
  } else {
    notifications_.emplace_back(std::move(message));
  }
}

void Client::open(const std::string& path, const std::string& text) {
  texts_[path] = {text, 1};
  notify("textDocument/didOpen",
         json::Object{{"textDocument", json::Object{{"uri", lsp::uri_of(path)},
                                                    {"version", 1},
                                                    {"languageId", "pipe"},
                                                    {"text", text}}}});
}

void Client::edit(const std::string& path, const std::string& from, const std::string& to) {
  const std::size_t begin = texts_[path].text.find(from);
  ASSERT_NE(begin, std::string::npos) << from;
  edit(path, begin, begin + from.size(), to);
}

void Client::edit(const std::string& path, std::size_t begin, std::size_t end,
                  const std::string& to) {
  Text& held = texts_[path];
  SourceTable table;
  const FileId file = table.add("", held.text);
  const SourceRange range{file, static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end)};
  held.text.replace(begin, end - begin, to);
  notify(
      "textDocument/didChange",
      json::Object{
          {"textDocument", json::Object{{"uri", lsp::uri_of(path)}, {"version", ++held.version}}},
          {"contentChanges",
           json::Array{json::Object{{"range", lsp::to_json(table, range, ColumnUnit::utf16)},
                                    {"text", to}}}}});
}

void Client::replace(const std::string& path, const std::string& text) {
  Text& held = texts_[path];
  held.text = text;
  notify("textDocument/didChange",
         json::Object{{"textDocument",
                       json::Object{{"uri", lsp::uri_of(path)}, {"version", ++held.version}}},
                      {"contentChanges", json::Array{json::Object{{"text", text}}}}});
}

json::Array Client::raw_diagnostics(const std::string& path) {
  const std::string uri = lsp::uri_of(path);
  // The answer to a later request does not imply the end of a check: the version counts.
  for (;;) {
    const auto found = published_.find(uri);
    if (found != published_.end() && found->second.getInteger("version") == texts_[path].version) {
      const json::Array list = *found->second.getArray("diagnostics");
      return list;
    }
    sort_in(read());
  }
}

void Client::wait_for(const std::string& path, const std::string& words) {
  while (line(json::Object(published_[lsp::uri_of(path)])).find(words) == std::string::npos)
    sort_in(read());
}

std::string Client::diagnostics(const std::string& path) {
  std::string text;
  for (const json::Value& each : raw_diagnostics(path)) {
    const json::Object& diagnostic = *each.getAsObject();
    const json::Object& start = *diagnostic.getObject("range")->getObject("start");
    text += std::to_string(*start.getInteger("line") + 1) + ":" +
            std::to_string(*start.getInteger("character") + 1) + " " +
            diagnostic.getString("code")->str() + " " + diagnostic.getString("message")->str() +
            "\n";
  }
  return text;
}

json::Object Client::file(const std::string& path) const {
  return json::Object{{"textDocument", json::Object{{"uri", lsp::uri_of(path)}}}};
}

json::Object Client::at(const std::string& path, std::string excerpt) {
  const std::size_t mark = excerpt.find('^');
  excerpt.erase(mark, 1);
  const std::string& text = texts_[path].text;
  const std::size_t found = text.find(excerpt);
  EXPECT_NE(found, std::string::npos) << excerpt;
  SourceTable table;
  const FileId file = table.add("", text);
  json::Object params = this->file(path);
  params["position"] = lsp::to_json(
      table.line_column(file, static_cast<std::uint32_t>(found + mark), ColumnUnit::utf16));
  return params;
}

std::string line(const json::Value& value) {
  std::string text;
  llvm::raw_string_ostream(text) << value;
  return text;
}

}  // namespace piper::test
