#include "backend/cuda/print_kernel.h"

#include <algorithm>
#include <set>
#include <utility>

#include "backend/cuda/launch.h"
#include "backend/kernel/loops.h"
#include "backend/kernel/print_kernel.h"
#include "backend/kernel/print_statements.h"
#include "backend/kernel/schedule_passes.h"
#include "llvm/Support/ErrorHandling.h"

namespace piper::backend::cuda {

using tensor::DType;

namespace {

std::string number(std::int64_t value) { return std::to_string(value); }

class CudaPrinter : StatementPrinter {
 public:
  CudaPrinter(const Kernel& kernel, const KernelBody& body, bool canonical)
      : StatementPrinter(kernel, body, canonical,
                         {"at", "block", "draw", "earlier", "first", "first_sample", "found", "i", "j", "j0", "k", "lane", "mask", "masks", "own", "q", "q0", "row", "same", "u", "w",
                          "threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize"}),
        launch_(launch_of(kernel)),
        vector_(kernel.lanes.vector),
        index_type_(fits_in_32_bits(kernel, body) ? "int32_t" : "int64_t") {}

  std::string run(const std::string& name);

 private:
  using Range = std::pair<std::size_t, std::size_t>;

  // ---- what statements are made of
  std::string seed() const override { return "draw->seed"; }
  std::string step() const override { return "draw->step"; }
  std::string index(const Statement& s) const override { return "piper_within(" + registers_[static_cast<std::size_t>(s.access.index)] + ", " + number(bound(s)) + ")"; }
  bool stands_alone(const Statement& s) const override { return in_piece(s); }
  std::int64_t bound(const Statement& s) const;
  bool in_piece(const Statement& s) const;
  std::string piece(std::size_t i) const { return registers_[i] + "_piece"; }
  /// Where the piece of memory of a vector begins.
  std::string piece_place(const Statement& s);
  void mark_line(const Statement& s);
  void statement(std::size_t i);
  void effect(std::size_t i);

  // ---- loops
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
  void found_index(const std::string& position, const std::string& result);

  std::size_t num_rows() const { return kernel_.rows.size(); }
  std::size_t num_loops() const { return kernel_.rows.size() + kernel_.columns.size(); }
  std::size_t last() const { return num_loops() - 1; }

