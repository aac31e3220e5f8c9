#include "backend/kernel/print_kernel.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>

#include "backend/dtypes.h"
#include "backend/kernel/names.h"
#include "backend/kernel/schedule_passes.h"
#include "llvm/Support/ErrorHandling.h"

namespace piper::backend {

using tensor::DType;

std::string c_type(DType dtype) { return row_of(dtype).cpp; }

namespace {

bool has_access(const Statement& s) { return s.code == Code::load || is_effect(s.code); }

bool names_word(const std::string& text, const std::string& word) {
  const auto in_word = [&](std::size_t i) { return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) != 0 || text[i] == '_'); };
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) {
    if ((at == 0 || !in_word(at - 1)) && !in_word(at + word.size())) return true;
  }
  return false;
}

/// A literal that reads back as the same number.
std::string literal(double number, DType dtype) {
  char text[64];
  if (dtype == DType::i64) {
    std::snprintf(text, sizeof text, "%lld", static_cast<long long>(number));
    return text;
  }
  if (std::isinf(number) || std::isnan(number) || (dtype == DType::f32 && std::isinf(static_cast<float>(number)))) {
    const std::string infinity = dtype == DType::f32 ? "piper_infinity(0.0f)" : "piper_infinity(0.0)";
    return std::isnan(number) ? "(" + infinity + " - " + infinity + ")" : number > 0 ? infinity : "-" + infinity;
  }
  std::snprintf(text, sizeof text, dtype == DType::f32 ? "%.9g" : "%.17g", dtype == DType::f32 ? static_cast<double>(static_cast<float>(number)) : number);
  std::string result = text;
  if (result.find_first_of(".e") == std::string::npos) result += ".0";
  return dtype == DType::f32 ? result + "f" : result;
}

class Printer {
 public:
  Printer(const Kernel& kernel, const KernelBody& body, bool canonical) : kernel_(kernel), body_(body), canonical_(canonical) {}

  std::string run(const std::string& name);

 private:
  std::string unique(const std::string& name, const char* canonical);
  void name_everything();
  std::string signature(const std::string& name) const;
  void line(const std::string& text) { out_ += std::string(static_cast<std::size_t>(indent_) * 2, ' ') + text + "\n"; }
  void open(const std::string& head) {
    line(head + " {");
    ++indent_;
  }
  void close() {
    --indent_;
    line("}");
  }
  std::string loop_variable(std::size_t loop) const { return variables_[loop]; }
  std::string position(const std::vector<std::int64_t>& strides) const;
  std::string element(const Statement& s) const;
  /// The condition under which a guarded load reads.
  std::string inside(const Statement& s) const;
  std::string value(const Statement& s, int operand) const { return registers_[static_cast<std::size_t>(s.operands[operand])]; }
  std::string expression(std::size_t i) const;
  std::string dropout(const Statement& s) const;
  const Statement& operand(const Statement& s, int i) const { return kernel_.statements[static_cast<std::size_t>(s.operands[i])]; }
  bool adds(const Statement& s) const { return body_.buffers[s.access.buffer].accumulates; }
  std::string add_flag(const Statement& s) const { return buffers_.at(s.access.buffer) + "_adds"; }
  void inline_loads();
  void statement(std::size_t i);
  void columns(std::size_t begin, std::size_t end);
  void column_statements(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) statement(i);
  }
  /// The same under a loop over lanes, which names the column only if something reads it.
  void lane_statements(const std::string& column, std::size_t begin, std::size_t end) {
    std::string before = std::move(out_);
    out_.clear();
    column_statements(begin, end);
    std::string statements = std::move(out_);
    out_ = std::move(before);
    if (names_word(statements, "j")) line("const int64_t j = " + column + ";");
    out_ += statements;
  }
  bool wide_columns() const;

  const Kernel& kernel_;
  const KernelBody& body_;
  const bool canonical_;
  std::map<BufferIndex, std::string> buffers_;
  std::vector<std::string> registers_, variables_;
  NameScope names_{"e", "i", "j", "j0", "k", "l", "rank", "first_sample"};
  std::map<std::string, int> numbers_;  // of canonical names
  std::set<std::size_t> inlined_;
  std::string out_;
  int indent_ = 0;
};

