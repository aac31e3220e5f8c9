#include "backend/kernel/divide.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "backend/kernel/loops.h"
#include "backend/kernel/schedule_kernel.h"
#include "backend/kernel/schedule_passes.h"

namespace piper::backend {

using tensor::DType;

namespace {

using Id = std::int32_t;  // position among statements

// The approximate number of concurrent threads of a GPU; more of them only wait.
constexpr std::int64_t kThreads = std::int64_t{1} << 17;
// Rows this long are divided if there are fewer of them than this, because they would leave most of
// a GPU idle.
constexpr std::int64_t kLongRow = 16384, kFewRows = 256;
// If columns need a reduction, the parts of a divided row are read again from memory: this pays off
// only if most of a GPU had no row.
constexpr std::int64_t kFewRowsOfPasses = 64;
// A part of a long row: eight elements for each of a block's threads.
constexpr std::int64_t kPart = 8192, kMaxParts = 4096;

std::size_t at(Id i) { return static_cast<std::size_t>(i); }

template <typename Visit>
void each_operand(const Statement& s, Visit visit) {
  for (const Id o : s.operands) {
    if (o >= 0) visit(o);
  }
  if (s.access.index >= 0) visit(s.access.index);
}

/// Per statement: whether it needs the result of a reduction.
std::vector<bool> find_reduced(const Kernel& kernel) {
  std::vector<bool> reduced(kernel.statements.size());
  for (std::size_t i = 0; i < reduced.size(); ++i) {
    reduced[i] = is_reduction(kernel.statements[i].code);
    each_operand(kernel.statements[i], [&](Id o) { reduced[i] = reduced[i] || reduced[at(o)]; });
  }
  return reduced;
}

/// The smallest divisor of `extent` that is at least `least` and not far above it; else `extent`.
std::int64_t divisor_from(std::int64_t extent, std::int64_t least) {
  for (std::int64_t length = std::max<std::int64_t>(least, 1);
       length <= 16 * least && length * 2 <= extent; ++length) {
    if (extent % length == 0) return length;
  }
  return extent;
}

/// Strides of a dense array over some of the loops, the last one fastest; 0 along the others.
std::vector<std::int64_t> dense(const Kernel& kernel, const std::vector<bool>& has) {
  std::vector<std::int64_t> strides(has.size(), 0);
  std::int64_t stride = 1;
  for (std::size_t loop = has.size(); loop-- > 0;) {
    if (!has[loop]) continue;
    strides[loop] = stride;
    stride *= loop_extent(kernel, loop);
  }
  return strides;
}

std::size_t num_loops(const Kernel& kernel) { return kernel.rows.size() + kernel.columns.size(); }
std::vector<bool> row_loops(const Kernel& kernel) {
  std::vector<bool> rows(num_loops(kernel), false);
  std::fill_n(rows.begin(), kernel.rows.size(), true);
  return rows;
}

Id append(Kernel& kernel, Statement s) {
  kernel.statements.push_back(std::move(s));
  return static_cast<Id>(kernel.statements.size()) - 1;
}

Id append_load(Kernel& kernel, BufferIndex buffer, std::vector<std::int64_t> strides, DType dtype,
               const std::string& name) {
  Statement s;
  s.code = Code::load;
  s.dtype = dtype;
  s.access.buffer = buffer;
  s.access.strides = std::move(strides);
  s.name = name;
  s.row = is_row_statement(kernel, s, kernel.rows.size());
  return append(kernel, std::move(s));
}

Id append_op(Kernel& kernel, Code code, DType dtype, Id operand, const std::string& name) {
  Statement s;
  s.code = code;
  s.dtype = dtype;
  s.operands[0] = operand;
  s.name = name;
  return append(kernel, std::move(s));
}

void append_store(Kernel& kernel, Code code, BufferIndex buffer, std::vector<std::int64_t> strides,
                  DType dtype, Id operand) {
  Statement s;
  s.code = code;
  s.dtype = dtype;
  s.operands[0] = operand;
  s.access.buffer = buffer;
  s.access.strides = std::move(strides);
  append(kernel, std::move(s));
}

class Division {
 public:
  Division(Kernel nest, const StepBuffers& buffers)
      : nest_(std::move(nest)), buffers_(buffers), reduced_(find_reduced(nest_)) {}