  const Launch launch_;
  const std::int64_t vector_;
  const std::string index_type_;
  std::string line_mark_;
};

/// How many values the index may have: what was checked of it, else what the buffer has room for.
std::int64_t CudaPrinter::bound(const Statement& s) const {
  const Statement& index = kernel_.statements[static_cast<std::size_t>(s.access.index)];
  for (const RangeCheck& check : kernel_.checks) {
    if (index.code == Code::load && check.buffer == index.access.buffer) return check.bound;
  }
  return body_.buffers[s.access.buffer].elements / s.access.index_stride;
}

bool CudaPrinter::in_piece(const Statement& s) const {
  if (vector_ == 1 || (s.code != Code::load && s.code != Code::store) || s.row || !s.access.guard.strides.empty() || s.access.strides.back() != 1) return false;
  if (s.access.index >= 0 && !gives_row_value(kernel_.statements[static_cast<std::size_t>(s.access.index)])) return false;
  bool aligned = s.access.offset % vector_ == 0 && s.access.index_stride % vector_ == 0;
  for (std::size_t loop = 0; loop + 1 < s.access.strides.size(); ++loop) aligned = aligned && s.access.strides[loop] % vector_ == 0;
  return aligned;
}

std::string CudaPrinter::piece_place(const Statement& s) {
  const std::string kept = std::exchange(variables_[last()], "j0");
  std::string text = buffers_.at(s.access.buffer) + " + (" + place(s) + ")";
  variables_[last()] = kept;
  return text;
}

/// `#line 14 "gpt.pipe"  // rms_norm`
void CudaPrinter::mark_line(const Statement& s) {
  if (canonical_ || s.op < 0) return;
  const SourcePlace& at = kernel_.places[static_cast<std::size_t>(s.op)];
  if (at.line == 0) return;
  std::string mark = "#line " + std::to_string(at.line) + " " + quoted(at.file) + "  // " + kernel_.ops[static_cast<std::size_t>(s.op)] + "\n";
  if (mark == line_mark_) return;
  out_ += mark;
  line_mark_ = std::move(mark);
}

void CudaPrinter::effect(std::size_t i) {
  const Statement& s = kernel_.statements[i];
  if (in_piece(s)) {
    const std::string to = piece(i) + ".at[u]";
    return line(to + " = " + (adds(s) ? add_flag(s) + " ? " + to + " + " + value(s, 0) + " : " : "") + value(s, 0) + ";");
  }
  const std::string to = element(s);
  if (s.code == Code::store_add) return line((kernel_.form == Form::sums ? registers_[i] : to) + " += " + value(s, 0) + ";");
  line(to + " = " + (adds(s) ? add_flag(s) + " ? " + to + " + " + value(s, 0) + " : " : "") + value(s, 0) + ";");
}

void CudaPrinter::statement(std::size_t i) {
  const Statement& s = kernel_.statements[i];
  if (inlined_.contains(i) || s.code == Code::constant) return;
  mark_line(s);
  if (is_effect(s.code)) return effect(i);
  const std::string& name = registers_[i];
  switch (s.code) {
    case Code::row_sum: return line(name + "_lane += " + value(s, 0) + ";");
    case Code::row_max: return line(name + "_lane = piper_max(" + name + "_lane, " + value(s, 0) + ");");
    case Code::row_first: return line("if (" + value(s, 0) + " == " + value(s, 1) + " && " + column() + " < " + name + "_lane) " + name + "_lane = " + column() + ";");
    default: return line("const " + c_type(s.dtype) + " " + name + " = " + (in_piece(s) ? piece(i) + ".at[u]" : expression(i)) + ";");
  }
}

std::string CudaPrinter::signature(const std::string& name) const {
  std::set<BufferIndex> written, flags;
  for (const Statement& s : kernel_.statements) {
    if (!is_effect(s.code)) continue;
    written.insert(s.access.buffer);
    if (adds(s)) flags.insert(s.access.buffer);
  }
  std::string text = kernel_draws(kernel_) ? "const piper_draw* __restrict__ draw, const uint64_t first_sample" : "";
  for (const BufferIndex buffer : kernel_parameters(kernel_)) {
    text += text.empty() ? "" : ", ";
    text += (written.contains(buffer) ? "" : "const ") + c_type(body_.buffers[buffer].dtype) + "* __restrict__ " + buffers_.at(buffer);
    if (flags.contains(buffer)) text += ", const uint32_t " + buffers_.at(buffer) + "_adds";
  }
  // 512 threads on a multiprocessor hide the latency of memory, and leave each the registers that it needs: left alone ptxas aims higher and spills.
  const std::int64_t blocks = std::max<std::int64_t>(1, 512 / launch_.threads);
  return "extern \"C\" __global__ void __launch_bounds__(" + number(launch_.threads) + ", " + number(blocks) + ") " + name + "(" + text + ")";
}

void CudaPrinter::number_of_thread(const std::string& name, const std::string& times) {
  line("const " + index_type_ + " " + name + " = ((" + index_type_ + ")blockIdx.x * " + number(launch_.threads) + " + threadIdx.x)" + times + ";");
}

/// The loop variables [first, end) from their position in row-major order.
void CudaPrinter::decode(const std::string& flat, std::size_t first, std::size_t end) {
  std::int64_t inner = 1;
  for (std::size_t loop = end; loop-- > first;) {
    const std::int64_t extent = loop_extent(kernel_, loop);
    const std::string rest = inner == 1 ? flat : flat + " / " + number(inner);
    line("const " + index_type_ + " " + variables_[loop] + " = " + (loop == first ? rest : extent == 1 ? "0" : rest + " % " + number(extent)) + ";");
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
  const auto type = [&](const Statement& s) { return "piper_piece<" + c_type(body_.buffers[s.access.buffer].dtype) + ", " + number(vector_) + ">"; };
  for (std::size_t i = pass.first; i < pass.second; ++i) {
    const Statement& s = statements[i];
    if (!in_piece(s)) continue;
    if (s.code == Code::load) line("const " + type(s) + " " + piece(i) + " = piper_read<" + number(vector_) + ">(" + piece_place(s) + ");");
    if (s.code == Code::store) {
      line(type(s) + " " + piece(i) + ";");
      if (adds(s)) line("if (" + add_flag(s) + ") " + piece(i) + " = piper_read<" + number(vector_) + ">(" + piece_place(s) + ");");
    }
  }
  out_ += "#pragma unroll\n";
  open("for (int32_t u = 0; u < " + number(vector_) + "; ++u)");
  line("const " + index_type_ + " j = j0 + u;");
  for (std::size_t i = pass.first; i < pass.second; ++i) statement(i);
  close();
  for (std::size_t i = pass.first; i < pass.second; ++i) {
    if (statements[i].code == Code::store && in_piece(statements[i])) line("piper_write(" + piece_place(statements[i]) + ", " + piece(i) + ");");
  }
}

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
    while (end < statements.size() && !statements[end].row && statements[end].pass == statements[i].pass) ++end;
    column(Range{i, end});
    i = end;
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
    if (is_reduction(s.code)) line("__shared__ " + c_type(s.dtype) + " " + registers_[i] + "_partial[" + number(kernel_.lanes.count / Lanes::kGroup) + "];");
  }
}

void CudaPrinter::begin_reductions(const Range& pass) {
  for (std::size_t i = pass.first; i < pass.second; ++i) {
    const Statement& s = kernel_.statements[i];
    if (!is_reduction(s.code)) continue;
    const std::string zero = literal(0, s.dtype);
    line(c_type(s.dtype) + " " + registers_[i] + "_lane = " +
         (s.code == Code::row_sum ? zero : s.code == Code::row_max ? "-piper_infinity(" + zero + ")" : "0x7fffffffffffffffll") + ";");
  }
}

void CudaPrinter::end_reductions(const Range& pass) {
  for (std::size_t i = pass.first; i < pass.second; ++i) {
    const Statement& s = kernel_.statements[i];
    if (!is_reduction(s.code)) continue;
    const std::string& name = registers_[i];
    const char* join = s.code == Code::row_sum ? "piper_sum" : s.code == Code::row_max ? "piper_largest" : "piper_first";
    const std::string partial = kernel_.lanes.count > Lanes::kGroup ? name + "_partial" : "(" + c_type(s.dtype) + "*)0";
    line("const " + c_type(s.dtype) + " " + name + " = piper_join_row<" + join + ", " + number(kernel_.lanes.count) + ">(" + name + "_lane, " + partial + ");");
  }
}

/// A loop over the columns from `begin` on in steps of `step` elements.
void CudaPrinter::columns(const Range& pass, const std::string& begin, const std::string& step) {
  const bool one_loop = kernel_.columns.size() == 1;
  const std::string innermost = variables_[last()];
  const std::string flat = !one_loop ? "at" : vector_ > 1 ? "j0" : innermost;
  open("for (" + index_type_ + " " + flat + " = " + begin + "; " + flat + " < " + number(product(kernel_.columns)) + "; " + flat + " += " + step + ")");
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
    line("const " + index_type_ + " row = (" + index_type_ + ")blockIdx.x * " + number(rows_per_block(kernel_)) + " + threadIdx.x / " + number(lanes) + ";");
    line("const int32_t lane = threadIdx.x % " + number(lanes) + ";");
    if (spread_loops(kernel_) % rows_per_block(kernel_) != 0) line("if (row >= " + number(spread_loops(kernel_)) + ") return;");
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
        columns(pass, "lane" + (vector_ == 1 ? std::string() : " * " + number(vector_)), number(lanes * vector_));
        end_reductions(pass);
      });
}

