#pragma once
// The values of the expressions of one file while it was lowered, as text, for an editor.
//
//   Observations seen(file);
//   lower_train(program, train, {}, context, sink, {}, nullptr, &seen);
//   seen.of(range)  ->  {"0", "1"}          // `r` in `rank r in pp`
//   seen.of(range)  ->  {"f32[batch: 8*, dim: 64]"}
//
// Guarantees: the first kShown different values of an expression in the order of evaluation, and
// whether there were more; bounded work however often a loop repeats.

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "frontend/ast/module.h"
#include "frontend/lower/evaluate/value.h"
#include "ir/directive/print.h"

namespace piper::lower {

class Observations {
 public:
  static constexpr std::size_t kShown = 4;

  struct Seen {
    std::vector<std::string> values;
    std::vector<std::int64_t> bytes;  // of each value that is a tensor
    bool more = false;
    std::uint32_t looked_at = 0;
  };

  /// One expression whose value is requested in source form.
  struct Asked {
    SourceRange range;
    std::string text = {};  // empty: it was not evaluated
    bool is_order = false;
  };

  /// The number of elements that a cursor still has after a loop over steps: `left(F a)`.
  struct Left {
    const ast::OpExpr* op = nullptr;
    Seen seen = {};
  };

  explicit Observations(FileId file) : file_(file) {}
  /// Also observes the elements that the loops of a module leave to cursors; the module must
  /// outlive this.
  explicit Observations(const ast::Module& of);
  Observations(FileId file, SourceRange asked) : file_(file), asked_(Asked{asked}) {}

  /// `model`: the graph of the value's tensors; null where there is none.
  void note(SourceRange range, const Value& value, const directive::Surroundings& around,
            const tensor::Graph* model);
  const std::optional<Asked>& asked() const { return asked_; }
  /// Null: it was not evaluated.
  const Seen* of(SourceRange range) const;
  /// The operations of a loop whose cursors are observed after it, in text order; empty if not
  /// requested, or no longer.
  std::span<Left> left_behind(SourceRange loop);
  std::span<const Left> left_behind(SourceRange loop) const;
  static void note_left(Left& left, std::int64_t count);

 private:
  FileId file_;
  std::optional<Asked> asked_;
  std::map<SourceRange, Seen> seen_;
  std::map<SourceRange, std::vector<Left>> left_;  // by loop
};

}  // namespace piper::lower