std::string Printer::unique(const std::string& name, const char* canonical) {
  return canonical_ ? canonical + std::to_string(numbers_[canonical]++) : names_.add(name);
}

void Printer::name_everything() {
  const std::size_t rows = kernel_.rows.size(), loops = rows + kernel_.columns.size();
  for (std::size_t loop = 0; loop < loops; ++loop) {
    const bool row = loop < rows;
    const std::size_t number = row ? loop : loop - rows, count = row ? rows : kernel_.columns.size();
    std::string name = row ? "i" : "j";
    if (row && count > 1) name = "i" + std::to_string(number);
    if (!row && number + 1 < count) name = "k" + std::to_string(number);
    names_.add_own(name);
    variables_.push_back(name);
  }
  for (BufferIndex buffer : kernel_parameters(kernel_)) buffers_[buffer] = unique(body_.buffers[buffer].label, "p");
  for (const Statement& s : kernel_.statements) {
    if (s.code == Code::constant) {
      registers_.push_back(literal(s.scalar, s.dtype));
    } else {
      std::string name = s.name.empty() ? "value" : s.name;
      if (is_effect(s.code)) name = s.code == Code::total ? "total" : "effect";
      // What lies in memory has the buffer's name, its element in hand a suffix.
      if (!canonical_ && names_.has(name)) name += gives_row_value(s) ? "_i" : "_j";
      registers_.push_back(unique(name, is_effect(s.code) ? "e" : "v"));
    }
  }
}

std::string Printer::position(const std::vector<std::int64_t>& strides) const {
  std::string text;
  for (std::size_t loop = 0; loop < strides.size(); ++loop) {
    if (strides[loop] == 0) continue;
    text += (text.empty() ? "" : " + ") + loop_variable(loop);
    if (strides[loop] != 1) text += " * " + std::to_string(strides[loop]);
  }
  return text.empty() ? "0" : text;
}

std::string Printer::element(const Statement& s) const {
  std::string at = position(s.access.strides);
  if (s.access.index >= 0) {
    const std::string index = registers_[static_cast<std::size_t>(s.access.index)];
    const std::string scaled = s.access.index_stride == 1 ? index : index + " * " + std::to_string(s.access.index_stride);
    at = at == "0" ? scaled : scaled + " + " + at;
  }
  if (const std::int64_t offset = s.access.offset; offset != 0) {
    const std::string places = std::to_string(offset < 0 ? -offset : offset);
    at = at == "0" ? std::to_string(offset) : at + (offset < 0 ? " - " : " + ") + places;
  }
  return buffers_.at(s.access.buffer) + "[" + at + "]";
}

std::string Printer::inside(const Statement& s) const {
  const Guard& guard = s.access.guard;
  const std::string at = position(guard.strides);
  std::int64_t extent = 1;  // of the positions that occur
  for (std::size_t loop = 0; loop < guard.strides.size(); ++loop) {
    extent += guard.strides[loop] * ((loop < kernel_.rows.size() ? kernel_.rows[loop] : kernel_.columns[loop - kernel_.rows.size()]) - 1);
  }
  std::string text;
  if (guard.first > 0) text = at + " >= " + std::to_string(guard.first);
  if (guard.end < extent) text += (text.empty() ? "" : " && ") + at + " < " + std::to_string(guard.end);
  return text;
}

std::string Printer::dropout(const Statement& s) const {
  std::string sample = position(s.sample_strides);
  char hash[32];
  std::snprintf(hash, sizeof hash, "0x%016llxull", static_cast<unsigned long long>(s.key));
  const std::string key = "piper_stream_key(rank->seed, PIPER_RANDOM_DROPOUT, rank->global_step, first_sample + (uint64_t)(" + sample + "), " + hash + ")";
  return "piper_dropout(" + value(s, 0) + ", " + literal(s.scalar, DType::f64) + ", " + key + ", (uint64_t)(" + position(s.element_strides) + "))";
}

