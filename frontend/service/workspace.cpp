#include "frontend/service/workspace.h"

#include <algorithm>

namespace piper::service {

std::string apply_edits(std::string text, std::span<const TextEdit> edits, ColumnUnit unit) {
  for (const TextEdit& edit : edits) {
    SourceTable table;
    const FileId file = table.add("", std::move(text));
    const std::uint32_t begin = table.offset(file, edit.start, unit),
                        end = std::max(begin, table.offset(file, edit.end, unit));
    text = table.text(file);
    text.replace(begin, end - begin, edit.text);
  }
  return text;
}

std::string apply_fix(std::string_view text, FileId file, const Fix& fix) {
  std::vector<const Edit*> edits;
  for (const Edit& edit : fix.edits) {
    if (edit.range.file == file) edits.push_back(&edit);
  }
  // From the end, so that earlier places stay valid; two insertions at one place keep their order.
  std::stable_sort(edits.begin(), edits.end(),
                   [](const Edit* a, const Edit* b) { return a->range < b->range; });
  std::string fixed(text);
  for (auto edit = edits.rbegin(); edit != edits.rend(); ++edit) {
    fixed.replace((*edit)->range.begin, (*edit)->range.end - (*edit)->range.begin, (*edit)->text);
  }
  return fixed;
}

void Workspace::open(std::string_view path, std::string text) {
  const std::string normal = normal_path(path);
  texts_[normal] = std::make_shared<const std::string>(std::move(text));
  forget(normal);
}

bool Workspace::edit(std::string_view path, std::string text) {
  if (!is_open(path)) return false;
  open(path, std::move(text));
  return true;
}

bool Workspace::edit(std::string_view path, std::span<const TextEdit> edits, ColumnUnit unit) {
  const auto found = texts_.find(normal_path(path));
  if (found == texts_.end()) return false;
  return edit(path, apply_edits(*found->second, edits, unit));
}

bool Workspace::close(std::string_view path) {
  const std::string normal = normal_path(path);
  if (texts_.erase(normal) == 0) return false;
  forget(normal);
  return true;
}

void Workspace::choose(Choices choices) {
  choices_ = std::move(choices);
  documents_.clear();
}

void Workspace::forget(const std::string& normal) {
  std::erase_if(documents_, [&](const auto& entry) { return entry.second->may_read(normal); });
}

std::set<std::string> Workspace::changed_on_disk() const {
  std::set<std::string> changed;
  for (const auto& [path, document] : documents_) {
    if (document == nullptr) continue;
    const std::vector<std::string> files = document->changed_on_disk();
    changed.insert(files.begin(), files.end());
  }
  return changed;
}

std::shared_ptr<Document> Workspace::document(std::string_view path) {
  std::shared_ptr<Document>& document = documents_[std::string(path)];
  if (document == nullptr)
    document = std::make_shared<Document>(std::string(path), ++versions_, OpenFiles(disk_, texts_),
                                          choices_, clean_);
  return document;
}

}  // namespace piper::service