void CudaPrinter::sums() {
  const std::size_t kept = kept_rows(kernel_);
  number_of_thread("at", "");
  line("if (at >= " + number(spread_loops(kernel_)) + ") return;");
  // The result's loops: the kept rows, then the columns.
  std::int64_t columns = product(kernel_.columns);
  const std::string in_row = columns == 1 ? "0" : kept == 0 ? "at" : "(at % " + number(columns) + ")";
  decode(in_row, num_rows(), num_loops());
  if (kept > 0) decode(columns == 1 ? "at" : "(at / " + number(columns) + ")", 0, kept);
  for (std::size_t i = 0; i < kernel_.statements.size(); ++i) {
    const Statement& s = kernel_.statements[i];
    if (s.code != Code::store_add) continue;
    line(c_type(s.dtype) + " " + registers_[i] + " = " + (adds(s) ? add_flag(s) + " ? " + element(s) + " : " : "") + literal(0, s.dtype) + ";");
  }
  for (std::size_t r = kept; r < num_rows(); ++r) {
    const std::string& i = variables_[r];
    if (r + 1 == num_rows()) out_ += "#pragma unroll 4\n";
    open("for (" + index_type_ + " " + i + " = 0; " + i + " < " + number(kernel_.rows[r]) + "; ++" + i + ")");
  }
  for (std::size_t i = 0; i < kernel_.statements.size(); ++i) statement(i);
  for (std::size_t r = kept; r < num_rows(); ++r) close();
  for (std::size_t i = 0; i < kernel_.statements.size(); ++i) {
    if (kernel_.statements[i].code == Code::store_add) line(element(kernel_.statements[i]) + " = " + registers_[i] + ";");
  }
}