bool Printer::wide_columns() const {
  std::int64_t count = 1;
  for (std::int64_t extent : kernel_.columns) count *= extent;
  return count > 0x7fffffff;
}

std::string Printer::expression(std::size_t i) const {
  const Statement& s = kernel_.statements[i];
  const auto a = [&] { return value(s, 0); };
  const auto b = [&] { return value(s, 1); };
  const auto infix = [&](const char* op) { return a() + " " + op + " " + b(); };
  const auto call1 = [&](const char* f) { return std::string(f) + "(" + a() + ")"; };
  const auto call2 = [&](const char* f) { return std::string(f) + "(" + a() + ", " + b() + ")"; };
  const std::string zero = literal(0, s.dtype);
  const auto select = [&](const char* op) { return a() + " " + op + " " + b() + " ? " + value(s, 2) + " : " + zero; };
  switch (s.code) {
    case Code::load:
      if (s.access.guard.strides.empty()) return element(s);
      return inside(s) + " ? " + element(s) + " : " + (s.operands[0] >= 0 ? a() : zero);
    case Code::constant: return literal(s.scalar, s.dtype);
    case Code::position: return "(" + c_type(s.dtype) + ")(" + position(s.access.strides) + ")";
    case Code::column: {
      std::string flat;
      for (std::size_t c = 0; c < kernel_.columns.size(); ++c) {
        const std::string variable = loop_variable(kernel_.rows.size() + c);
        flat = c == 0 ? variable : "(" + flat + ") * " + std::to_string(kernel_.columns[c]) + " + " + variable;
      }
      return flat;
    }
    case Code::add: return infix("+");
    case Code::sub: return infix("-");
    case Code::mul: return infix("*");
    case Code::div: return infix("/");
    case Code::maximum: return call2("piper_max");
    case Code::minimum: return call2("piper_min");
    case Code::neg: return "-" + a();
    case Code::exp: return call1("piper_exp");
    case Code::log: return call1("piper_log");
    case Code::sqrt: return call1("piper_sqrt");
    case Code::rsqrt: return call1("piper_rsqrt");
    case Code::square: return a() + " * " + a();
    case Code::sin: return call1("piper_sin");
    case Code::cos: return call1("piper_cos");
    case Code::tanh: return call1("piper_tanh");
    case Code::sigmoid: return call1("piper_sigmoid");
    case Code::softplus: return call1("piper_softplus");
    case Code::relu: return call1("piper_relu");
    case Code::gelu: return call1("piper_gelu");
    case Code::silu: return call1("piper_silu");
    case Code::relu_grad: return call2("piper_relu_grad");
    case Code::gelu_grad: return call2("piper_gelu_grad");
    case Code::silu_grad: return call2("piper_silu_grad");
    case Code::select_ge: return select(">=");
    case Code::select_lt: return select("<");
    case Code::select_eq: {
      const std::string index = wide_columns() ? "(int64_t)" : "(int32_t)";
      return index + a() + " == " + index + b() + " ? " + value(s, 2) + " : " + zero;
    }
    case Code::select_other: return a() + " != " + std::to_string(s.ignore) + " ? " + b() + " : " + zero;
    case Code::dropout: return dropout(s);
    case Code::cast: return "(" + c_type(s.dtype) + ")" + a();
    // Statements, not expressions.
    case Code::row_sum: case Code::row_max: case Code::row_first: case Code::store: case Code::store_add: case Code::total: break;
  }
  llvm_unreachable("no expression");
}

