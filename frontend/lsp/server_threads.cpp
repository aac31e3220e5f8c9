// The threads that answer requests and check files.

#include <algorithm>
#include <iterator>
#include <utility>

#include "frontend/lsp/diagnostics.h"
#include "frontend/lsp/server.h"

namespace piper::lsp {

namespace {

/// The paths of the files that a document read, without its own file and the library.
std::set<std::string> used_files(const SourceTable& files) {
  std::set<std::string> paths;
  for (std::size_t i = 1; i < files.size(); ++i) {
    if (!files.is_library(FileId::at(i)))
      paths.insert(service::normal_path(files.name(FileId::at(i))));
  }
  return paths;
}

}  // namespace

bool Server::all_answered() const {
  return queues_[0].empty() && queues_[1].empty() && running_[0] == nullptr &&
         running_[1] == nullptr;
}

std::shared_ptr<Server::Job> Server::take(Lane lane) {
  const auto at = static_cast<std::size_t>(lane);
  running_[at].reset();
  if (queues_[at].empty()) return nullptr;
  running_[at] = std::move(queues_[at].front());
  queues_[at].pop_front();
  if (stopping_) running_[at]->cancellation.request();
  return running_[at];
}

void Server::answer_requests() {
  for (;;) {
    std::shared_ptr<Job> job;
    {
      std::unique_lock lock(mutex_);
      while ((job = take(Lane::answers)) == nullptr) {
        if (stopping_) return;
        idle_.notify_all();
        work_.wait(lock);
      }
    }
    answer(*job);
  }
}

void Server::answer(Job& job) {
  const auto dropped = [&] {
    if (job.modified) {
      refuse(job.id, ErrorCode::content_modified, "the text was edited");
      return true;
    }
    if (job.cancellation.requested()) {
      refuse(job.id, ErrorCode::request_cancelled, "the request was cancelled");
      return true;
    }
    return false;
  };
  if (dropped()) return;
  try {
    Request request(project_, editor_, trains_, job.document, job.params, unit_, job.cancellation);
    json::Value result = job.method.answer(request);
    if (!dropped()) respond(job.id, std::move(result));
  } catch (const Cancelled&) {
    if (!dropped()) refuse(job.id, ErrorCode::request_cancelled, "the request was cancelled");
  } catch (const Refusal& refusal) {
    if (!dropped()) refuse(job.id, refusal.code, refusal.message);
  } catch (const std::bad_alloc&) {
    refuse(job.id, ErrorCode::request_failed, "the machine has no memory left for this request");
  } catch (const std::exception&) {
    // A mistake of the server costs an answer, not the session.
    refuse(job.id, ErrorCode::internal_error,
           "the server made a mistake here; please report it with the text");
  }
}

std::optional<OpenFile> Server::next_unchecked() {
  check_cancellation_.reset();
  checked_document_.reset();
  while (!unchecked_.empty()) {
    // Edited files come first.
    auto next = unchecked_.begin();
    for (auto path = recent_.rbegin(); path != recent_.rend(); ++path) {
      if (const auto found = unchecked_.find(*path); found != unchecked_.end()) {
        next = found;
        break;
      }
    }
    const std::string path = *next;
    unchecked_.erase(next);
    std::optional<OpenFile> file = project_.find(path);
    if (!file) continue;  // closed meanwhile
    checked_document_ = project_.document(Lane::checks, path);
    check_cancellation_ = std::make_shared<Cancellation>();
    return file;
  }
  return std::nullopt;
}

void Server::check_files() {
  for (;;) {
    std::optional<OpenFile> file;
    std::shared_ptr<Job> job;
    {
      std::unique_lock lock(mutex_);
      for (;;) {
        if (!stopping_ && (file = next_unchecked())) break;
        if ((job = take(Lane::checks)) != nullptr) break;
        if (stopping_) return;
        idle_.notify_all();
        work_.wait(lock);
      }
    }
    try {
      if (file) check(*file);
    } catch (const std::exception&) {
      editor_.message(MessageKind::error, "the server made a mistake where it checked `" +
                                              file->path + "`; please report it with the text");
    }
    if (job != nullptr) answer(*job);
  }
}

void Server::check(const OpenFile& file) {
  const std::shared_ptr<service::Document> document = checked_document_;
  const std::shared_ptr<Cancellation> cancellation = check_cancellation_;
  const auto show = [&](const std::vector<Diagnostic>& diagnostics) {
    if (!project_.is_newest(Lane::checks, *document)) return;
    std::vector<Found> found;
    for (const Diagnostic& diagnostic : diagnostics) {
      if (diagnostic.range.valid() && diagnostic.range.file.index() == 0)
        found.push_back({diagnostic.range.begin, diagnostic.range.end, diagnostic.code});
    }
    project_.set_found(file.path, std::move(found));
    publish(file, to_json(diagnostics, project_, document->files(), file, unit_),
            used_files(document->files()));
  };
  // Errors of names and types are found at once; a plan may take long.
  if (!file.path.ends_with(".pir")) {
    const service::Answer<sema::Program> program = document->program(cancellation.get());
    const bool wrong =
        std::any_of(program.diagnostics.begin(), program.diagnostics.end(),
                    [](const Diagnostic& each) { return each.severity == Severity::error; });
    if (program.status == service::Status::done && wrong) show(program.diagnostics);
  }
  const service::Answer<std::vector<service::CheckedSchedule>> checked =
      document->check(cancellation.get());
  if (checked.status != service::Status::cancelled) show(checked.diagnostics);
}

json::Array Server::shown_at(const std::string& uri) const {
  const std::string path = service::normal_path(path_of(uri));
  // A file that an open file uses is compiled there.
  const bool used = std::any_of(uses_.begin(), uses_.end(),
                                [&](const auto& origin) { return origin.second.contains(path); });
  json::Array all;
  for (const auto& [origin, by_uri] : published_) {
    const auto here = by_uri.find(uri);
    if (here == by_uri.end()) continue;
    for (const json::Value& diagnostic : here->second) {
      if (used && diagnostic.getAsObject()->getString("code") ==
                      llvm::StringRef(code_text(Code::nothing_to_compile)))
        continue;
      if (std::find(all.begin(), all.end(), diagnostic) == all.end()) all.push_back(diagnostic);
    }
  }
  return all;
}

void Server::publish(const OpenFile& origin, std::map<std::string, json::Array> found,
                     std::set<std::string> uses) {
  const std::lock_guard lock(mutex_);
  const bool open = project_.find(origin.path).has_value();
  if (!open) found.clear();  // closed meanwhile
  if (!open) uses.clear();
  const std::map<std::string, json::Array> before =
      std::exchange(published_[origin.path], std::move(found));
  const std::map<std::string, json::Array>& now = published_[origin.path];
  std::set<std::string> concerned = {origin.uri};
  for (const auto& [uri, list] : now) {
    const auto known = before.find(uri);
    if (known == before.end() || known->second != list) concerned.insert(uri);
  }
  for (const auto& [uri, list] : before) {
    if (!now.contains(uri)) concerned.insert(uri);
  }
  std::set<std::string>& used = uses_[origin.path];
  std::vector<std::string> changed;
  std::set_symmetric_difference(used.begin(), used.end(), uses.begin(), uses.end(),
                                std::back_inserter(changed));
  for (const std::string& path : changed) {
    if (const auto file = project_.find(path)) concerned.insert(file->uri);
  }
  used = std::move(uses);
  if (!open) {
    published_.erase(origin.path);
    uses_.erase(origin.path);
  }
  for (const std::string& uri : concerned) {
    json::Object params{{"uri", text(uri)}, {"diagnostics", shown_at(uri)}};
    const auto shown = uri == origin.uri ? std::optional(origin) : project_.find(path_of(uri));
    if (open && shown) params["version"] = shown->version;
    transport_->write(json::Object{{"jsonrpc", "2.0"},
                                   {"method", "textDocument/publishDiagnostics"},
                                   {"params", std::move(params)}});
  }
}

}  // namespace piper::lsp
