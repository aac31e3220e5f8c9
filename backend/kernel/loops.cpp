#include "backend/kernel/loops.h"

#include <algorithm>

#include "backend/kernel/schedule_passes.h"

namespace piper::backend {

namespace {

/// All per-loop vectors of a statement, except empty ones.
template <typename Visit>
void each_strides(Statement& s, Visit visit) {
  for (auto* strides :
       {&s.access.strides, &s.access.guard.strides, &s.element_strides, &s.sample_strides}) {
    if (!strides->empty()) visit(*strides);
  }
}

void set_loops(Kernel& kernel, const std::vector<std::int64_t>& extents, std::size_t rows) {
  kernel.rows.assign(extents.begin(), extents.begin() + static_cast<std::ptrdiff_t>(rows));
  kernel.columns.assign(extents.begin() + static_cast<std::ptrdiff_t>(rows), extents.end());
}

std::vector<std::int64_t> loops_of(const Kernel& kernel) {
  std::vector<std::int64_t> extents = kernel.rows;
  extents.insert(extents.end(), kernel.columns.begin(), kernel.columns.end());
  return extents;
}

/// Whether its access has a stride per loop.
bool has_strides(const Statement& s) {
  return s.code == Code::load || s.code == Code::position || s.code == Code::piecewise ||
         is_effect(s.code);
}

/// The innermost loop always exists.
void add_column(Kernel& kernel) {
  const std::size_t loops = kernel.rows.size();
  kernel.columns.push_back(1);
  for (Statement& s : kernel.statements) {
    if (has_strides(s)) {
      s.access.strides.resize(loops, 0);
      s.access.strides.push_back(0);
    }
    if (!s.access.guard.strides.empty()) s.access.guard.strides.push_back(0);
    if (s.code == Code::dropout) {
      s.element_strides.push_back(0);
      s.sample_strides.push_back(0);
    }
  }
}

}  // namespace

std::int64_t loop_extent(const Kernel& kernel, std::size_t loop) {
  return loop < kernel.rows.size() ? kernel.rows[loop] : kernel.columns[loop - kernel.rows.size()];
}

void collapse(Kernel& kernel) {
  std::vector<std::int64_t> extents = loops_of(kernel);
  std::size_t rows = kernel.rows.size();
  for (std::size_t outer = extents.size(); outer-- > 1;) {
    const std::size_t o = outer - 1;
    const bool crosses = outer == rows;
    const auto fits = [&] {
      const auto walks = [&](const std::vector<std::int64_t>& strides) {
        return strides.empty() || strides[o] == strides[outer] * extents[outer];
      };
      for (const Statement& s : kernel.statements) {
        if (!walks(s.access.strides) || !walks(s.access.guard.strides) ||
            !walks(s.element_strides) || !walks(s.sample_strides))
          return false;
        // A row loop becomes columns only if no statement runs once per row.
        if (crosses && (is_reduction(s.code) || s.code == Code::column || s.code == Code::total ||
                        (is_effect(s.code) && s.row) || s.access.index >= 0))
          return false;
        if (crosses && s.code == Code::store_add && s.access.strides[outer] == 0) return false;
      }
      return true;
    };
    if (!fits()) continue;
    extents[outer] *= extents[o];
    extents.erase(extents.begin() + static_cast<std::ptrdiff_t>(o));
    for (Statement& s : kernel.statements)
      each_strides(s, [&](auto& strides) {
        strides.erase(strides.begin() + static_cast<std::ptrdiff_t>(o));
      });
    if (o < rows) --rows;
  }
  set_loops(kernel, extents, rows);
  if (kernel.columns.empty()) add_column(kernel);
}

void cut(Kernel& kernel, std::size_t loop, std::int64_t length) {
  std::vector<std::int64_t>& loops = loop < kernel.rows.size() ? kernel.rows : kernel.columns;
  const std::size_t at = loop < kernel.rows.size() ? loop : loop - kernel.rows.size();
  loops.insert(loops.begin() + static_cast<std::ptrdiff_t>(at), loops[at] / length);
  loops[at + 1] = length;
  for (Statement& s : kernel.statements)
    each_strides(s, [&](auto& strides) {
      strides.insert(strides.begin() + static_cast<std::ptrdiff_t>(loop), strides[loop] * length);
    });
}

void reorder_rows(Kernel& kernel, const std::vector<std::size_t>& order) {
  const auto moved = [&](std::vector<std::int64_t>& numbers) {
    const std::vector<std::int64_t> old = numbers;
    for (std::size_t i = 0; i < order.size(); ++i) numbers[i] = old[order[i]];
  };
  moved(kernel.rows);
  for (Statement& s : kernel.statements) each_strides(s, moved);
}

void drop_columns(Kernel& kernel) {
  for (Statement& s : kernel.statements)
    each_strides(s, [&](auto& strides) { strides.resize(kernel.rows.size()); });
  kernel.columns.clear();
  add_column(kernel);
}

void rows_to_columns(Kernel& kernel) {
  drop_columns(kernel);
  if (!kernel.rows.empty()) {
    kernel.columns = std::move(kernel.rows);
    kernel.rows.clear();
    for (Statement& s : kernel.statements)
      each_strides(s, [&](auto& strides) { strides.pop_back(); });
  }
  find_row_statements(kernel);
}

bool is_row_statement(const Kernel& kernel, const Statement& s, std::size_t num_rows) {
  const auto same_in_columns = [&](const std::vector<std::int64_t>& strides) {
    return std::all_of(
        strides.begin() + static_cast<std::ptrdiff_t>(std::min(num_rows, strides.size())),
        strides.end(), [](std::int64_t stride) { return stride == 0; });
  };
  if (is_reduction(s.code) || s.code == Code::column || s.code == Code::dropout) return false;
  if (s.code == Code::store_add && s.access.index >= 0) return false;
  bool row = same_in_columns(s.access.strides) && same_in_columns(s.access.guard.strides);
  for (const std::int32_t o : {s.access.index, s.operands[0], s.operands[1], s.operands[2]}) {
    row = row && (o < 0 || gives_row_value(kernel.statements[static_cast<std::size_t>(o)]));
  }
  return row;
}

void find_row_statements(Kernel& kernel) {
  for (Statement& s : kernel.statements) s.row = is_row_statement(kernel, s, kernel.rows.size());
}

}  // namespace piper::backend
