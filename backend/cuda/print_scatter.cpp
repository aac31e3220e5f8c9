// Sums by index: the positions in the order of their indices, sums of runs, their join.
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "backend/cuda/cuda_printer.h"
#include "backend/kernel/print_kernel.h"
#include "backend/kernel/schedule_passes.h"

namespace piper::backend::cuda {

/// The statement and those that it needs.
std::vector<bool> CudaPrinter::needed_by(std::int32_t statement) const {
  std::vector<bool> needed(kernel_.statements.size(), false);
  needed[static_cast<std::size_t>(statement)] = true;
  for (std::size_t i = needed.size(); i-- > 0;) {
    if (!needed[i]) continue;
    const Statement& s = kernel_.statements[i];
    for (const std::int32_t o : {s.operands[0], s.operands[1], s.operands[2], s.access.index}) {
      if (o >= 0) needed[static_cast<std::size_t>(o)] = true;
    }
  }
  return needed;
}

/// A function from a position to its index.
void CudaPrinter::index_function(const std::string& before, const Statement& effect,
                                 const std::string& after) {
  const std::int32_t index = effect.access.index >= 0 ? effect.access.index : effect.operands[0];
  const std::vector<bool> needed = needed_by(index);
  open(before + "[&](const int64_t q)");
  decode("q", 0, kernel_.runs->in_columns ? num_loops() : num_rows());
  for (std::size_t i = 0; i < needed.size(); ++i) {
    if (needed[i]) statement(i);
  }
  line("return piper_within(" + registers_[static_cast<std::size_t>(index)] + ", " +
       number(kernel_.runs->values) + ");");
  --indent_;
  line("}" + after + ";");
}

const Statement& CudaPrinter::effect_of_runs() const {
  return *std::find_if(kernel_.statements.begin(), kernel_.statements.end(),
                       [](const Statement& s) { return is_effect(s.code); });
}

void CudaPrinter::order() {
  const Runs& runs = *kernel_.runs;
  int passes = 1;
  while (passes < 8 && (runs.values - 1) >> (8 * passes) != 0) ++passes;
  index_function("piper_order<" + number(launch_.threads) + ", " + std::to_string(passes) + ">(" +
                     number(runs.positions) + ", " + buffers_.at(runs.order) + ", ",
                 effect_of_runs(), ")");
}

/// Loops over the columns; of several only the innermost runs over threads.
template <typename Body>
void CudaPrinter::columns_of_runs(Body body) {
  if (kernel_.runs->in_columns) {
    open("if (threadIdx.x == 0)");
    body();
    close();
    return;
  }
  for (std::size_t c = 0; c + 1 < kernel_.columns.size(); ++c) {
    const std::string& k = variables_[num_rows() + c];
    open("for (" + index_type_ + " " + k + " = 0; " + k + " < " + number(kernel_.columns[c]) +
         "; ++" + k + ")");
  }
  const std::string j = vector_ > 1 ? "j0" : variables_[last()];
  const std::string times = vector_ > 1 ? " * " + number(vector_) : std::string();
  open("for (" + index_type_ + " " + j + " = threadIdx.x" + times + "; " + j + " < " +
       number(kernel_.columns.back()) + "; " + j + " += " + number(launch_.threads * vector_) +
       ")");
  body();
  for (std::size_t c = 0; c < kernel_.columns.size(); ++c) close();
}

/// `own` += `sum`, or `own` = `sum` for an untouched place.
void CudaPrinter::add_to_place(const std::string& sum) {
  const Statement& s = effect_of_runs();
  own_index_ = "own";
  const std::string to = element(s);
  own_index_.clear();
  line(to + " = " + (adds(s) ? add_flag(s) + " ? " + to + " + " + sum + " : " : "") + sum + ";");
}

std::string CudaPrinter::partial(const std::string& row) const {
  return buffers_.at(kernel_.runs->partials) + "[(" + row + ") * " + number(kernel_.runs->width) +
         (kernel_.runs->in_columns ? "" : " + " + column()) + "]";
}

/// One block per place of the order: a block at the begin of a run adds up the run.
void CudaPrinter::scatter() {
  const Runs& runs = *kernel_.runs;
  const Statement& s = effect_of_runs();
  const std::string order = buffers_.at(runs.order), positions = number(runs.positions),
                    length = number(Runs::kLength), type = c_type(s.dtype);
  line("const int64_t* const place = " + order + " + " + positions + ";");
  line("const " + index_type_ + " slot = blockIdx.x, nth = (" + index_type_ + ")place[slot];");
  line("if (nth % " + length + " != 0) return;");
  line("const " + index_type_ + " count = piper_run<" + index_type_ + ">(place, " + positions +
       ", slot, " + length + ");");
  if (runs.several())
    line("const bool alone = nth == 0 && !(slot + " + length + " < " + positions +
         " && place[slot + " + length + "] == " + length + ");");
  index_function("const auto index_of = ", s, "");
  line("const int64_t own = index_of(" + order + "[slot]);");
  // A run without others of its index: the result row is known.
  const std::vector<bool> needed = needed_by(s.operands[0]);
  for (std::size_t i = 0; i < needed.size(); ++i) {
    if (!needed[i] && !is_effect(kernel_.statements[i].code)) inlined_.insert(i);
  }
  columns_of_runs([&] {
    const std::string vector = number(vector_), u = vector_ > 1 ? "[u]" : "";
    line(type + " added" + (vector_ > 1 ? "[" + vector + "] = {}" : " = " + literal(0, s.dtype)) +
         ";");
    out_ += "#pragma unroll 4\n";
    open("for (" + index_type_ + " k = 0; k < count; ++k)");
    line("const " + index_type_ + " at = (" + index_type_ + ")" + order + "[slot + k];");
    decode("at", 0, kernel_.runs->in_columns ? num_loops() : num_rows());
    passes([&](std::size_t i) { statement(i); }, [&](const Range& pass) { vector_of(pass); });
    close();
    if (vector_ > 1) {
      out_ += "#pragma unroll\n";
      open("for (int32_t u = 0; u < " + vector + "; ++u)");
      line("const " + index_type_ + " j = j0 + u;");
    }
    if (runs.several()) open("if (alone)");
    add_to_place("added" + u);
    if (runs.several()) {
      --indent_;
      open("} else");
      line(partial("(nth == 0 ? 0 : " + number(runs.rows()) + ") + slot / " + length) + " = added" +
           u + ";");
      close();
    }
    if (vector_ > 1) close();
  });
}

/// One block per place of the order: a block at the begin of an index with several runs adds up
/// their sums.
void CudaPrinter::join() {
  const Runs& runs = *kernel_.runs;
  const Statement& s = effect_of_runs();
  const std::string order = buffers_.at(runs.order), positions = number(runs.positions),
                    length = number(Runs::kLength);
  line("const int64_t* const place = " + order + " + " + positions + ";");
  line("const " + index_type_ + " slot = blockIdx.x;");
  line("if (place[slot] != 0 || slot + " + length + " >= " + positions + " || place[slot + " +
       length + "] != " + length + ") return;");
  line("const " + index_type_ + " count = piper_run<" + index_type_ + ">(place, " + positions +
       ", slot, " + positions + ");");
  index_function("const auto index_of = ", s, "");
  line("const int64_t own = index_of(" + order + "[slot]);");
  columns_of_runs([&] {
    line(c_type(s.dtype) + " added = " + partial("slot / " + length) + ";");
    out_ += "#pragma unroll 4\n";
    open("for (" + index_type_ + " k = " + length + "; k < count; k += " + length + ")");
    line("added += " + partial(number(runs.rows()) + " + (slot + k) / " + length) + ";");
    close();
    add_to_place("added");
  });
}

}  // namespace piper::backend::cuda