/// A number that one statement of the same pass reads stands in that statement, unless something is written in between.
void Printer::inline_loads() {
  const auto& statements = kernel_.statements;
  for (std::size_t i = 0; i < statements.size(); ++i) {
    const Statement& s = statements[i];
    if ((s.code != Code::load && s.code != Code::column) || s.row || !s.access.guard.strides.empty()) continue;
    std::size_t uses = 0, user = 0;
    for (std::size_t u = 0; u < statements.size(); ++u) {
      const auto id = static_cast<std::int32_t>(i);
      const auto count = static_cast<std::size_t>(std::count(statements[u].operands, statements[u].operands + 3, id)) + (statements[u].access.index == id ? 1 : 0);
      uses += count;
      if (count > 0) user = u;
    }
    bool untouched = uses == 1 && statements[user].code != Code::square;
    for (std::size_t u = i; u < user && untouched; ++u) untouched = s.code == Code::column || !is_effect(statements[u].code) || statements[u].access.buffer != s.access.buffer;
    if (!untouched) continue;
    inlined_.insert(i);
    registers_[i] = s.code == Code::column && kernel_.columns.size() == 1 ? "j" : s.code == Code::column ? "(" + expression(i) + ")" : element(s);
  }
}

void Printer::statement(std::size_t i) {
  const Statement& s = kernel_.statements[i];
  if (inlined_.contains(i)) return;
  switch (s.code) {
    case Code::constant: return;
    case Code::store: {
      const std::string to = element(s);
      return line(to + " = " + (adds(s) ? add_flag(s) + " ? " + to + " + " + value(s, 0) + " : " : "") + value(s, 0) + ";");
    }
    case Code::store_add: return line(element(s) + " += " + value(s, 0) + ";");
    case Code::total: return line(registers_[i] + " += " + value(s, 0) + ";");
    case Code::row_sum: return line(registers_[i] + "_lanes[l] += " + value(s, 0) + ";");
    case Code::row_max: return line(registers_[i] + "_lanes[l] = piper_max(" + registers_[i] + "_lanes[l], " + value(s, 0) + ");");
    case Code::row_first: {
      std::string flat;
      for (std::size_t c = 0; c < kernel_.columns.size(); ++c) {
        const std::string variable = loop_variable(kernel_.rows.size() + c);
        flat = c == 0 ? variable : "(" + flat + ") * " + std::to_string(kernel_.columns[c]) + " + " + variable;
      }
      return line("if (" + value(s, 0) + " == " + value(s, 1) + " && " + flat + " < " + registers_[i] + ") " + registers_[i] + " = " + flat + ";");
    }
    default: return line("const " + c_type(s.dtype) + " " + registers_[i] + " = " + expression(i) + ";");
  }
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
      line("for (int l = 0; l < 16; ++l) " + registers_[i] + "_lanes[l] = -piper_infinity(" + literal(0, operand(s, 0).dtype) + ");");
    }
    if (s.code == Code::row_first) line("int64_t " + registers_[i] + " = INT64_MAX;");
    lanes = lanes || s.code == Code::row_sum || s.code == Code::row_max;
    scatters = scatters || (s.code == Code::store_add && s.access.index >= 0 && !gives_row_value(statements[static_cast<std::size_t>(s.access.index)]));
  }
  const std::size_t rows = kernel_.rows.size();
  for (std::size_t c = 0; c + 1 < kernel_.columns.size(); ++c) {
    const std::string& k = variables_[rows + c];
    open("for (int64_t " + k + " = 0; " + k + " < " + std::to_string(kernel_.columns[c]) + "; ++" + k + ")");
  }
  const std::int64_t extent = kernel_.columns.back(), whole = extent - extent % kLanes;
  if (!lanes) {
    if (!scatters) out_ += "#pragma GCC ivdep\n";
    open("for (int64_t j = 0; j < " + std::to_string(extent) + "; ++j)");
    column_statements(begin, end);
    close();
  } else {
    // Sixteen partial results per row, element j in lane j mod 16: independent, so that the inner loop becomes vector instructions.
    if (whole > 0) {
      open("for (int64_t j0 = 0; j0 < " + std::to_string(whole) + "; j0 += 16)");
      if (!scatters) out_ += "#pragma GCC ivdep\n";
      out_ += "#pragma GCC unroll 1\n";
      open("for (int64_t l = 0; l < 16; ++l)");
      lane_statements("j0 + l", begin, end);
      close();
      close();
    }
    if (whole < extent) {
      open("for (int64_t l = 0; l < " + std::to_string(extent - whole) + "; ++l)");
      lane_statements(whole > 0 ? std::to_string(whole) + " + l" : "l", begin, end);
      close();
    }
  }
  for (std::size_t c = 0; c + 1 < kernel_.columns.size(); ++c) close();
  for (std::size_t i = begin; i < end; ++i) {
    const Statement& s = statements[i];
    if (s.code == Code::row_sum) line("const " + c_type(s.dtype) + " " + registers_[i] + " = piper_join_sum(" + registers_[i] + "_lanes);");
    if (s.code == Code::row_max) line("const " + c_type(s.dtype) + " " + registers_[i] + " = piper_join_max(" + registers_[i] + "_lanes);");
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
  if (kernel_draws(kernel_)) text += "const PiperRank* rank, const uint64_t first_sample";
  for (BufferIndex buffer : kernel_parameters(kernel_)) {
    text += text.empty() ? "" : ", ";
    text += (written.contains(buffer) ? "" : "const ") + c_type(body_.buffers[buffer].dtype) + "* __restrict " + buffers_.at(buffer);
    if (flags.contains(buffer)) text += ", const bool " + buffers_.at(buffer) + "_adds";
  }
  return "static void " + name + "(" + text + ")";
}

