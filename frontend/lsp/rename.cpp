// A new name for a local or a declaration, in all files of the project; refused where the program would mean something else.

#include <algorithm>
#include <map>

#include "frontend/ast/walk.h"
#include "frontend/lsp/methods.h"
#include "frontend/lsp/names.h"
#include "frontend/parse/lexemes.h"

namespace piper::lsp {

namespace {

bool is_name(std::string_view text) {
  const std::vector<parse::Lexeme> found = parse::lexemes(text);
  return found.size() == 1 && found[0].kind == parse::LexemeKind::name && found[0].begin == 0 && found[0].end == text.size();
}

bool is_dimension(const ast::Module& module, SourceRange declaration) {
  bool found = false;
  ast::NameVisitor visitor;
  visitor.dims = [&](const ast::Dim& dim) { found = found || dim.name.range == declaration; };
  for (const ast::Item* item : module.items) ast::walk_names(*item, visitor);
  return found;
}

Name renamed_name(Request& request) {
  const std::optional<Name> name = name_at(request, request.offset());
  if (!name) throw Refusal{ErrorCode::request_failed, "here stands no name that can be changed"};
  if (request.files().is_library(name->declaration.file)) throw Refusal{ErrorCode::request_failed, "the standard library declares this name"};
  if (is_dimension(*request.module(), name->declaration)) {
    throw Refusal{ErrorCode::request_failed, "dimensions are known by their names: data, directives and other models speak of the same one"};
  }
  return *name;
}

/// The ranges of one file, each replaced by a text of another length.
class Moved {
 public:
  Moved(std::vector<SourceRange> ranges, std::size_t length) : ranges_(std::move(ranges)), length_(length) {}

  SourceRange operator()(SourceRange range) const {
    return {range.file, offset(range.begin, false), offset(range.end, true)};
  }
  std::string apply(std::string_view text, std::string_view name) const {
    std::string result(text);
    for (auto range = ranges_.rbegin(); range != ranges_.rend(); ++range) result.replace(range->begin, range->end - range->begin, name);
    return result;
  }

 private:
  std::uint32_t offset(std::uint32_t at, bool is_end) const {
    std::int64_t moved = at;
    for (const SourceRange& range : ranges_) {
      if (range.end < at || (is_end && range.end == at)) moved += static_cast<std::int64_t>(length_) - (range.end - range.begin);
    }
    return static_cast<std::uint32_t>(moved);
  }

  std::vector<SourceRange> ranges_;  // ascending
  std::size_t length_;
};

/// What the analysis says of a file, as far as a name may change it: codes of errors, and which name uses which declaration.
struct Meaning {
  std::vector<Code> errors;
  std::vector<std::pair<std::uint32_t, std::pair<std::string, std::uint32_t>>> uses;
  friend bool operator==(const Meaning&, const Meaning&) = default;
};

template <typename Move>
Meaning meaning_of(service::Document& document, const Cancellation& cancellation, const Move& move) {
  Meaning meaning;
  const auto program = document.program(&cancellation);
  const auto uses = document.uses(&cancellation);
  if (program.status == service::Status::cancelled || uses.status == service::Status::cancelled) throw Cancelled();
  for (const Diagnostic& diagnostic : program.diagnostics) meaning.errors.push_back(diagnostic.code);
  std::sort(meaning.errors.begin(), meaning.errors.end());
  if (uses.value == nullptr) return meaning;
  const SourceTable& files = document.files();
  for (const service::Use& use : *uses.value) {
    meaning.uses.push_back({move(files, use.range), {std::string(files.name(use.declaration.file)), move(files, use.declaration)}});
  }
  return meaning;
}

}  // namespace

json::Value prepare_rename(Request& request) {
  const Name name = renamed_name(request);
  return json::Object{{"range", request.json(name.range)}, {"placeholder", text(request.text(name.range))}};
}

json::Value rename(Request& request) {
  const Name name = renamed_name(request);
  const std::string wanted = request.params().getString("newName").value_or("").str();
  if (!is_name(wanted)) throw Refusal{ErrorCode::request_failed, "`" + wanted + "` is no name: it has letters, digits and `_`, and is no reserved word"};
  const std::string before(request.text(name.range));
  struct File {
    std::shared_ptr<service::Document> document;
    std::vector<SourceRange> ranges;
  };
  std::map<std::string, File> files;  // by path
  for (const Occurrence& each : occurrences(request, name)) {
    // A `use` names a file; what else is written differently is none of ours.
    const std::string_view written = each.document->files().text(each.range.file).substr(each.range.begin, each.range.end - each.range.begin);
    if (written != before) continue;
    File& file = files[service::normal_path(each.document->path())];
    file.document = each.document;
    file.ranges.push_back(each.range);
  }
  std::map<std::string, Moved> moves;
  std::map<std::string, std::string> texts;
  for (auto& [path, file] : files) {
    std::sort(file.ranges.begin(), file.ranges.end());
    file.ranges.erase(std::unique(file.ranges.begin(), file.ranges.end()), file.ranges.end());
    const Moved& moved = moves.emplace(path, Moved(file.ranges, wanted.size())).first->second;
    texts[path] = moved.apply(file.document->files().text(FileId::at(0)), wanted);
  }
  const auto moved = [&](const SourceTable& table, SourceRange range) {
    const auto found = moves.find(service::normal_path(table.name(range.file)));
    return found != moves.end() && !table.is_library(range.file) ? found->second(range).begin : range.begin;
  };
  const auto same = [](const SourceTable&, SourceRange range) { return range.begin; };
  const std::unique_ptr<service::Workspace> trial = request.project().with_texts(texts);
  for (const auto& [path, file] : files) {
    if (meaning_of(*file.document, request.cancellation(), moved) == meaning_of(*trial->document(path), request.cancellation(), same)) continue;
    throw Refusal{ErrorCode::request_failed, "with `" + wanted + "` in place of `" + before + "` the program would mean something else: that name is taken where this one is used"};
  }
  json::Object changes;
  for (const auto& [path, file] : files) {
    json::Array edits;
    const SourceTable& table = file.document->files();
    for (const SourceRange range : file.ranges) edits.push_back(json::Object{{"range", to_json(table, range, request.unit())}, {"newText", text(wanted)}});
    changes[request.project().uri(table, FileId::at(0))] = std::move(edits);
  }
  return json::Object{{"changes", std::move(changes)}};
}

}  // namespace piper::lsp