/// The index at one position: the statements that it needs, in a scope of their own.
void CudaPrinter::found_index(const std::string& position, const std::string& result) {
  const auto sum = std::find_if(kernel_.statements.begin(), kernel_.statements.end(), [](const Statement& s) { return s.code == Code::store_add; });
  std::vector<bool> needed(kernel_.statements.size(), false);
  needed[static_cast<std::size_t>(sum->access.index)] = true;
  for (std::size_t i = needed.size(); i-- > 0;) {
    if (!needed[i]) continue;
    const Statement& s = kernel_.statements[i];
    for (const std::int32_t o : {s.operands[0], s.operands[1], s.operands[2], s.access.index}) {
      if (o >= 0) needed[static_cast<std::size_t>(o)] = true;
    }
  }
  open("");
  decode(position, 0, index_in_columns(kernel_) ? num_loops() : num_rows());
  for (std::size_t i = 0; i < needed.size(); ++i) {
    if (needed[i]) statement(i);
  }
  line(result + index(*sum) + ";");
  close();
}

/// One block per position of the index: the first of equal ones adds up all of them, in order.
void CudaPrinter::scatter() {
  const std::string threads = number(launch_.threads), positions = number(spread_loops(kernel_));
  line("__shared__ uint32_t masks[" + number(launch_.threads / 32) + "];");
  line("const " + index_type_ + " first = blockIdx.x;");
  line("int64_t own;");
  found_index("first", "own = ");
  line("bool earlier = false;");
  open("for (" + index_type_ + " q = threadIdx.x; q < first; q += " + threads + ")");
  found_index("q", "earlier = earlier || own == ");
  close();
  line("if (__syncthreads_or(earlier)) return;");
  open("for (" + index_type_ + " q0 = first; q0 < " + positions + "; q0 += " + threads + ")");
  line("const " + index_type_ + " q = q0 + threadIdx.x;");
  line("bool same = false;");
  open("if (q < " + positions + ")");
  found_index("q", "same = own == ");
  close();
  line("const uint32_t found = __ballot_sync(0xffffffffu, same);");
  line("if (threadIdx.x % 32 == 0) masks[threadIdx.x / 32] = found;");
  line("__syncthreads();");
  open("for (int32_t w = 0; w < " + number(launch_.threads / 32) + "; ++w)");
  open("for (uint32_t mask = masks[w]; mask != 0; mask &= mask - 1)");
  line("const " + index_type_ + " at = q0 + w * 32 + (__ffs((int)mask) - 1);");
  if (index_in_columns(kernel_)) {
    decode("at", 0, num_loops());
    line("if (threadIdx.x != 0) continue;");
    for (std::size_t i = 0; i < kernel_.statements.size(); ++i) statement(i);
  } else {
    decode("at", 0, num_rows());
    passes([&](std::size_t i) { statement(i); },
           [&](const Range& pass) {
             // The name `at` is that of the position here; of several columns only the innermost runs over threads.
             for (std::size_t c = 0; c + 1 < kernel_.columns.size(); ++c) {
               const std::string& k = variables_[num_rows() + c];
               open("for (" + index_type_ + " " + k + " = 0; " + k + " < " + number(kernel_.columns[c]) + "; ++" + k + ")");
             }
             const std::string& j = variables_[last()];
             open("for (" + index_type_ + " " + j + " = threadIdx.x; " + j + " < " + number(kernel_.columns.back()) + "; " + j + " += " + threads + ")");
             vector_of(pass);
             for (std::size_t c = 0; c < kernel_.columns.size(); ++c) close();
           });
  }
  close();
  close();
  line("__syncthreads();");
  close();
}

std::string CudaPrinter::run(const std::string& name) {
  name_everything();
  inline_loads();
  open(signature(name));
  switch (kernel_.form) {
    case Form::elements: elements(); break;
    case Form::rows: rows(); break;
    case Form::sums: sums(); break;
    case Form::scatter: scatter(); break;
    case Form::sequence: llvm_unreachable("a nest for one thread");
  }
  close();
  return out_;
}

}  // namespace

std::string print_kernel(const Kernel& kernel, const KernelBody& body, const std::string& name, bool canonical) { return CudaPrinter(kernel, body, canonical).run(name); }

}  // namespace piper::backend::cuda
