#pragma once
// The context of a request about a file: one version of the file, a place in it, and conversions to
// the client's terms.
//
//   json::Value hover(Request& request) {
//     const std::uint32_t at = request.offset();
//     ... return json::Object{{"contents", markdown(text)}, {"range", request.json(range)}};
//   }
//
// A request that is no longer wanted throws piper::Cancelled; one without an answer, but with a
// reason, throws Refusal.

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "frontend/lsp/editor.h"
#include "frontend/lsp/project.h"
#include "frontend/lsp/protocol.h"
#include "frontend/lsp/trains.h"

namespace piper::lsp {

class Request {
 public:
  Request(Project& project, Editor& editor, Trains& trains,
          std::shared_ptr<service::Document> document, const json::Object& params, ColumnUnit unit,
          const Cancellation& cancellation)
      : project_(project),
        editor_(editor),
        trains_(trains),
        document_(std::move(document)),
        params_(params),
        unit_(unit),
        cancellation_(cancellation) {}

  Project& project() { return project_; }
  Editor& editor() { return editor_; }
  Trains& trains() { return trains_; }
  service::Document& document() { return *document_; }
  /// The same about another file.
  Request about(std::shared_ptr<service::Document> document) {
    return {project_, editor_, trains_, std::move(document), params_, unit_, cancellation_};
  }
  const json::Object& params() const { return params_; }
  ColumnUnit unit() const { return unit_; }
  const Cancellation& cancellation() const { return cancellation_; }

  /// Names, types and the syntax tree; null for a file that cannot be read, and for a `.pir` file.
  const sema::Program* program();
  const ast::Module* module();
  /// The text and the id of the document's own file; empty and invalid if it cannot be read.
  FileId file();
  std::string_view text();
  std::string_view text(SourceRange range);
  /// The byte of `params.position`, or of another position; Refusal if it is none.
  std::uint32_t offset() { return offset(params_.get("position")); }
  std::uint32_t offset(const json::Value* position);
  SourceRange range(const json::Value* range);

  const std::vector<service::Use>& uses();
  const std::vector<service::Symbol>& symbols();
  /// The values of an expression at the sizes of a check, such as `0, 1, 2, ...`; empty if unknown.
  std::string value_of(SourceRange expr);
  /// The elements that a loop over steps leaves to the cursors that it moves.
  std::span<const lower::Observations::Left> left_behind(SourceRange loop);
  /// The size of each tensor value of the expression.
  std::vector<std::int64_t> bytes_of(SourceRange expr);
  /// The values of an expression; if the document gives none, those of the first open file that
  /// uses it and does. Null if unknown.
  const lower::Observations::Seen* seen(SourceRange expr);

  json::Object json(SourceRange range);
  /// `{"uri":..,"range":..}`; nothing for a place that no editor can show.
  std::optional<json::Object> location(const SourceTable& files, SourceRange range);
  const SourceTable& files() { return document_->files(); }

 private:
  template <typename T>
  const T* taken(const service::Answer<T>& answer) {
    if (answer.status == service::Status::cancelled) throw Cancelled();
    if (answer.status == service::Status::out_of_memory)
      throw Refusal{ErrorCode::request_failed, "the machine has no memory left for this request"};
    return answer.value.get();  // owned by the document
  }

  /// This file as used by another one.
  struct View {
    std::shared_ptr<service::Document> document;
    const lower::Observations* observations;
    FileId file;  // this one, in the other's table
  };
  const std::vector<View>& views();

  Project& project_;
  Editor& editor_;
  Trains& trains_;
  std::shared_ptr<service::Document> document_;
  std::optional<std::vector<View>> views_;  // set on first use
  const json::Object& params_;
  const ColumnUnit unit_;
  const Cancellation& cancellation_;
};

/// `a` holds the offset, or ends there.
inline bool touches(SourceRange a, std::uint32_t offset) {
  return a.begin <= offset && offset <= a.end;
}

}  // namespace piper::lsp
