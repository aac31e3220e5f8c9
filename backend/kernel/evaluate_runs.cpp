// Evaluates sums by index: sorting of its positions, sums of runs, their join (`Runs`).

#include <algorithm>
#include <numeric>

#include "backend/dtypes.h"
#include "backend/kernel/loops.h"
#include "backend/kernel/machine.h"

namespace piper::backend {

/// Sets the loops to a position of the index and returns the index there.
std::int64_t Machine::go_to(const Kernel& kernel, std::int64_t position) {
  std::fill(position_.begin(), position_.end(), 0);
  for (std::size_t loop = kernel.runs->in_columns ? position_.size() : kernel.rows.size();
       loop-- > 0;) {
    const std::int64_t extent = loop_extent(kernel, loop);
    position_[loop] = position % extent;
    position /= extent;
  }
  const Statement& effect = kernel.statements.back();
  const std::int32_t index = effect.access.index >= 0 ? effect.access.index : effect.operands[0];
  for (std::size_t i = 0; i < kernel.statements.size(); ++i) {
    if (!is_effect(kernel.statements[i].code)) execute(i, 1);
  }
  return *get<std::int64_t>(index);
}

void Machine::order(const Kernel& kernel) {
  const std::int64_t positions = kernel.runs->positions;
  std::vector<std::int64_t> index(static_cast<std::size_t>(positions));
  for (std::int64_t p = 0; p < positions; ++p)
    index[static_cast<std::size_t>(p)] = go_to(kernel, p);
  auto* const order = reinterpret_cast<std::int64_t*>(memory(kernel.runs->order));
  auto* const place = order + positions;
  std::iota(order, place, 0);
  const auto of = [&](std::int64_t slot) { return index[static_cast<std::size_t>(order[slot])]; };
  std::stable_sort(order, place, [&](std::int64_t a, std::int64_t b) {
    return index[static_cast<std::size_t>(a)] < index[static_cast<std::size_t>(b)];
  });
  for (std::int64_t slot = 0; slot < positions; ++slot)
    place[slot] = slot > 0 && of(slot) == of(slot - 1) ? place[slot - 1] + 1 : 0;
}

template <typename T>
void Machine::scatter(const Kernel& kernel, const Statement& sum) {
  const Runs& runs = *kernel.runs;
  const auto* const order = reinterpret_cast<const std::int64_t*>(memory(runs.order));
  const auto* const place = order + runs.positions;
  T* const partials = runs.several() ? reinterpret_cast<T*>(memory(runs.partials)) : nullptr;
  std::vector<T> added(static_cast<std::size_t>(runs.width));
  for (std::int64_t slot = 0, next = 0; slot < runs.positions; slot = next) {
    std::fill(added.begin(), added.end(), T(0));
    std::int64_t index = 0;
    for (next = slot; next < std::min(slot + Runs::kLength, runs.positions) &&
                      place[next] == place[slot] + next - slot;
         ++next) {
      index = go_to(kernel, order[next]);
      const auto add = [&](std::int64_t n) {
        const std::int64_t first = runs.in_columns ? 0 : column();
        for (std::size_t i = 0; i + 1 < kernel.statements.size(); ++i) {
          if (!kernel.statements[i].row) execute(i, n);
        }
        for (std::int64_t i = 0; i < n; ++i)
          added[static_cast<std::size_t>(first + i)] += get<T>(sum.operands[0])[i];
      };
      runs.in_columns ? add(1) : each_block(kernel, add);
    }
    const bool alone = place[slot] == 0 && (next == runs.positions || place[next] == 0);
    if (!alone) {
      std::copy(
          added.begin(), added.end(),
          partials + ((place[slot] == 0 ? 0 : runs.rows()) + slot / Runs::kLength) * runs.width);
      continue;
    }
    add_to_place(kernel, sum, index, added);
  }
}

template <typename T>
void Machine::join(const Kernel& kernel, const Statement& sum) {
  const Runs& runs = *kernel.runs;
  const auto* const order = reinterpret_cast<const std::int64_t*>(memory(runs.order));
  const auto* const place = order + runs.positions;
  const T* const partials = reinterpret_cast<const T*>(memory(runs.partials));
  for (std::int64_t slot = 0; slot + Runs::kLength < runs.positions; ++slot) {
    if (place[slot] != 0 || place[slot + Runs::kLength] != Runs::kLength) continue;
    const T* row = partials + slot / Runs::kLength * runs.width;
    std::vector<T> added(row, row + runs.width);
    for (std::int64_t k = Runs::kLength; slot + k < runs.positions && place[slot + k] == k;
         k += Runs::kLength) {
      row = partials + (runs.rows() + (slot + k) / Runs::kLength) * runs.width;
      for (std::int64_t c = 0; c < runs.width; ++c) added[static_cast<std::size_t>(c)] += row[c];
    }
    add_to_place(kernel, sum, go_to(kernel, order[slot]), added);
  }
}

/// Adds the sums of one index, for all columns, to its row of the result.
template <typename T>
void Machine::add_to_place(const Kernel& kernel, const Statement& sum, std::int64_t index,
                           const std::vector<T>& added) {
  T* const to = reinterpret_cast<T*>(memory(sum.access.buffer)) + index * sum.access.index_stride;
  const auto add = [&](T& place, T number) {
    place = adds(sum.access.buffer) ? place + number : number;
  };
  if (added.size() == 1) return add(*(to + walk(sum.access.strides)), added[0]);
  each_block(kernel, [&](std::int64_t n) {
    T* const from = to + walk(sum.access.strides);
    for (std::int64_t i = 0; i < n; ++i)
      add(from[i * sum.access.strides.back()], added[static_cast<std::size_t>(column() + i)]);
  });
}

void Machine::runs(const Kernel& kernel) {
  const Statement& sum = kernel.statements.back();
  if (kernel.form == Form::order) return order(kernel);
  with_number(sum.dtype, [&](auto zero) {
    kernel.form == Form::scatter ? scatter<decltype(zero)>(kernel, sum)
                                 : join<decltype(zero)>(kernel, sum);
  });
}

}  // namespace piper::backend
