// A new name for a local or a declaration, in all files of the project; refused if the meaning of
// the program would change.

#include <algorithm>
#include <map>

#include "frontend/lsp/methods.h"
#include "frontend/lsp/names.h"
#include "frontend/lsp/rename_rules.h"
#include "frontend/parse/lexemes.h"

namespace piper::lsp {

namespace {

bool is_name(std::string_view text) {
  const std::vector<parse::Lexeme> found = parse::lexemes(text);
  return found.size() == 1 && found[0].kind == parse::LexemeKind::name && found[0].begin == 0 &&
         found[0].end == text.size();
}

Name renamed_name(Request& request) {
  const std::optional<Name> name = name_at(request, request.offset());
  if (!name) throw Refusal{ErrorCode::request_failed, "here stands no name that can be changed"};
  if (std::string why = why_fixed(request, *name); !why.empty())
    throw Refusal{ErrorCode::request_failed, std::move(why)};
  return *name;
}

/// The ranges of one file, each replaced by a text of another length.
class Moved {
 public:
  Moved(std::vector<SourceRange> ranges, std::size_t length)
      : ranges_(std::move(ranges)), length_(length) {}

  SourceRange operator()(SourceRange range) const {
    return {range.file, offset(range.begin, false), offset(range.end, true)};
  }
  std::string apply(std::string_view text, std::string_view name) const {
    std::string result(text);
    for (auto range = ranges_.rbegin(); range != ranges_.rend(); ++range)
      result.replace(range->begin, range->end - range->begin, name);
    return result;
  }

 private:
  std::uint32_t offset(std::uint32_t at, bool is_end) const {
    std::int64_t moved = at;
    for (const SourceRange& range : ranges_) {
      if (range.end < at || (is_end && range.end == at))
        moved += static_cast<std::int64_t>(length_) - (range.end - range.begin);
    }
    return static_cast<std::uint32_t>(moved);
  }

