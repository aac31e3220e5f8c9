#pragma once
// The printer of one loop nest as a CUDA kernel: its forms share loops, vectors and statements.
// Sums by index over sorted positions (`order`, `scatter`, `join`) are in print_scatter.cpp, the
// other forms in print_kernel.cpp.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/launch.h"
#include "backend/kernel/print_statements.h"

namespace piper::backend::cuda {

class CudaPrinter : StatementPrinter {
 public:
  /// `kernel` and `body` must outlive it. `canonical` numbers all names and leaves out lines.
  CudaPrinter(const Kernel& kernel, const KernelBody& body, bool canonical)
      : StatementPrinter(
            kernel, body, canonical,
            {"added", "alone", "at", "block",     "count",    "draw",     "i",       "index_of",
             "j",     "j0",    "k",  "lane",      "nth",      "own",      "place",   "q",
             "row",   "slot",  "u",  "threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"}),
        launch_(launch_of(kernel)),
        vector_(kernel.lanes.vector),
        index_type_(fits_in_32_bits(kernel, body) ? "int32_t" : "int64_t") {}

  /// Returns the text of the kernel, a function called `name`. It may be called once.
  std::string run(const std::string& name);

 private:
  using Range = std::pair<std::size_t, std::size_t>;

  static std::string number(std::int64_t value) { return std::to_string(value); }

  // ---- expressions
  std::string seed() const override { return "draw->seed"; }
  std::string step() const override { return "draw->step"; }
  std::string index(const Statement& s) const override {
    return !own_index_.empty()
               ? own_index_
               : "piper_within(" + registers_[static_cast<std::size_t>(s.access.index)] + ", " +
                     number(bound(s)) + ")";
  }
  bool stands_alone(const Statement& s) const override { return in_tile(s); }
  std::int64_t bound(const Statement& s) const;
  bool in_tile(const Statement& s) const;
  std::string tile(std::size_t i) const { return registers_[i] + "_piece"; }
  bool draws_at_once(const Statement& s) const;
  bool is_uniform(const Statement& s) const;
  std::string drawn(std::size_t i) const { return registers_[i] + "_drawn"; }
  /// The address of a vector in memory.
  std::string tile_place(const Statement& s);
  void mark_line(const Statement& s);
  void statement(std::size_t i);
  void effect(std::size_t i);

  // ---- loops
  std::int64_t resident_threads() const;
  std::string signature(const std::string& name) const;
  void number_of_thread(const std::string& name, const std::string& times);
  void decode(const std::string& flat, std::size_t first, std::size_t end);
  void columns(const Range& pass, const std::string& begin, const std::string& step);
  void vector_of(const Range& pass);
  template <typename Row, typename Column>
  void passes(Row row, Column column);

  // ---- forms
  void elements();
  void rows();
  void sums();
  void scatter();
  void begin_reductions(const Range& pass);
  void end_reductions(const Range& pass);
  void shared();
  void order();
  void join();
  const Statement& effect_of_runs() const;
  std::vector<bool> needed_by(std::int32_t statement) const;
  void index_function(const std::string& before, const Statement& effect, const std::string& after);
  template <typename Body>
  void columns_of_runs(Body body);
  void add_to_place(const std::string& sum);
  std::string partial(const std::string& row) const;

  std::size_t num_rows() const { return kernel_.rows.size(); }
  std::size_t num_loops() const { return kernel_.rows.size() + kernel_.columns.size(); }
  std::size_t last() const { return num_loops() - 1; }

  const Launch launch_;
  const std::int64_t vector_;
  const std::string index_type_;
  std::string line_mark_;
  std::string own_index_;  // if it is known
};

/// Row statements one by one, column statements of a pass together, in order.
template <typename Row, typename Column>
void CudaPrinter::passes(Row row, Column column) {
  const auto& statements = kernel_.statements;
  for (std::size_t i = 0; i < statements.size();) {
    if (statements[i].row) {
      row(i++);
      continue;
    }
    std::size_t end = i;
    while (end < statements.size() && !statements[end].row &&
           statements[end].pass == statements[i].pass)
      ++end;
    column(Range{i, end});
    i = end;
  }
}

}  // namespace piper::backend::cuda
