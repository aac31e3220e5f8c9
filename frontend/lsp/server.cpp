// The thread that reads: the protocol itself, texts, cancelling.

#include "frontend/lsp/server.h"

#include <algorithm>
#include <chrono>

namespace piper::lsp {

namespace {

/// The unit of the first encoding of the client's list that we know; without a list UTF-16.
ColumnUnit unit_of(const json::Object& params) {
  const json::Object* capabilities = params.getObject("capabilities");
  const json::Object* general =
      capabilities != nullptr ? capabilities->getObject("general") : nullptr;
  const json::Array* encodings =
      general != nullptr ? general->getArray("positionEncodings") : nullptr;
  if (encodings == nullptr) return ColumnUnit::utf16;
  for (const json::Value& encoding : *encodings) {
    const auto name = encoding.getAsString();
    if (name == "utf-8") return ColumnUnit::byte;
    if (name == "utf-16") return ColumnUnit::utf16;
    if (name == "utf-32") return ColumnUnit::code_point;
  }
  return ColumnUnit::utf16;
}

std::vector<std::string> folders_of(const json::Object& params) {
  std::vector<std::string> folders;
  if (const json::Array* list = params.getArray("workspaceFolders")) {
    for (const json::Value& folder : *list) {
      const json::Object* object = folder.getAsObject();
      if (const auto uri = object != nullptr ? object->getString("uri") : std::nullopt)
        folders.push_back(path_of(*uri));
    }
  }
  if (const auto root = params.getString("rootUri"); root && folders.empty())
    folders.push_back(path_of(*root));
  return folders;
}

/// `{"uri":..}` of `textDocument`; empty where there is none.
std::string document_uri(const json::Object& params) {
  const json::Object* document = params.getObject("textDocument");
  const auto uri = document != nullptr ? document->getString("uri") : std::nullopt;
  return uri ? uri->str() : std::string();
}

/// The first argument of a command.
const json::Object* first_argument(const json::Object& params) {
  const json::Array* arguments = params.getArray("arguments");
  return arguments != nullptr && !arguments->empty() ? (*arguments)[0].getAsObject() : nullptr;
}

/// The file that a request is about: its document, that of the completion item or the call
/// hierarchy item, or the first argument of a command.
std::string uri_of_request(const json::Object& params) {
  if (std::string uri = document_uri(params); !uri.empty()) return uri;
  const json::Object* data = params.getObject("data");
  if (const auto uri = data != nullptr ? data->getString("uri") : std::nullopt) return uri->str();
  const json::Object* item = params.getObject("item");
  if (const auto uri = item != nullptr ? item->getString("uri") : std::nullopt) return uri->str();
  const json::Object* first = first_argument(params);
  const auto uri = first != nullptr ? first->getString("uri") : std::nullopt;
  return uri ? uri->str() : std::string();
}

constexpr const char* kNoFile =
    "the request names no file: `textDocument`, or the first argument of a command, has an `uri`";

/// The key of the train of a command: the same for start and stop.
std::string train_of(const json::Object& params) {
  const json::Object* argument = first_argument(params);
  return Trains::key(path_of(uri_of_request(params)),
                     argument != nullptr ? argument->getString("name").value_or("").str() : "");
}

std::int64_t version_of(const json::Object& params) {
  const json::Object* document = params.getObject("textDocument");
  return document != nullptr ? document->getInteger("version").value_or(0) : 0;
}

json::Object object_of(const json::Value* value) {
  const json::Object* object = value != nullptr ? value->getAsObject() : nullptr;
  return object != nullptr ? *object : json::Object();
}

}  // namespace

Server::Server(ServerOptions options, const source::FileSystem& disk)
    : options_(std::move(options)),
      project_(disk, options_.cache_folder),
      trains_(options_.program) {}

Server::~Server() { stop(); }

int Server::run(std::istream& in, std::ostream& out) {
  Transport transport(in, out);
  transport_ = &transport;
  answering_ = std::thread([this] { answer_requests(); });
  checking_thread_ = std::thread([this] { check_files(); });
  while (std::optional<Incoming> message = transport.read()) {
    const json::Object* object = message->value ? message->value->getAsObject() : nullptr;
    if (!message->value) {
      refuse(nullptr, ErrorCode::parse_error, message->fault);
    } else if (object == nullptr) {
      refuse(nullptr, ErrorCode::invalid_request, "a message is one JSON object");
    } else if (!handle(*object)) {
      break;
    }
  }
  stop();
  return phase_ == Phase::shut_down ? 0 : 1;
}

void Server::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const std::shared_ptr<Job>& job : running_) {
      if (job != nullptr) job->cancellation.request();
    }
    if (check_cancellation_ != nullptr) check_cancellation_->request();
  }
  work_.notify_all();
  if (answering_.joinable()) answering_.join();
  if (checking_thread_.joinable()) checking_thread_.join();
  trains_.end_all();
}