  std::vector<Kernel> run() {
    find_stores();
    if (has_few_long_rows()) reduce_apart();
    std::vector<Kernel> tiles;
    std::swap(tiles, out_);
    divide_effects();
    std::swap(tiles, out_);
    add_main();
    out_.insert(out_.end(), std::make_move_iterator(tiles.begin()),
                std::make_move_iterator(tiles.end()));
    return std::move(out_);
  }

 private:
  struct Copies {
    Kernel kernel;
    std::map<Id, Id> made;
    bool whole = false;  // everything is computed, nothing is passed through scratch
  };

  const Statement& statement(Id i) const { return nest_.statements[at(i)]; }
  /// An empty nest over the same loops.
  Copies copies(std::string part) const {
    Copies made;
    made.kernel.rows = nest_.rows;
    made.kernel.columns = nest_.columns;
    made.kernel.part = std::move(part);
    return made;
  }

  void find_stores() {
    for (const Statement& s : nest_.statements) {
      if (s.code == Code::store && !s.row && !buffers_.at(s.access.buffer).accumulates)
        stored_.try_emplace(s.operands[0], s.access);
    }
  }

  /// Statement `i` and its operands, transitively.
  Id copy(Copies& to, Id i) {
    if (const auto found = to.made.find(i); found != to.made.end()) return found->second;
    const Statement& s = statement(i);
    Id made = -1;
    if (const auto apart = apart_.find(i); apart != apart_.end()) {
      made = append_load(to.kernel, apart->second, dense(nest_, row_loops(nest_)), s.dtype, s.name);
      to.kernel.statements.back().op = s.op;
    } else if (!to.whole && gives_row_value(s) && reduced_[at(i)]) {
      made = append_load(to.kernel, row_buffer(i), dense(nest_, row_loops(nest_)), s.dtype, s.name);
      to.kernel.statements.back().op = s.op;
    } else if (const auto stored = stored_.find(i);
               !to.whole && s.code != Code::load && stored != stored_.end()) {
      made = append_load(to.kernel, stored->second.buffer, stored->second.strides, s.dtype, s.name);
      to.kernel.statements.back().op = s.op;
    } else {
      Statement clone = s;
      for (Id& o : clone.operands) {
        if (o >= 0) o = copy(to, o);
      }
      if (clone.access.index >= 0) clone.access.index = copy(to, clone.access.index);
      made = append(to.kernel, std::move(clone));
    }
    return to.made[i] = made;
  }

  /// The buffer in which the main nest leaves one value per row for the others.
  BufferIndex row_buffer(Id i) {
    const auto [entry, fresh] = handed_over_.try_emplace(i, 0);
    if (fresh)
      entry->second = buffers_.temporary(
          statement(i).dtype, product(nest_.rows),
          statement(i).name.empty() ? "row_value" : statement(i).name, "one per row");
    return entry->second;
  }

  /// Whether rows are so few and long that a block for each would leave most of a GPU idle, and
  /// columns need a reduction.
  bool has_few_long_rows() const {
    if (nest_.columns.size() != 1 || nest_.columns[0] < kLongRow ||
        product(nest_.rows) >= kFewRowsOfPasses)
      return false;
    for (std::size_t i = 0; i < nest_.statements.size(); ++i) {
      const Statement& s = nest_.statements[i];
      if (s.code == Code::column || s.code == Code::row_first) return false;
      if (reduced_[i] && !gives_row_value(s)) return true;
    }
    return false;
  }

  /// Reductions become nests of their own, which are divided like other long rows; dependent ones
  /// come later.
  void reduce_apart() {
    std::vector<int> level(nest_.statements.size(), 0);
    std::map<int, std::vector<Id>> reductions;
    for (Id i = 0; i < static_cast<Id>(nest_.statements.size()); ++i) {
      each_operand(statement(i), [&](Id o) {
        level[at(i)] =
            std::max(level[at(i)], level[at(o)] + (is_reduction(statement(o).code) ? 1 : 0));
      });
      if (is_reduction(statement(i).code)) reductions[level[at(i)]].push_back(i);
    }
    for (const auto& [of, ids] : reductions) {
      Copies tile = copies("reduce");
      tile.whole = true;
      std::map<Id, BufferIndex> made;
      for (const Id i : ids) {
        Statement clone = statement(i);
        for (Id& o : clone.operands) {
          if (o >= 0) o = copy(tile, o);
        }
        made[i] = buffers_.temporary(clone.dtype, product(nest_.rows), clone.name, "one per row");
        const DType dtype = clone.dtype;
        append_store(tile.kernel, Code::store, made[i], dense(tile.kernel, row_loops(tile.kernel)),
                     dtype, append(tile.kernel, std::move(clone)));
      }
      apart_.insert(made.begin(), made.end());
      finish(std::move(tile.kernel));
    }
  }