  std::vector<SourceRange> ranges_;  // ascending
  std::size_t length_;
};

/// The results of the analysis that a new name may change: errors, and the declaration of each used
/// name.
struct Meaning {
  struct Error {
    Code code{};
    std::string text;  // with its place
  };
  struct Use {
    std::uint32_t begin = 0;
    std::string file;  // of the declaration
    std::uint32_t declaration = 0;
    friend bool operator==(const Use&, const Use&) = default;
  };
  std::vector<Error> errors;
  std::vector<Use> uses;
};

std::string place_of(const SourceTable& files, FileId file, std::uint32_t begin) {
  return std::string(files.name(file)) + ":" + std::to_string(files.line_column(file, begin).line);
}

template <typename Move>
Meaning meaning_of(service::Document& document, const Cancellation& cancellation,
                   const Move& move) {
  Meaning meaning;
  const auto program = document.program(&cancellation);
  const auto uses = document.uses(&cancellation);
  if (program.status == service::Status::cancelled || uses.status == service::Status::cancelled)
    throw Cancelled();
  const SourceTable& files = document.files();
  for (const Diagnostic& diagnostic : program.diagnostics) {
    const SourceRange at = diagnostic.range;
    meaning.errors.push_back(
        {diagnostic.code,
         diagnostic.message +
             (at.valid() ? ", at " + place_of(files, at.file, at.begin) : std::string())});
  }
  if (uses.value == nullptr) return meaning;
  for (const service::Use& use : *uses.value) {
    meaning.uses.push_back({move(files, use.range), std::string(files.name(use.declaration.file)),
                            move(files, use.declaration)});
  }
  return meaning;
}

/// A difference in the meaning of a file of the trial; empty if there is none.
std::string difference(const Meaning& before, const Meaning& after, const SourceTable& files) {
  std::vector<Code> known;
  for (const Meaning::Error& error : before.errors) known.push_back(error.code);
  for (const Meaning::Error& error : after.errors) {
    const auto same = std::find(known.begin(), known.end(), error.code);
    if (same == known.end()) return "there would be an error: " + error.text;
    known.erase(same);
  }
  const auto [was, is] =
      std::mismatch(before.uses.begin(), before.uses.end(), after.uses.begin(), after.uses.end());
  if (was == before.uses.end() && is == after.uses.end())
    return known.empty() ? std::string() : "errors would be hidden";
  const std::uint32_t begin = is == after.uses.end()     ? was->begin
                              : was == before.uses.end() ? is->begin
                                                         : std::min(was->begin, is->begin);
  return "a name would mean something else, at " + place_of(files, FileId::at(0), begin);
}

/// An error or a changed meaning with these texts; empty if there is none.
std::string changed_meaning(Request& request, const Name& name,
                            const std::map<std::string, Moved>& moves,
                            const std::map<std::string, std::string>& texts) {
  const auto moved = [&](const SourceTable& table, SourceRange range) {
    const auto found = moves.find(service::normal_path(table.name(range.file)));
    return found != moves.end() && !table.is_library(range.file) ? found->second(range).begin
                                                                 : range.begin;
  };
  const auto same = [](const SourceTable&, SourceRange range) { return range.begin; };
  const std::unique_ptr<service::Workspace> trial = request.project().with_texts(texts);
  std::vector<std::string> paths = project_paths(request);
  // An error in the file of the declaration is more useful than its consequences.
  const std::string declared_in = service::normal_path(request.files().name(name.declaration.file));
  std::stable_partition(paths.begin(), paths.end(),
                        [&](const std::string& path) { return path == declared_in; });
  for (const std::string& path : paths) {
    const Meaning before =
        meaning_of(*request.project().document(Lane::answers, path), request.cancellation(), moved);
    const std::shared_ptr<service::Document> tried = trial->document(path);
    std::string changed =
        difference(before, meaning_of(*tried, request.cancellation(), same), tried->files());
    if (!changed.empty()) return changed;
  }
  return {};
}

}  // namespace

json::Value prepare_rename(Request& request) {
  const Name name = renamed_name(request);
  return json::Object{{"range", request.json(name.range)},
                      {"placeholder", text(request.text(name.range))}};
}

json::Value rename(Request& request) {
  const Name name = renamed_name(request);
  const std::string wanted = request.params().getString("newName").value_or("").str();
  if (!is_name(wanted))
    throw Refusal{
        ErrorCode::request_failed,
        "`" + wanted + "` is no name: it has letters, digits and `_`, and is no reserved word"};
  const std::string old_name(request.text(name.range));
  if (std::string why = why_not(request, name, wanted); wanted != old_name && !why.empty())
    throw Refusal{ErrorCode::request_failed, std::move(why)};
  struct File {
    std::shared_ptr<service::Document> document;
    std::vector<SourceRange> ranges;
  };
  std::map<std::string, File> files;  // by path
  for (const Occurrence& each : occurrences(request, name)) {
    // A `use` names a file; other spellings are not this name.
    const std::string_view written =
        each.document->files()
            .text(each.range.file)
            .substr(each.range.begin, each.range.end - each.range.begin);
    if (written != old_name) continue;
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
  if (const std::string changed = changed_meaning(request, name, moves, texts); !changed.empty()) {
    throw Refusal{ErrorCode::request_failed,
                  "with `" + wanted + "` in place of `" + old_name + "` " + changed};
  }
  json::Object changes;
  for (const auto& [path, file] : files) {
    json::Array edits;
    const SourceTable& table = file.document->files();
    for (const SourceRange range : file.ranges)
      edits.push_back(json::Object{{"range", to_json(table, range, request.unit())},
                                   {"newText", text(wanted)}});
    changes[request.project().uri(table, FileId::at(0))] = std::move(edits);
  }
  return json::Object{{"changes", std::move(changes)}};
}

}  // namespace piper::lsp