bool Server::handle(const json::Object& message) {
  const json::Value* id = message.get("id");
  const auto method = message.getString("method");
  if (!method) {
    // An answer to a request of the server: it asks only for settings.
    if (id == nullptr) {
      refuse(nullptr, ErrorCode::invalid_request,
             "a message has a `method`, or it is an answer and has an `id`");
    } else if (const json::Array* results = message.getArray("result");
               results != nullptr && !results->empty()) {
      take_settings(&results->front());
    }
    return true;
  }
  if (id == nullptr) {
    if (*method == "exit") return false;
    notify(*method, object_of(message.get("params")));
    return true;
  }
  if (id->kind() != json::Value::Number && id->kind() != json::Value::String) {
    refuse(nullptr, ErrorCode::invalid_request, "the `id` of a request is a number or a text");
    return true;
  }
  request(*id, *method, object_of(message.get("params")));
  return true;
}

void Server::request(const json::Value& id, llvm::StringRef method, json::Object params) {
  if (phase_ == Phase::shut_down)
    return refuse(id, ErrorCode::invalid_request, "the server was shut down");
  if (method == "initialize") return initialize(id, params);
  if (phase_ == Phase::fresh)
    return refuse(id, ErrorCode::server_not_initialized, "the first request is `initialize`");
  if (method == "shutdown") {
    phase_ = Phase::shut_down;
    std::unique_lock lock(mutex_);
    // Earlier requests are answered, unless they take long.
    if (!idle_.wait_for(lock, std::chrono::seconds(2), [&] { return all_answered(); })) {
      for (const Lane lane : {Lane::answers, Lane::checks}) {
        for (const std::shared_ptr<Job>& job : queues_[static_cast<std::size_t>(lane)])
          job->cancellation.request();
        if (const auto& job = running_[static_cast<std::size_t>(lane)]) job->cancellation.request();
      }
      if (check_cancellation_ != nullptr) check_cancellation_->request();
      idle_.wait(lock, [&] { return all_answered(); });
    }
    return respond(id, nullptr);
  }
  if (method == "workspace/executeCommand" &&
      params.getString("command") == llvm::StringRef(kStopCommand))
    return stop_train(id, params);
  for (const Method& known : methods()) {
    if (method == llvm::StringRef(known.name)) return enqueue(id, known, std::move(params));
  }
  refuse(id, ErrorCode::method_not_found, "`" + method.str() + "` is no method of this server");
}

void Server::initialize(const json::Value& id, const json::Object& params) {
  if (phase_ != Phase::fresh)
    return refuse(id, ErrorCode::invalid_request, "`initialize` is sent once");
  phase_ = Phase::serving;
  unit_ = unit_of(params);
  editor_.connect(*transport_, params);
  project_.set_folders(folders_of(params));
  take_settings(params.get("initializationOptions"));
  respond(id, json::Object{{"capabilities", capabilities(unit_)},
                           {"serverInfo",
                            json::Object{{"name", "piper"}, {"version", text(options_.version)}}}});
}

void Server::notify(llvm::StringRef method, const json::Object& params) {
  if (phase_ != Phase::serving) return;
  if (method == "initialized") {
    editor_.ask_for_settings();
    return editor_.watch_files();
  }
  if (method == "$/cancelRequest") return cancel(params.get("id"));
  if (method == "textDocument/didOpen") return did_open(params);
  if (method == "textDocument/didChange") return did_change(params);
  if (method == "textDocument/didClose") return did_close(params);
  if (method == "textDocument/didSave") {
    // Not every client watches files, and other files may have been saved at the same time.
    for (const std::string& path : project_.changed_on_disk()) changed_on_disk(path);
    return;
  }
  if (method == "workspace/didChangeConfiguration") {
    const json::Object* settings = params.getObject("settings");
    const json::Value* ours = settings != nullptr ? settings->get("piper") : nullptr;
    if (ours == nullptr) return editor_.ask_for_settings();
    return take_settings(ours);
  }
  if (method == "workspace/didChangeWatchedFiles") {
    const json::Array* changes = params.getArray("changes");
    if (changes == nullptr) return;
    for (const json::Value& change : *changes) {
      const json::Object* object = change.getAsObject();
      const auto uri = object != nullptr ? object->getString("uri") : std::nullopt;
      if (uri) changed_on_disk(path_of(*uri));
    }
  }
}

void Server::changed_on_disk(const std::string& path) {
  project_.changed_on_disk(path);
  changed(path);
}

void Server::take_settings(const json::Value* settings) {
  const json::Object* object = settings != nullptr ? settings->getAsObject() : nullptr;
  if (object == nullptr) return;
  const json::Object* values = object->getObject("values");
  const auto train = object->getString("train");
  if (values == nullptr && !train) return;
  service::Choices choices;
  if (train) choices.train = train->str();
  for (const auto& [name, value] : values != nullptr ? *values : json::Object()) {
    std::string written;
    if (const auto string = value.getAsString()) {
      written = string->str();
    } else {
      llvm::raw_string_ostream(written) << value;
    }
    choices.values.push_back({name.str(), written});
  }
  std::sort(choices.values.begin(), choices.values.end(),
            [](const lower::Override& a, const lower::Override& b) { return a.name < b.name; });
  if (!project_.choose(std::move(choices))) return;
  for (const OpenFile& file : project_.open_files()) changed(file.path);
}

