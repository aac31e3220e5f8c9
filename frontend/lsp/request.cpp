#include "frontend/lsp/request.h"

namespace piper::lsp {

const sema::Program* Request::program() { return taken(document_->program(&cancellation_)); }

const ast::Module* Request::module() {
  const sema::Program* found = program();
  return found != nullptr ? &found->modules.front()->syntax : nullptr;
}

FileId Request::file() {
  if (document_->path().ends_with(".pir")) taken(document_->dag(&cancellation_));
  if (files().size() == 0) program();
  return files().size() > 0 && files().has_text(FileId::at(0)) ? FileId::at(0) : FileId();
}

std::string_view Request::text() {
  const FileId own = file();
  return own.valid() ? files().text(own) : std::string_view();
}

std::string_view Request::text(SourceRange range) {
  return files().text(range.file).substr(range.begin, range.end - range.begin);
}

std::uint32_t Request::offset(const json::Value* position) {
  const std::optional<LineColumn> at = position_of(position);
  if (!at)
    throw Refusal{ErrorCode::invalid_params,
                  "`position` is no position: it has `line` and `character`, from 0"};
  const FileId own = file();
  return own.valid() ? files().offset(own, *at, unit_) : 0;
}

SourceRange Request::range(const json::Value* value) {
  const json::Object* object = value != nullptr ? value->getAsObject() : nullptr;
  if (object == nullptr)
    throw Refusal{ErrorCode::invalid_params, "`range` is no range: it has `start` and `end`"};
  const std::uint32_t begin = offset(object->get("start"));
  return {file(), begin, std::max(begin, offset(object->get("end")))};
}

const std::vector<service::Use>& Request::uses() {
  static const std::vector<service::Use> none;
  const auto* found = taken(document_->uses(&cancellation_));
  return found != nullptr ? *found : none;
}

const std::vector<service::Symbol>& Request::symbols() {
  static const std::vector<service::Symbol> none;
  const auto* found = taken(document_->symbols(&cancellation_));
  return found != nullptr ? *found : none;
}

const std::vector<Request::View>& Request::views() {
  if (views_) return *views_;
  views_.emplace();
  const std::string own = service::normal_path(document_->path());
  for (const OpenFile& file : project_.open_files()) {
    if (service::normal_path(file.path) == own) continue;
    std::shared_ptr<service::Document> other = project_.document(Lane::answers, file.path);
    if (!other->may_read(own)) continue;
    const auto* found = taken(other->observations(own, &cancellation_));
    for (std::size_t i = 0; found != nullptr && i < other->files().size(); ++i) {
      const FileId id = FileId::at(i);
      if (!other->files().is_library(id) && service::normal_path(other->files().name(id)) == own)
        views_->push_back({other, found, id});
    }
  }
  return *views_;
}

const lower::Observations::Seen* Request::seen(SourceRange expr) {
  const auto* own = taken(document_->observations(&cancellation_));
  if (own == nullptr) return nullptr;
  if (const auto* found = own->of(expr)) return found;
  for (const View& view : views()) {
    if (const auto* found = view.observations->of({view.file, expr.begin, expr.end})) return found;
  }
  return nullptr;
}

std::string Request::value_of(SourceRange expr) {
  const lower::Observations::Seen* seen = this->seen(expr);
  if (seen == nullptr) return {};
  std::string list;
  for (const std::string& value : seen->values) list += (list.empty() ? "" : ", ") + value;
  return seen->more ? list + ", ..." : list;
}

std::span<const lower::Observations::Left> Request::left_behind(SourceRange loop) {
  const auto* all = taken(document_->observations(&cancellation_));
  return all != nullptr ? all->left_behind(loop) : std::span<const lower::Observations::Left>();
}

std::vector<std::int64_t> Request::bytes_of(SourceRange expr) {
  const lower::Observations::Seen* seen = this->seen(expr);
  return seen != nullptr ? seen->bytes : std::vector<std::int64_t>();
}

json::Object Request::json(SourceRange range) { return to_json(files(), range, unit_); }

std::optional<json::Object> Request::location(const SourceTable& files, SourceRange range) {
  if (!range.valid() || !files.has_text(range.file)) return std::nullopt;
  const std::string uri = project_.uri(files, range.file);
  if (uri.empty()) return std::nullopt;
  return json::Object{{"uri", lsp::text(uri)}, {"range", to_json(files, range, unit_)}};
}

}  // namespace piper::lsp