std::string Printer::run(const std::string& name) {
  name_everything();
  inline_loads();
  open(signature(name));
  for (std::size_t i = 0; i < kernel_.statements.size(); ++i) {
    const Statement& s = kernel_.statements[i];
    if (s.code == Code::total) line("double " + registers_[i] + " = 0.0;");
    if (s.code != Code::store_add) continue;
    const std::string buffer = buffers_.at(s.access.buffer);
    const KernelBuffer& to = body_.buffers[s.access.buffer];
    const std::string clear = "for (int64_t e = 0; e < " + std::to_string(to.elements) + "; ++e) " + buffer + "[e] = " + literal(0, to.dtype) + ";";
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
    open("for (int64_t " + i + " = 0; " + i + " < " + std::to_string(kernel_.rows[r]) + "; ++" + i + ")");
  }
  for (std::size_t i = 0; i < kernel_.statements.size();) {
    if (kernel_.statements[i].row) {
      statement(i++);
      continue;
    }
    std::size_t end = i;
    while (end < kernel_.statements.size() && !kernel_.statements[end].row && kernel_.statements[end].pass == kernel_.statements[i].pass) ++end;
    columns(i, end);
    i = end;
  }
  for (std::size_t r = 0; r < kernel_.rows.size(); ++r) close();
  for (std::size_t i = 0; i < kernel_.statements.size(); ++i) {
    const Statement& s = kernel_.statements[i];
    if (s.code != Code::total) continue;
    const std::string to = buffers_.at(s.access.buffer) + "[0]", sum = "(" + c_type(s.dtype) + ")" + registers_[i];
    line(to + " = " + (adds(s) ? add_flag(s) + " ? " + to + " + " + sum + " : " : "") + sum + ";");
  }
  close();
  return out_;
}

}  // namespace

std::vector<BufferIndex> kernel_parameters(const Kernel& kernel) {
  std::vector<BufferIndex> buffers;
  for (const bool effects : {false, true}) {
    for (const Statement& s : kernel.statements) {
      if (!has_access(s) || is_effect(s.code) != effects) continue;
      if (std::find(buffers.begin(), buffers.end(), s.access.buffer) == buffers.end()) buffers.push_back(s.access.buffer);
    }
  }
  return buffers;
}

bool kernel_draws(const Kernel& kernel) {
  return std::any_of(kernel.statements.begin(), kernel.statements.end(), [](const Statement& s) { return s.code == Code::dropout; });
}

std::string print_kernel(const Kernel& kernel, const KernelBody& body, const std::string& name, bool canonical) {
  return Printer(kernel, body, canonical).run(name);
}

}  // namespace piper::backend