void Server::did_open(const json::Object& params) {
  const json::Object* document = params.getObject("textDocument");
  const std::string uri = document_uri(params);
  const auto content = document != nullptr ? document->getString("text") : std::nullopt;
  if (uri.empty() || !content) return;
  project_.open(uri, version_of(params), content->str());
  changed(path_of(uri));
}

void Server::did_change(const json::Object& params) {
  const std::string uri = document_uri(params);
  const json::Array* changes = params.getArray("contentChanges");
  if (uri.empty() || changes == nullptr) return;
  const std::int64_t version = version_of(params);
  std::vector<service::TextEdit> edits;  // not applied yet
  const auto apply = [&] {
    if (!edits.empty()) project_.edit(uri, version, edits, unit_);
    edits.clear();
  };
  for (const json::Value& change : *changes) {
    const json::Object* object = change.getAsObject();
    const auto content = object != nullptr ? object->getString("text") : std::nullopt;
    if (!content) continue;
    const json::Object* range = object->getObject("range");
    if (range == nullptr) {
      edits.clear();  // of a text that is gone
      project_.edit(uri, version, content->str());
      continue;
    }
    const auto start = position_of(range->get("start")), end = position_of(range->get("end"));
    if (start && end) edits.push_back({*start, *end, content->str()});
  }
  apply();
  changed(path_of(uri));
}

void Server::did_close(const json::Object& params) {
  const std::string uri = document_uri(params);
  if (uri.empty() || !project_.close(uri)) return;
  const std::string path = path_of(uri);
  {
    const std::lock_guard lock(mutex_);
    unchecked_.erase(path);
    std::erase(recent_, path);
  }
  changed(path);
  publish({path, uri, 0}, {}, {});
}

void Server::changed(const std::string& path) {
  {
    const std::lock_guard lock(mutex_);
    const auto concerns = [&](const std::shared_ptr<Job>& job) {
      return job != nullptr && job->document != nullptr && job->document->may_read(path);
    };
    for (const auto& queue : queues_) {
      for (const std::shared_ptr<Job>& job : queue) job->modified = job->modified || concerns(job);
    }
    for (const std::shared_ptr<Job>& job : running_) {
      if (!concerns(job)) continue;
      job->modified = true;
      job->cancellation.request();
    }
    if (check_cancellation_ != nullptr && checked_document_ != nullptr &&
        checked_document_->may_read(path))
      check_cancellation_->request();
    for (const OpenFile& file : project_.open_files()) unchecked_.insert(file.path);
    std::erase(recent_, path);
    recent_.push_back(path);
  }
  work_.notify_all();
}

void Server::enqueue(const json::Value& id, const Method& method, json::Object params) {
  auto job = std::make_shared<Job>(id, method, std::move(params));
  const Lane lane = method.plans ? Lane::checks : Lane::answers;
  if (method.of_file) {
    const std::string uri = uri_of_request(job->params);
    if (uri.empty()) return refuse(id, ErrorCode::invalid_params, kNoFile);
    job->document = project_.document(lane, path_of(uri));
  }
  {
    const std::lock_guard lock(mutex_);
    queues_[static_cast<std::size_t>(lane)].push_back(std::move(job));
  }
  work_.notify_all();
}

void Server::cancel(const json::Value* id) {
  if (id == nullptr) return;
  const std::lock_guard lock(mutex_);
  for (const auto& queue : queues_) {
    for (const std::shared_ptr<Job>& job : queue) {
      if (job->id == *id) job->cancellation.request();
    }
  }
  for (const std::shared_ptr<Job>& job : running_) {
    if (job != nullptr && job->id == *id) job->cancellation.request();
  }
}

void Server::stop_train(const json::Value& id, const json::Object& params) {
  if (uri_of_request(params).empty()) return refuse(id, ErrorCode::invalid_params, kNoFile);
  const std::string train = train_of(params);
  bool stopped = false;
  {
    const std::lock_guard lock(mutex_);
    const auto stop = [&](const std::shared_ptr<Job>& job) {
      if (job == nullptr || job->params.getString("command") != llvm::StringRef(kTrainCommand) ||
          train_of(job->params) != train)
        return;
      job->cancellation.request();
      stopped = true;
    };
    for (const std::shared_ptr<Job>& job : queues_[static_cast<std::size_t>(Lane::checks)])
      stop(job);
    stop(running_[static_cast<std::size_t>(Lane::checks)]);
  }
  // One that began meanwhile has seen the cancellation, or runs by now.
  stopped = trains_.stop(train) || stopped;
  respond(id, json::Object{{"stopped", stopped}});
}

void Server::respond(const json::Value& id, json::Value result) {
  transport_->write(json::Object{{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}});
}

void Server::refuse(const json::Value& id, ErrorCode code, std::string_view message) {
  transport_->write(json::Object{
      {"jsonrpc", "2.0"},
      {"id", id},
      {"error", json::Object{{"code", static_cast<int>(code)}, {"message", text(message)}}}});
}

}  // namespace piper::lsp