  void divide_effects() {
    // Groups sums by whether they add row values, by the loops of the result, and by results that
    // share memory.
    std::map<std::tuple<bool, std::vector<bool>, BufferIndex>, std::vector<Id>> sums;
    for (Id i = 0; i < static_cast<Id>(nest_.statements.size()); ++i) {
      const Statement& s = statement(i);
      if (s.code == Code::total) total(s);
      if (stands_alone(s)) add_store(s);
      if (s.code != Code::store_add) continue;
      if (s.access.index >= 0) {
        scatter(s);
        continue;
      }
      std::vector<bool> kept;
      for (const std::int64_t stride : s.access.strides) kept.push_back(stride != 0);
      sums[{s.row, std::move(kept), buffers_.shared(s.access.buffer) ? s.access.buffer : 0}]
          .push_back(i);
    }
    for (const auto& [key, effects] : sums) add_sums(effects, std::get<0>(key));
  }

  /// One nest must not add to two gradients in the same memory, because it reads both before it
  /// writes.
  bool stands_alone(const Statement& s) const {
    return s.code == Code::store && buffers_.shared(s.access.buffer);
  }

  void add_store(const Statement& s) {
    Copies tile = copies("store");
    Statement effect = s;
    effect.operands[0] = copy(tile, s.operands[0]);
    append(tile.kernel, std::move(effect));
    finish(std::move(tile.kernel));
  }

  void add_main() {
    Copies main = copies("");
    main.whole = true;
    bool empty = true;
    // In the order of the nest, because an effect may come before a load from the same memory.
    for (Id i = 0; i < static_cast<Id>(nest_.statements.size()); ++i) {
      const Statement& s = statement(i);
      if (const auto handed = handed_over_.find(i); handed != handed_over_.end()) {
        append_store(main.kernel, Code::store, handed->second, dense(nest_, row_loops(nest_)),
                     s.dtype, copy(main, i));
        empty = false;
      }
      if (s.code != Code::store || stands_alone(s)) continue;
      copy(main, i);
      empty = false;
    }
    if (!empty) finish(std::move(main.kernel));
  }

  /// Sums by index: sorting of its positions, sums of runs, their join.
  void scatter(const Statement& s) {
    Copies order = copies("order");
    const Id index = copy(order, s.access.index);
    const bool in_columns = !gives_row_value(order.kernel.statements[at(index)]);
    if (!in_columns) drop_columns(order.kernel);
    Runs runs;
    runs.positions = product(nest_.rows) * (in_columns ? product(nest_.columns) : 1);
    runs.values = buffers_.at(s.access.buffer).elements / s.access.index_stride;
    runs.order = buffers_.temporary(DType::i64, 2 * runs.positions, "order", "positions by index");
    runs.in_columns = in_columns;
    runs.width = in_columns ? 1 : product(nest_.columns);
    if (runs.several())
      runs.partials = buffers_.temporary(s.dtype, 2 * runs.rows() * runs.width,
                                         "parts_of_" + s.name, "sums of runs");
    order.kernel.runs = runs;
    order.kernel.form = Form::order;
    append_store(order.kernel, Code::store, runs.order,
                 dense(order.kernel, std::vector<bool>(num_loops(order.kernel), true)), DType::i64,
                 index);
    finish(std::move(order.kernel));

    Copies tile = copies("scatter");
    tile.kernel.runs = runs;
    tile.kernel.form = Form::scatter;
    Statement effect = s;
    effect.operands[0] = copy(tile, s.operands[0]);
    effect.access.index = copy(tile, s.access.index);
    append(tile.kernel, effect);
    finish(std::move(tile.kernel));
    if (!runs.several()) return;

    Copies join = copies("join");
    join.kernel.runs = runs;
    join.kernel.form = Form::join;
    std::vector<bool> columns(num_loops(nest_), false);
    if (!in_columns)
      std::fill(columns.begin() + static_cast<std::ptrdiff_t>(nest_.rows.size()), columns.end(),
                true);
    effect.operands[0] =
        append_load(join.kernel, runs.partials, dense(nest_, columns), s.dtype, s.name);
    effect.access.index = copy(join, s.access.index);
    append(join.kernel, std::move(effect));
    finish(std::move(join.kernel));
  }

