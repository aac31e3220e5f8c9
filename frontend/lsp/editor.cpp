#include "frontend/lsp/editor.h"

namespace piper::lsp {

namespace {

const json::Object* group_of(const json::Object& params, std::string_view group) {
  const json::Object* capabilities = params.getObject("capabilities");
  return capabilities != nullptr ? capabilities->getObject(group) : nullptr;
}

}  // namespace

void Editor::connect(Transport& transport, const json::Object& initialize) {
  transport_ = &transport;
  const json::Object* workspace = group_of(initialize, "workspace");
  has_settings_ = workspace != nullptr && workspace->getBoolean("configuration").value_or(false);
  const json::Object* watched =
      workspace != nullptr ? workspace->getObject("didChangeWatchedFiles") : nullptr;
  watches_files_ = watched != nullptr && watched->getBoolean("dynamicRegistration").value_or(false);
  const json::Object* window = group_of(initialize, "window");
  const json::Object* documents = window != nullptr ? window->getObject("showDocument") : nullptr;
  shows_documents_ = documents != nullptr && documents->getBoolean("support").value_or(false);
}

void Editor::message(MessageKind kind, std::string_view words) {
  notify("window/showMessage",
         json::Object{{"type", static_cast<int>(kind)}, {"message", text(words)}});
}

void Editor::log(std::string_view words) {
  notify("window/logMessage",
         json::Object{{"type", static_cast<int>(MessageKind::log)}, {"message", text(words)}});
}

bool Editor::show(const std::string& uri, bool external) {
  if (!shows_documents_) return false;
  ask("show", "window/showDocument",
      json::Object{{"uri", text(uri)}, {"external", external}, {"takeFocus", true}});
  return true;
}

void Editor::ask_for_settings() {
  if (has_settings_)
    ask("settings", "workspace/configuration",
        json::Object{{"items", json::Array{json::Object{{"section", "piper"}}}}});
}

void Editor::watch_files() {
  if (!watches_files_) return;
  json::Object options{{"watchers", json::Array{json::Object{{"globPattern", "**/*.{pipe,pir}"}}}}};
  json::Object registration{{"id", "files"},
                            {"method", "workspace/didChangeWatchedFiles"},
                            {"registerOptions", std::move(options)}};
  ask("watch", "client/registerCapability",
      json::Object{{"registrations", json::Array{std::move(registration)}}});
}

void Editor::notify(std::string_view method, json::Object params) {
  transport_->write(
      json::Object{{"jsonrpc", "2.0"}, {"method", text(method)}, {"params", std::move(params)}});
}

void Editor::ask(std::string_view topic, std::string_view method, json::Object params) {
  const std::string id = std::string(topic) + "-" + std::to_string(++asked_);
  transport_->write(json::Object{
      {"jsonrpc", "2.0"}, {"id", id}, {"method", text(method)}, {"params", std::move(params)}});
}

}  // namespace piper::lsp
