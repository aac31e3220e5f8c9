#include "backend/kernel/print_kernel.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "backend/dtypes.h"
#include "backend/kernel/print_statements.h"
#include "backend/kernel/schedule_passes.h"

namespace piper::backend {

using tensor::DType;

std::string c_type(DType dtype) { return row_of(dtype).cpp; }

namespace {

bool has_access(const Statement& s) { return s.code == Code::load || is_effect(s.code); }

bool names_word(const std::string& text, const std::string& word) {
  const auto in_word = [&](std::size_t i) {
    return i < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[i])) != 0 || text[i] == '_');
  };
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    if ((at == 0 || !in_word(at - 1)) && !in_word(at + word.size())) return true;
  }
  return false;
}

class Printer : StatementPrinter {
 public:
  Printer(const Kernel& kernel, const KernelBody& body, bool canonical)
      : StatementPrinter(kernel, body, canonical,
                         {"e", "from", "i", "j", "j0", "k", "l", "piece", "rank", "to"}) {}

  std::string run(const std::string& name);

 private:
  std::string dropout_key(const Statement& s) const override {
    const std::vector<const Statement*> dropouts = kernel_dropouts(kernel_);
    const auto at = std::find(dropouts.begin(), dropouts.end(), &s);
    return draws_name(static_cast<std::size_t>(at - dropouts.begin()));
  }
  std::string seed() const override { return "rank->seed"; }
  std::string step() const override { return "rank->global_step"; }
  std::string signature(const std::string& name) const;
  /// Opens a loop that must not be unrolled. g++ 12 unrolls short loops before it vectorises, and
  /// then takes wrong elements of neighbouring rows (masked loads, permutations of eight doubles).
  void loop(const std::string& variable, std::int64_t extent) {
    out_ += "#pragma GCC unroll 1\n";
    open("for (int64_t " + variable + " = 0; " + variable + " < " + std::to_string(extent) +
         "; ++" + variable + ")");
  }
  void statement(std::size_t i);
  void columns(std::size_t begin, std::size_t end);
  /// Whether piecewise values of the columns change together and walk with a single loop, so that
  /// a loop over pieces can stand around it. The inner loop then has constants.
  bool has_piece_loop(std::size_t begin, std::size_t end) const;
  void piece_loop(std::size_t begin, std::size_t end);
  void column_statements(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) statement(i);
  }
  /// The same under a loop over lanes, which declares the column only if it is read.
  void lane_statements(const std::string& column, std::size_t begin, std::size_t end) {
    std::string before = std::move(out_);
    out_.clear();
    column_statements(begin, end);
    std::string statements = std::move(out_);
    out_ = std::move(before);
    if (names_word(statements, "j")) line("const int64_t j = " + column + ";");
    out_ += statements;
  }
};

void Printer::statement(std::size_t i) {
  const Statement& s = kernel_.statements[i];
  if (inlined_.contains(i)) return;
  switch (s.code) {
    case Code::constant: return;
    case Code::store: {
      const std::string to = element(s);
      return line(to + " = " +
                  (adds(s) ? add_flag(s) + " ? " + to + " + " + value(s, 0) + " : " : "") +
                  value(s, 0) + ";");
    }
    case Code::store_add: return line(element(s) + " += " + value(s, 0) + ";");
    case Code::total: return line(registers_[i] + " += " + value(s, 0) + ";");
    case Code::row_sum: return line(registers_[i] + "_lanes[l] += " + value(s, 0) + ";");
    case Code::row_max:
      return line(registers_[i] + "_lanes[l] = piper_max(" + registers_[i] + "_lanes[l], " +
                  value(s, 0) + ");");
    case Code::row_first: {
      const std::string flat = column();
      return line("if (" + value(s, 0) + " == " + value(s, 1) + " && " + flat + " < " +
                  registers_[i] + ") " + registers_[i] + " = " + flat + ";");
    }
    default:
      return line("const " + c_type(s.dtype) + " " + registers_[i] + " = " + expression(i) + ";");
  }
}

bool Printer::has_piece_loop(std::size_t begin, std::size_t end) const {
  const Statement* first = nullptr;
  for (std::size_t i = begin; i < end; ++i) {
    const Statement& s = kernel_.statements[i];
    if (s.code != Code::piecewise) continue;
    if (first == nullptr) first = &s;
    if (s.access.strides.back() != 1 || s.interval != first->interval ||
        s.pieces.ends != first->pieces.ends)
      return false;
  }
  return first != nullptr && kernel_.rows.empty() && kernel_.columns.size() == 1;
}