  void total(const Statement& s) {
    Copies tile = copies("total");
    Kernel& kernel = tile.kernel;
    const Id x = copy(tile, s.operands[0]);
    if (gives_row_value(kernel.statements[at(x)])) rows_to_columns(kernel);
    collapse(kernel);
    Id sum = append_op(kernel, Code::row_sum, DType::f64, x, "sum");
    kernel.statements.back().op = s.op;
    if (!kernel.rows.empty()) {
      const std::int64_t rows = product(kernel.rows);
      const BufferIndex partial = buffers_.temporary(DType::f64, rows, "sums", "one per row");
      append_store(kernel, Code::store, partial, dense(kernel, row_loops(kernel)), DType::f64, sum);
      finish(std::move(kernel));
      Kernel join;
      join.columns = {rows};
      join.part = "join";
      sum = append_op(join, Code::row_sum, DType::f64,
                      append_load(join, partial, {1}, DType::f64, "sums"), "sum");
      join.statements.back().op = s.op;
      kernel = std::move(join);
    }
    const Id result =
        s.dtype == DType::f64 ? sum : append_op(kernel, Code::cast, s.dtype, sum, "sum");
    append_store(kernel, Code::store, s.access.buffer,
                 std::vector<std::int64_t>(num_loops(kernel), 0), s.dtype, result);
    finish(std::move(kernel));
  }

  void add_sums(const std::vector<Id>& effects, bool row) {
    Copies tile = copies("sum");
    for (const Id i : effects) {
      Statement effect = statement(i);
      effect.operands[0] = copy(tile, effect.operands[0]);
      append(tile.kernel, std::move(effect));
    }
    Kernel& kernel = tile.kernel;
    if (row) drop_columns(kernel);
    // The loops of the result, then the longest summed loop.
    const std::vector<std::int64_t> strides = kernel.statements.back().access.strides;
    std::vector<std::size_t> order;
    for (std::size_t loop = 0; loop < kernel.rows.size(); ++loop) order.push_back(loop);
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      if ((strides[a] != 0) != (strides[b] != 0)) return strides[a] != 0;
      return strides[a] == 0 && kernel.rows[a] > kernel.rows[b];
    });
    reorder_rows(kernel, order);
    collapse(kernel);
    cut_sums(kernel);
  }

