#include "backend/cuda/print_kernel.h"

#include <algorithm>
#include <set>
#include <utility>

#include "backend/cuda/cuda_printer.h"
#include "backend/cuda/launch.h"
#include "backend/kernel/loops.h"
#include "backend/kernel/print_kernel.h"
#include "backend/kernel/print_statements.h"
#include "backend/kernel/schedule_passes.h"
#include "llvm/Support/ErrorHandling.h"

namespace piper::backend::cuda {

using tensor::DType;

/// The number of possible indices: the checked bound, else the capacity of the buffer.
std::int64_t CudaPrinter::bound(const Statement& s) const {
  const Statement& index = kernel_.statements[static_cast<std::size_t>(s.access.index)];
  for (const RangeCheck& check : kernel_.checks) {
    if (index.code == Code::load && check.buffer == index.access.buffer) return check.bound;
  }
  return body_.buffers[s.access.buffer].elements / s.access.index_stride;
}

bool CudaPrinter::in_tile(const Statement& s) const {
  if (vector_ == 1 || (s.code != Code::load && s.code != Code::store) || s.row ||
      !s.access.guard.strides.empty() || s.access.strides.back() != 1)
    return false;
  if (s.access.index >= 0 &&
      !gives_row_value(kernel_.statements[static_cast<std::size_t>(s.access.index)]))
    return false;
  bool aligned = s.access.offset % vector_ == 0 && s.access.index_stride % vector_ == 0;
  for (std::size_t loop = 0; loop + 1 < s.access.strides.size(); ++loop)
    aligned = aligned && s.access.strides[loop] % vector_ == 0;
  return aligned;
}

/// Whether the elements of a vector are neighbours within one sample, from a multiple of 4 on,
/// because 4 share a draw.
bool CudaPrinter::draws_at_once(const Statement& s) const {
  if (s.code != Code::dropout || vector_ % 4 != 0 || s.element_strides.back() != 1 ||
      s.sample_strides.back() != 0)
    return false;
  return std::all_of(s.element_strides.begin(), s.element_strides.end() - 1,
                     [](std::int64_t stride) { return stride % 4 == 0; });
}

std::string CudaPrinter::tile_place(const Statement& s) {
  const std::string kept = std::exchange(variables_[last()], "j0");
  std::string text = buffers_.at(s.access.buffer) + " + (" + place(s) + ")";
  variables_[last()] = kept;
  return text;
}

/// `#line 14 "gpt.pipe"  // rms_norm`
void CudaPrinter::mark_line(const Statement& s) {
  if (canonical_ || s.op < 0) return;
  const SourceLocation& at = kernel_.places[static_cast<std::size_t>(s.op)];
  if (at.line == 0) return;
  std::string mark = "#line " + std::to_string(at.line) + " " + quoted(at.file) + "  // " +
                     kernel_.ops[static_cast<std::size_t>(s.op)] + "\n";
  if (mark == line_mark_) return;
  out_ += mark;
  line_mark_ = std::move(mark);
}

void CudaPrinter::effect(std::size_t i) {
  const Statement& s = kernel_.statements[i];
  if (in_tile(s)) {
    const std::string to = tile(i) + ".at[u]";
    return line(to + " = " +
                (adds(s) ? add_flag(s) + " ? " + to + " + " + value(s, 0) + " : " : "") +
                value(s, 0) + ";");
  }
  const std::string to = element(s);
  if (s.code == Code::store_add)
    return line((kernel_.form == Form::sums ? registers_[i]
                 : vector_ > 1              ? "added[u]"
                                            : "added") +
                " += " + value(s, 0) + ";");
  line(to + " = " + (adds(s) ? add_flag(s) + " ? " + to + " + " + value(s, 0) + " : " : "") +
       value(s, 0) + ";");
}

/// Whether the elements of a vector are in one piece. The begin of an interval is a multiple of the
/// boundary of parameters in a bucket, which no vector is longer than.
bool CudaPrinter::is_uniform(const Statement& s) const {
  if (vector_ == 1 || s.code != Code::piecewise || s.row || s.access.strides.back() != 1)
    return false;
  const auto divides = [&](std::int64_t number) { return number % vector_ == 0; };
  return std::all_of(s.access.strides.begin(), s.access.strides.end() - 1, divides) &&
         std::all_of(s.pieces.ends.begin(), s.pieces.ends.end(), divides);
}

void CudaPrinter::statement(std::size_t i) {
  const Statement& s = kernel_.statements[i];
  if (inlined_.contains(i) || s.code == Code::constant || is_uniform(s)) return;
  mark_line(s);
  if (is_effect(s.code)) return effect(i);
  const std::string& name = registers_[i];
  switch (s.code) {
    case Code::row_sum: return line(name + "_lane += " + value(s, 0) + ";");
    case Code::row_max:
      return line(name + "_lane = piper_max(" + name + "_lane, " + value(s, 0) + ");");
    case Code::row_first:
      return line("if (" + value(s, 0) + " == " + value(s, 1) + " && " + column() + " < " + name +
                  "_lane) " + name + "_lane = " + column() + ";");
    default: break;
  }
  const std::string text = in_tile(s) ? tile(i) + ".at[u]"
                           : draws_at_once(s)
                               ? "piper_kept(" + value(s, 0) + ", " +
                                     literal(s.scalar, DType::f64) + ", " + drawn(i) + "[u])"
                               : expression(i);
  line("const " + c_type(s.dtype) + " " + name + " = " + text + ";");
}

/// The number of threads that a multiprocessor must have room for, so that 32 KiB of loads are in
/// flight and hide the latency of memory. 512 leave each thread 128 registers, 1024 half as many,
/// which is too few for 64-bit numbers. Without this bound ptxas aims higher and spills.
std::int64_t CudaPrinter::resident_threads() const {
  std::int64_t bytes = 0;
  for (const Statement& s : kernel_.statements) {
    if (s.dtype == DType::f64) return 512;
    if (s.code != Code::load || s.row) continue;
    const bool unrolled = kernel_.form == Form::sums || kernel_.form == Form::scatter;
    bytes += static_cast<std::int64_t>(tensor::dtype_bytes(body_.buffers[s.access.buffer].dtype)) *
             (in_tile(s) ? vector_ : 1) * (unrolled ? 4 : 1);
  }
  return 512 * bytes < 32768 ? 1024 : 512;
}

std::string CudaPrinter::signature(const std::string& name) const {
  const std::set<BufferIndex> written = buffer_use(kernel_).writes;
  std::set<BufferIndex> flags;
  for (const Statement& s : kernel_.statements) {
    if (is_effect(s.code) && adds(s)) flags.insert(s.access.buffer);
  }
  std::string text = kernel_draws(kernel_) ? "const piper_draw* __restrict__ draw" : "";
  for (const std::int32_t interval : kernel_intervals(kernel_))
    text += (text.empty() ? "" : ", ") +
            ("const uint64_t first_" + body_.intervals[static_cast<std::size_t>(interval)]);
  for (const BufferIndex buffer : kernel_parameters(kernel_)) {
    text += text.empty() ? "" : ", ";
    text += (written.contains(buffer) ? "" : "const ") + c_type(body_.buffers[buffer].dtype) +
            "* __restrict__ " + buffers_.at(buffer);
    if (flags.contains(buffer)) text += ", const uint32_t " + buffers_.at(buffer) + "_adds";
  }
  const std::int64_t blocks = std::max<std::int64_t>(1, resident_threads() / launch_.threads);
  return "extern \"C\" __global__ void __launch_bounds__(" + number(launch_.threads) + ", " +
         number(blocks) + ") " + name + "(" + text + ")";
}

void CudaPrinter::number_of_thread(const std::string& name, const std::string& times) {
  line("const " + index_type_ + " " + name + " = ((" + index_type_ + ")blockIdx.x * " +
       number(launch_.threads) + " + threadIdx.x)" + times + ";");
}

/// The loop variables [first, end) from their position in row-major order.
void CudaPrinter::decode(const std::string& flat, std::size_t first, std::size_t end) {
  std::int64_t inner = 1;
  for (std::size_t loop = end; loop-- > first;) {
    const std::int64_t extent = loop_extent(kernel_, loop);
    const std::string rest = inner == 1 ? flat : flat + " / " + number(inner);
    line("const " + index_type_ + " " + variables_[loop] + " = " +
         (loop == first ? rest
          : extent == 1 ? "0"
                        : rest + " % " + number(extent)) +
         ";");
    inner *= extent;
  }
}

/// The elements of one vector: reads of memory, statements, writes.
void CudaPrinter::vector_of(const Range& pass) {
  const auto& statements = kernel_.statements;
  if (vector_ == 1) {
    for (std::size_t i = pass.first; i < pass.second; ++i) statement(i);
    return;
  }
  const auto type = [&](const Statement& s) {
    return "piper_tile<" + c_type(body_.buffers[s.access.buffer].dtype) + ", " + number(vector_) +
           ">";
  };
  for (std::size_t i = pass.first; i < pass.second; ++i) {
    const Statement& s = statements[i];
    if (draws_at_once(s)) {
      const std::string innermost = std::exchange(variables_[last()], "j0");
      line("uint32_t " + drawn(i) + "[" + number(vector_) + "];");
      line("piper_random_u32s<" + number(vector_) + ">(" + stream_key(s) + ", (uint64_t)(" +
           position(s.element_strides) + "), " + drawn(i) + ");");
      variables_[last()] = innermost;
    }
    if (is_uniform(s)) {
      const std::string innermost = std::exchange(variables_[last()], "j0");
      line("const " + c_type(s.dtype) + " " + registers_[i] + " = " + expression(i) + ";");
      variables_[last()] = innermost;
    }
    if (!in_tile(s)) continue;
    if (s.code == Code::load)
      line("const " + type(s) + " " + tile(i) + " = piper_read<" + number(vector_) + ">(" +
           tile_place(s) + ");");
    if (s.code == Code::store) {
      line(type(s) + " " + tile(i) + ";");
      if (adds(s))
        line("if (" + add_flag(s) + ") " + tile(i) + " = piper_read<" + number(vector_) + ">(" +
             tile_place(s) + ");");
    }
  }
  out_ += "#pragma unroll\n";
  open("for (int32_t u = 0; u < " + number(vector_) + "; ++u)");
  line("const " + index_type_ + " j = j0 + u;");
  for (std::size_t i = pass.first; i < pass.second; ++i) statement(i);
  close();
  for (std::size_t i = pass.first; i < pass.second; ++i) {
    if (statements[i].code == Code::store && in_tile(statements[i]))
      line("piper_write(" + tile_place(statements[i]) + ", " + tile(i) + ");");
  }
}

void CudaPrinter::elements() {
  number_of_thread("at", vector_ == 1 ? "" : " * " + number(vector_));
  line("if (at >= " + number(spread_loops(kernel_)) + ") return;");
  const std::string innermost = variables_[last()];
  if (vector_ > 1) variables_[last()] = "j0";
  decode("at", 0, num_loops());
  const std::string first_column = column();
  variables_[last()] = innermost;
  passes(
      [&](std::size_t i) {
        if (!is_effect(kernel_.statements[i].code)) return statement(i);
        mark_line(kernel_.statements[i]);
        if (product(kernel_.columns) == 1) return effect(i);
        open("if (" + first_column + " == 0)");
        effect(i);
        close();
      },
      [&](const Range& pass) { vector_of(pass); });
}

void CudaPrinter::shared() {
  if (kernel_.lanes.count <= Lanes::kGroup) return;
  for (std::size_t i = 0; i < kernel_.statements.size(); ++i) {
    const Statement& s = kernel_.statements[i];
    if (is_reduction(s.code))
      line("__shared__ " + c_type(s.dtype) + " " + registers_[i] + "_partial[" +
           number(kernel_.lanes.count / Lanes::kGroup) + "];");
  }
}

void CudaPrinter::begin_reductions(const Range& pass) {
  for (std::size_t i = pass.first; i < pass.second; ++i) {
    const Statement& s = kernel_.statements[i];
    if (!is_reduction(s.code)) continue;
    const std::string zero = literal(0, s.dtype);
    line(c_type(s.dtype) + " " + registers_[i] + "_lane = " +
         (s.code == Code::row_sum   ? zero
          : s.code == Code::row_max ? "-piper_infinity(" + zero + ")"
                                    : "0x7fffffffffffffffll") +
         ";");
  }
}

void CudaPrinter::end_reductions(const Range& pass) {
  for (std::size_t i = pass.first; i < pass.second; ++i) {
    const Statement& s = kernel_.statements[i];
    if (!is_reduction(s.code)) continue;
    const std::string& name = registers_[i];
    const char* join = s.code == Code::row_sum   ? "piper_sum"
                       : s.code == Code::row_max ? "piper_largest"
                                                 : "piper_first";
    const std::string partial =
        kernel_.lanes.count > Lanes::kGroup ? name + "_partial" : "(" + c_type(s.dtype) + "*)0";
    line("const " + c_type(s.dtype) + " " + name + " = piper_join_row<" + join + ", " +
         number(kernel_.lanes.count) + ">(" + name + "_lane, " + partial + ");");
  }
}

/// A loop over the columns from `begin` on in steps of `step` elements.
void CudaPrinter::columns(const Range& pass, const std::string& begin, const std::string& step) {
  const bool one_loop = kernel_.columns.size() == 1;
  const std::string innermost = variables_[last()];
  const std::string flat = !one_loop ? "at" : vector_ > 1 ? "j0" : innermost;
  open("for (" + index_type_ + " " + flat + " = " + begin + "; " + flat + " < " +
       number(product(kernel_.columns)) + "; " + flat + " += " + step + ")");
  if (!one_loop) {
    if (vector_ > 1) variables_[last()] = "j0";
    decode("at", num_rows(), num_loops());
    variables_[last()] = innermost;
  }
  vector_of(pass);
  close();
}

void CudaPrinter::rows() {
  const std::int64_t lanes = kernel_.lanes.count;
  shared();
  if (lanes > Lanes::kGroup) {
    line("const " + index_type_ + " row = blockIdx.x;");
    line("const int32_t lane = threadIdx.x;");
  } else {
    line("const " + index_type_ + " row = (" + index_type_ + ")blockIdx.x * " +
         number(rows_per_block(kernel_)) + " + threadIdx.x / " + number(lanes) + ";");
    line("const int32_t lane = threadIdx.x % " + number(lanes) + ";");
    if (spread_loops(kernel_) % rows_per_block(kernel_) != 0)
      line("if (row >= " + number(spread_loops(kernel_)) + ") return;");
  }
  decode("row", 0, num_rows());
  passes(
      [&](std::size_t i) {
        if (!is_effect(kernel_.statements[i].code)) return statement(i);
        mark_line(kernel_.statements[i]);
        open("if (lane == 0)");
        effect(i);
        close();
      },
      [&](const Range& pass) {
        begin_reductions(pass);
        columns(pass, "lane" + (vector_ == 1 ? std::string() : " * " + number(vector_)),
                number(lanes * vector_));
        end_reductions(pass);
      });
}

void CudaPrinter::sums() {
  const std::size_t kept = kept_rows(kernel_);
  number_of_thread("at", "");
  line("if (at >= " + number(spread_loops(kernel_)) + ") return;");
  // The result's loops: the kept rows, then the columns.
  std::int64_t columns = product(kernel_.columns);
  const std::string in_row = columns == 1 ? "0"
                             : kept == 0  ? "at"
                                          : "(at % " + number(columns) + ")";
  decode(in_row, num_rows(), num_loops());
  if (kept > 0) decode(columns == 1 ? "at" : "(at / " + number(columns) + ")", 0, kept);
  for (std::size_t i = 0; i < kernel_.statements.size(); ++i) {
    const Statement& s = kernel_.statements[i];
    if (s.code != Code::store_add) continue;
    line(c_type(s.dtype) + " " + registers_[i] + " = " +
         (adds(s) ? add_flag(s) + " ? " + element(s) + " : " : "") + literal(0, s.dtype) + ";");
  }
  for (std::size_t r = kept; r < num_rows(); ++r) {
    const std::string& i = variables_[r];
    if (r + 1 == num_rows()) out_ += "#pragma unroll 4\n";
    open("for (" + index_type_ + " " + i + " = 0; " + i + " < " + number(kernel_.rows[r]) + "; ++" +
         i + ")");
  }
  for (std::size_t i = 0; i < kernel_.statements.size(); ++i) statement(i);
  for (std::size_t r = kept; r < num_rows(); ++r) close();
  for (std::size_t i = 0; i < kernel_.statements.size(); ++i) {
    if (kernel_.statements[i].code == Code::store_add)
      line(element(kernel_.statements[i]) + " = " + registers_[i] + ";");
  }
}

std::string CudaPrinter::run(const std::string& name) {
  name_everything();
  inline_values();
  open(signature(name));
  skip_test();
  piece_tables();
  switch (kernel_.form) {
    case Form::elements: elements(); break;
    case Form::rows: rows(); break;
    case Form::sums: sums(); break;
    case Form::order: order(); break;
    case Form::scatter: scatter(); break;
    case Form::join: join(); break;
    case Form::sequence: llvm_unreachable("a nest for one thread");
  }
  close();
  return out_;
}

std::string print_kernel(const Kernel& kernel, const KernelBody& body, const std::string& name,
                         bool canonical) {
  return CudaPrinter(kernel, body, canonical).run(name);
}

}  // namespace piper::backend::cuda