void Printer::piece_loop(std::size_t begin, std::size_t end) {
  const auto is_piecewise = [&](std::size_t i) {
    return kernel_.statements[i].code == Code::piecewise;
  };
  std::size_t first = begin;
  while (!is_piecewise(first)) ++first;
  const Statement& s = kernel_.statements[first];
  const std::string ends = ends_of(first), extent = std::to_string(kernel_.columns[0]);
  const std::string before =
      s.interval < 0 ? "0"
                     : "(int64_t)first_" + body_.intervals[static_cast<std::size_t>(s.interval)];
  line("int piece = piper_bisect(" + ends + ", " + std::to_string(s.pieces.ends.size()) +
       ", (int64_t)(" + before + "));");
  out_ += "#pragma GCC unroll 1\n";
  open("for (int64_t from = 0; from < " + extent + "; ++piece)");
  line("const int64_t to = " + ends + "[piece] - " + before + " < " + extent + " ? " + ends +
       "[piece] - " + before + " : " + extent + ";");
  for (std::size_t i = begin; i < end; ++i) {
    if (is_piecewise(i))
      line("const " + c_type(kernel_.statements[i].dtype) + " " + registers_[i] + " = " +
           registers_[i] + "_numbers[piece];");
  }
  out_ += "#pragma GCC ivdep\n#pragma GCC unroll 1\n";
  open("for (int64_t j = from; j < to; ++j)");
  for (std::size_t i = begin; i < end; ++i) {
    if (!is_piecewise(i)) statement(i);
  }
  close();
  line("from = to;");
  close();
}

void Printer::columns(std::size_t begin, std::size_t end) {
  const auto& statements = kernel_.statements;
  bool lanes = false, scatters = false;
  for (std::size_t i = begin; i < end; ++i) {
    const Statement& s = statements[i];
    const std::string type = is_reduction(s.code) ? c_type(operand(s, 0).dtype) : "";
    if (s.code == Code::row_sum) line(type + " " + registers_[i] + "_lanes[16] = {};");
    if (s.code == Code::row_max) {
      line(type + " " + registers_[i] + "_lanes[16];");
      line("for (int l = 0; l < 16; ++l) " + registers_[i] + "_lanes[l] = -piper_infinity(" +
           literal(0, operand(s, 0).dtype) + ");");
    }
    if (s.code == Code::row_first) line("int64_t " + registers_[i] + " = INT64_MAX;");
    lanes = lanes || s.code == Code::row_sum || s.code == Code::row_max;
    scatters = scatters || (s.code == Code::store_add && s.access.index >= 0 &&
                            !gives_row_value(statements[static_cast<std::size_t>(s.access.index)]));
  }
  if (!lanes && !scatters && has_piece_loop(begin, end)) return piece_loop(begin, end);
  const std::size_t rows = kernel_.rows.size();
  for (std::size_t c = 0; c + 1 < kernel_.columns.size(); ++c) {
    const std::string& k = variables_[rows + c];
    loop(k, kernel_.columns[c]);
  }
  const std::int64_t extent = kernel_.columns.back(), whole = extent - extent % Lanes{}.count;
  if (!lanes) {
    if (!scatters) out_ += "#pragma GCC ivdep\n";
    loop("j", extent);
    column_statements(begin, end);
    close();
  } else {
    // Sixteen independent partial results per row, element j in lane j mod 16, so that the inner
    // loop is vectorised.
    if (whole > 0) {
      open("for (int64_t j0 = 0; j0 < " + std::to_string(whole) + "; j0 += 16)");
      if (!scatters) out_ += "#pragma GCC ivdep\n";
      loop("l", Lanes{}.count);
      lane_statements("j0 + l", begin, end);
      close();
      close();
    }
    if (whole < extent) {
      loop("l", extent - whole);
      lane_statements(whole > 0 ? std::to_string(whole) + " + l" : "l", begin, end);
      close();
    }
  }
  for (std::size_t c = 0; c + 1 < kernel_.columns.size(); ++c) close();
  for (std::size_t i = begin; i < end; ++i) {
    const Statement& s = statements[i];
    if (s.code == Code::row_sum)
      line("const " + c_type(s.dtype) + " " + registers_[i] + " = piper_join_sum(" + registers_[i] +
           "_lanes);");
    if (s.code == Code::row_max)
      line("const " + c_type(s.dtype) + " " + registers_[i] + " = piper_join_max(" + registers_[i] +
           "_lanes);");
  }
}