  /// In parts that are summed concurrently if the result alone has too few elements.
  void cut_sums(Kernel& kernel) {
    std::size_t kept = 0;
    while (kept < kernel.rows.size() && kernel.statements.back().access.strides[kept] != 0) ++kept;
    std::int64_t elements = product(kernel.columns), summed = 1;
    for (std::size_t loop = 0; loop < kernel.rows.size(); ++loop)
      (loop < kept ? elements : summed) *= kernel.rows[loop];
    const auto root = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(summed))));
    const std::int64_t wanted = std::min((kThreads + elements - 1) / elements, root);
    const std::int64_t extent = kept < kernel.rows.size() ? kernel.rows[kept] : 1;
    const std::int64_t length = divisor_from(
                           extent, (extent + wanted - 1) / std::max<std::int64_t>(wanted, 1)),
                       parts = extent / length;
    if (parts < 2 || summed < 64) return finish(std::move(kernel));

    cut(kernel, kept, length);
    Kernel join;
    join.rows.assign(kernel.rows.begin(),
                     kernel.rows.begin() + static_cast<std::ptrdiff_t>(kept) + 1);
    join.columns = kernel.columns;
    join.part = "join";
    std::vector<bool> has(num_loops(kernel), true);
    std::fill(has.begin() + static_cast<std::ptrdiff_t>(kept) + 1,
              has.begin() + static_cast<std::ptrdiff_t>(kernel.rows.size()), false);
    const std::vector<std::int64_t> in_parts = dense(kernel, has);
    const auto without_inner = [&](std::vector<std::int64_t> strides) {
      strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(kept) + 1,
                    strides.begin() + static_cast<std::ptrdiff_t>(kernel.rows.size()));
      return strides;
    };
    for (Statement& s : kernel.statements) {
      if (s.code != Code::store_add) continue;
      const BufferIndex partial =
          buffers_.temporary(s.dtype, elements * parts, "parts_of_" + s.name, "sums of parts");
      const Id part = append_load(join, partial, without_inner(in_parts), s.dtype, s.name);
      append_store(join, Code::store_add, s.access.buffer, without_inner(s.access.strides), s.dtype,
                   part);
      join.statements.back().op = s.op;
      s.access.buffer = partial;
      s.access.strides = in_parts;
    }
    finish(std::move(kernel));
    finish(std::move(join));
  }

  /// Whether its only pass could run over parts of the row too.
  bool can_be_cut(const Kernel& kernel, const std::vector<bool>& reduced) const {
    if (kernel.columns.size() != 1 || kernel.columns[0] < kLongRow ||
        product(kernel.rows) >= kFewRows)
      return false;
    bool reduces = false;
    for (std::size_t i = 0; i < kernel.statements.size(); ++i) {
      const Statement& s = kernel.statements[i];
      if (s.code == Code::column || s.code == Code::row_first) return false;
      reduces = reduces || is_reduction(s.code);
      if (reduced[i] && !gives_row_value(s)) return false;
    }
    return reduces;
  }

  /// The reductions of each part, then the same reductions over the parts.
  bool cut_long_rows(Kernel& kernel) {
    const std::vector<bool> reduced = find_reduced(kernel);
    if (!can_be_cut(kernel, reduced)) return false;
    const std::int64_t columns = kernel.columns[0],
                       wanted = std::max(kPart, (columns + kMaxParts - 1) / kMaxParts);
    const std::int64_t length = divisor_from(columns, wanted), parts = columns / length;
    if (parts < 2) return false;
    Kernel join;
    join.rows = kernel.rows;
    join.columns = {parts};
    join.part = "join";
    std::map<Id, Id> made;
    const auto move_to_join = [&](auto& self, Id i) -> Id {
      if (const auto found = made.find(i); found != made.end()) return found->second;
      Statement s = kernel.statements[at(i)];
      for (Id& o : s.operands) {
        if (o >= 0) o = self(self, o);
      }
      if (s.access.index >= 0) s.access.index = self(self, s.access.index);
      return made[i] = append(join, std::move(s));
    };
    Kernel first = kernel;
    first.statements.clear();
    std::map<Id, Id> kept;
    std::vector<std::pair<Id, BufferIndex>> partials;  // reductions of `first`
    const auto statements = static_cast<Id>(kernel.statements.size());
    for (Id i = 0; i < statements; ++i) {
      Statement s = kernel.statements[at(i)];
      const bool reduction = is_reduction(s.code);
      // Comes after the join.
      if ((reduced[at(i)] && !reduction) || (is_effect(s.code) && s.row)) continue;
      for (Id& o : s.operands) {
        if (o >= 0) o = kept.at(o);
      }
      if (s.access.index >= 0) s.access.index = kept.at(s.access.index);
      kept[i] = append(first, s);
      if (!reduction) continue;
      const BufferIndex partial = buffers_.temporary(s.dtype, product(kernel.rows) * parts,
                                                     "parts_of_" + s.name, "of parts of rows");
      partials.emplace_back(kept[i], partial);
      std::vector<bool> all(join.rows.size() + 1, true);
      made[i] = append_op(join, s.code, s.dtype,
                          append_load(join, partial, dense(join, all), s.dtype, s.name), s.name);
    }
    for (Id i = 0; i < statements; ++i) {
      if (is_effect(kernel.statements[at(i)].code) && kernel.statements[at(i)].row)
        move_to_join(move_to_join, i);
    }
    cut(first, first.rows.size(), length);
    first.rows.push_back(parts);
    first.columns = {length};
    for (const auto& [reduction, partial] : partials) {
      const DType dtype = first.statements[at(reduction)].dtype;
      append_store(first, Code::store, partial, dense(first, row_loops(first)), dtype, reduction);
    }
    find_row_statements(first);
    schedule(std::move(first));
    finish(std::move(join));
    return true;
  }

  void schedule(Kernel kernel) {
    schedule_kernel(kernel, nest_, buffers_);
    out_.push_back(std::move(kernel));
  }

  void finish(Kernel kernel) {
    collapse(kernel);
    find_row_statements(kernel);
    if (kernel.runs || !cut_long_rows(kernel)) schedule(std::move(kernel));
  }

  const Kernel nest_;
  const StepBuffers& buffers_;
  const std::vector<bool> reduced_;
  std::map<Id, Access> stored_;            // column value -> where it is stored
  std::map<Id, BufferIndex> handed_over_;  // row value -> scratch
  std::map<Id, BufferIndex> apart_;        // reduction of a nest of its own -> scratch
  std::vector<Kernel> out_;
};

}  // namespace

std::vector<Kernel> divide(Kernel nest, const StepBuffers& buffers) {
  return Division(std::move(nest), buffers).run();
}

}  // namespace piper::backend
