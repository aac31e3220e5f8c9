#include "backend/kernel/schedule_kernel.h"

#include <algorithm>
#include <map>

#include "backend/kernel/loops.h"
#include "backend/kernel/schedule_passes.h"

namespace piper::backend {

namespace {

Form form_of(const Kernel& kernel) {
  Form form = Form::elements;
  for (const Statement& s : kernel.statements) {
    if (is_reduction(s.code)) form = Form::rows;
    if (s.code == Code::store_add) form = Form::sums;
  }
  return form;
}

/// The nest's ops that have statements here.
void name_ops(Kernel& kernel, const Kernel& nest) {
  std::map<std::int32_t, std::int32_t> numbers;
  for (const Statement& s : kernel.statements) numbers.try_emplace(s.op, 0);
  numbers.erase(-1);
  for (auto& [op, number] : numbers) {
    number = static_cast<std::int32_t>(kernel.ops.size());
    kernel.ops.push_back(nest.ops[static_cast<std::size_t>(op)]);
    kernel.values.push_back(nest.values[static_cast<std::size_t>(op)]);
    kernel.places.push_back(nest.places[static_cast<std::size_t>(op)]);
  }
  for (Statement& s : kernel.statements) {
    if (s.op >= 0) s.op = numbers.at(s.op);
  }
}

/// Whether `vector` neighbours along the innermost loop are contiguous and aligned.
bool in_one_tile(const Kernel& kernel, const Statement& s, std::int64_t vector) {
  if ((s.code != Code::load && s.code != Code::store) || s.row || !s.access.guard.strides.empty() ||
      s.access.strides.back() != 1)
    return false;
  if (s.access.index >= 0 &&
      !gives_row_value(kernel.statements[static_cast<std::size_t>(s.access.index)]))
    return false;
  bool aligned = s.access.offset % vector == 0 && s.access.index_stride % vector == 0;
  for (std::size_t loop = 0; loop + 1 < s.access.strides.size(); ++loop)
    aligned = aligned && s.access.strides[loop] % vector == 0;
  return aligned;
}

void choose_lanes(Kernel& kernel, const StepBuffers& buffers) {
  Lanes lanes;
  lanes.count = 1;
  lanes.whole_row = true;
  if (kernel.form == Form::rows || kernel.form == Form::elements ||
      (kernel.form == Form::scatter && !kernel.runs->in_columns)) {
    // The number of elements of the narrowest type in 16 bytes.
    std::size_t bytes = 8;
    for (const Statement& s : kernel.statements) {
      if (in_one_tile(kernel, s, 1))
        bytes = std::min(bytes, tensor::dtype_bytes(buffers.at(s.access.buffer).dtype));
    }
    for (lanes.vector = static_cast<std::int32_t>(16 / bytes); lanes.vector > 1;
         lanes.vector /= 2) {
      const auto tile = [&](const Statement& s) { return in_one_tile(kernel, s, lanes.vector); };
      if (kernel.columns.back() % lanes.vector == 0 &&
          std::any_of(kernel.statements.begin(), kernel.statements.end(), tile))
        break;
    }
  }
  // Two vectors for each thread of a row, up to the size of a block.
  const std::int64_t wanted = product(kernel.columns) / (2 * lanes.vector);
  while (kernel.form == Form::rows && lanes.count < wanted && lanes.count < Lanes::kMax)
    lanes.count *= 2;
  kernel.lanes = lanes;
}

}  // namespace

void schedule_kernel(Kernel& kernel, const Kernel& nest, const StepBuffers& buffers) {
  for (const RangeCheck& check : nest.checks) {
    const bool reads =
        std::any_of(kernel.statements.begin(), kernel.statements.end(), [&](const Statement& s) {
          return s.code == Code::load && s.access.buffer == check.buffer;
        });
    if (reads) kernel.checks.push_back(check);
  }
  schedule_passes(kernel, {}, [&](BufferIndex buffer) { return buffers.at(buffer).accumulates; });
  if (!kernel.runs) kernel.form = form_of(kernel);
  name_ops(kernel, nest);
  choose_lanes(kernel, buffers);
}

}  // namespace piper::backend