std::string Printer::signature(const std::string& name) const {
  std::set<BufferIndex> written;
  std::set<BufferIndex> flags;
  for (const Statement& s : kernel_.statements) {
    if (!is_effect(s.code)) continue;
    written.insert(s.access.buffer);
    if (adds(s)) flags.insert(s.access.buffer);
  }
  std::string text;
  if (kernel_draws(kernel_)) text += "const PiperRank* rank";
  for (std::size_t d = 0; d < kernel_dropouts(kernel_).size(); ++d)
    text += ", const uint64_t " + draws_name(d);
  for (const std::int32_t interval : kernel_intervals(kernel_))
    text += (text.empty() ? "" : ", ") +
            ("const uint64_t first_" + body_.intervals[static_cast<std::size_t>(interval)]);
  for (BufferIndex buffer : kernel_parameters(kernel_)) {
    text += text.empty() ? "" : ", ";
    text += (written.contains(buffer) ? "" : "const ") + c_type(body_.buffers[buffer].dtype) +
            "* __restrict " + buffers_.at(buffer);
    if (flags.contains(buffer)) text += ", const bool " + buffers_.at(buffer) + "_adds";
  }
  return "static void " + name + "(" + text + ")";
}

std::string Printer::run(const std::string& name) {
  name_everything();
  inline_values();
  open(signature(name));
  skip_test();
  piece_tables();
  for (std::size_t i = 0; i < kernel_.statements.size(); ++i) {
    const Statement& s = kernel_.statements[i];
    if (s.code == Code::total) line("double " + registers_[i] + " = 0.0;");
    if (s.code != Code::store_add) continue;
    const std::string buffer = buffers_.at(s.access.buffer);
    const KernelBuffer& to = body_.buffers[s.access.buffer];
    const std::string clear = "for (int64_t e = 0; e < " + std::to_string(to.elements) + "; ++e) " +
                              buffer + "[e] = " + literal(0, to.dtype) + ";";
    if (to.accumulates) {
      open("if (!" + buffer + "_adds)");
      line(clear);
      close();
    } else {
      line(clear);
    }
  }
  for (std::size_t r = 0; r < kernel_.rows.size(); ++r) {
    const std::string& i = variables_[r];
    loop(i, kernel_.rows[r]);
  }
  for (std::size_t i = 0; i < kernel_.statements.size();) {
    if (kernel_.statements[i].row) {
      statement(i++);
      continue;
    }
    std::size_t end = i;
    while (end < kernel_.statements.size() && !kernel_.statements[end].row &&
           kernel_.statements[end].pass == kernel_.statements[i].pass)
      ++end;
    columns(i, end);
    i = end;
  }
  for (std::size_t r = 0; r < kernel_.rows.size(); ++r) close();
  for (std::size_t i = 0; i < kernel_.statements.size(); ++i) {
    const Statement& s = kernel_.statements[i];
    if (s.code != Code::total) continue;
    const std::string to = buffers_.at(s.access.buffer) + "[0]",
                      sum = "(" + c_type(s.dtype) + ")" + registers_[i];
    line(to + " = " + (adds(s) ? add_flag(s) + " ? " + to + " + " + sum + " : " : "") + sum + ";");
  }
  close();
  return out_;
}

}  // namespace

std::vector<BufferIndex> kernel_parameters(const Kernel& kernel) {
  std::vector<BufferIndex> buffers;
  const auto add = [&](BufferIndex buffer) {
    if (std::find(buffers.begin(), buffers.end(), buffer) == buffers.end())
      buffers.push_back(buffer);
  };
  for (const bool effects : {false, true}) {
    for (const Statement& s : kernel.statements) {
      if (has_access(s) && is_effect(s.code) == effects) add(s.access.buffer);
    }
  }
  // The remaining buffers, which only the form uses.
  const BufferUse all = buffer_use(kernel);
  for (const auto* set : {&all.reads, &all.writes}) std::for_each(set->begin(), set->end(), add);
  return buffers;
}

bool kernel_draws(const Kernel& kernel) {
  return std::any_of(kernel.statements.begin(), kernel.statements.end(),
                     [](const Statement& s) { return s.code == Code::dropout; });
}

std::vector<const Statement*> kernel_dropouts(const Kernel& kernel) {
  std::vector<const Statement*> dropouts;
  for (const Statement& s : kernel.statements) {
    if (s.code == Code::dropout) dropouts.push_back(&s);
  }
  return dropouts;
}

std::string draws_name(std::size_t number) {
  return "dropout_" + std::to_string(number) + "_draws";
}

std::set<std::int32_t> kernel_intervals(const Kernel& kernel) {
  std::set<std::int32_t> intervals;
  for (const Statement& s : kernel.statements) {
    if (s.interval >= 0) intervals.insert(s.interval);
  }
  return intervals;
}

std::string print_kernel(const Kernel& kernel, const KernelBody& body, const std::string& name,
                         bool canonical) {
  return Printer(kernel, body, canonical).run(name);
}

}  // namespace piper::backend
