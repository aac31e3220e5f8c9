#include "backend/kernel/print_statements.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "backend/kernel/print_kernel.h"
#include "backend/kernel/schedule_passes.h"
#include "llvm/Support/ErrorHandling.h"

namespace piper::backend {

using tensor::DType;

std::string literal(double number, DType dtype) {
  char text[64];
  const bool single = tensor::wide(dtype) == DType::f32;
  if (dtype == DType::i64) {
    std::snprintf(text, sizeof text, "%lld", static_cast<long long>(number));
    return text;
  }
  if (std::isinf(number) || std::isnan(number) ||
      (single && std::isinf(static_cast<float>(number)))) {
    const std::string infinity = single ? "piper_infinity(0.0f)" : "piper_infinity(0.0)";
    return std::isnan(number) ? "(" + infinity + " - " + infinity + ")"
           : number > 0       ? infinity
                              : "-" + infinity;
  }
  std::snprintf(text, sizeof text, single ? "%.9g" : "%.17g",
                single ? static_cast<double>(static_cast<float>(number)) : number);
  std::string result = text;
  if (result.find_first_of(".e") == std::string::npos) result += ".0";
  return single ? result + "f" : result;
}

std::string StatementPrinter::unique(const std::string& name, const char* canonical) {
  return canonical_ ? canonical + std::to_string(numbers_[canonical]++) : names_.add(name);
}

void StatementPrinter::name_everything() {
  const std::size_t rows = kernel_.rows.size(), loops = rows + kernel_.columns.size();
  for (std::size_t loop = 0; loop < loops; ++loop) {
    const bool row = loop < rows;
    const std::size_t number = row ? loop : loop - rows,
                      count = row ? rows : kernel_.columns.size();
    std::string name = row ? "i" : "j";
    if (row && count > 1) name = "i" + std::to_string(number);
    if (!row && number + 1 < count) name = "k" + std::to_string(number);
    names_.add_own(name);
    variables_.push_back(name);
  }
  for (BufferIndex buffer : kernel_parameters(kernel_))
    buffers_[buffer] = unique(body_.buffers[buffer].label, "p");
  for (const Statement& s : kernel_.statements) {
    if (s.code == Code::constant) {
      registers_.push_back(literal(s.scalar, s.dtype));
    } else {
      std::string name = s.name.empty() ? "value" : s.name;
      if (is_effect(s.code))
        name = s.code == Code::total ? "total" : buffers_.at(s.access.buffer) + "_out";
      // Memory has the buffer's name, its current element that name with a suffix.
      if (!canonical_ && names_.has(name)) name += gives_row_value(s) ? "_i" : "_j";
      registers_.push_back(unique(name, is_effect(s.code) ? "e" : "v"));
    }
  }
}

std::string StatementPrinter::position(const std::vector<std::int64_t>& strides) const {
  std::string text;
  for (std::size_t loop = 0; loop < strides.size(); ++loop) {
    if (strides[loop] == 0) continue;
    text += (text.empty() ? "" : " + ") + variables_[loop];
    if (strides[loop] != 1) text += " * " + std::to_string(strides[loop]);
  }
  return text.empty() ? "0" : text;
}

std::string StatementPrinter::place(const Statement& s) const {
  std::string at = position(s.access.strides);
  if (s.access.index >= 0) {
    const std::string index = this->index(s);
    const std::string scaled =
        s.access.index_stride == 1 ? index : index + " * " + std::to_string(s.access.index_stride);
    at = at == "0" ? scaled : scaled + " + " + at;
  }
  if (const std::int64_t offset = s.access.offset; offset != 0) {
    const std::string places = std::to_string(offset < 0 ? -offset : offset);
    at = at == "0" ? std::to_string(offset) : at + (offset < 0 ? " - " : " + ") + places;
  }
  return at;
}

std::string StatementPrinter::inside(const Statement& s) const {
  const Guard& guard = s.access.guard;
  const std::string at = position(guard.strides);
  std::int64_t extent = 1;  // of the positions in use
  for (std::size_t loop = 0; loop < guard.strides.size(); ++loop) {
    extent += guard.strides[loop] *
              ((loop < kernel_.rows.size() ? kernel_.rows[loop]
                                           : kernel_.columns[loop - kernel_.rows.size()]) -
               1);
  }
  std::string text;
  if (guard.first > 0) text = at + " >= " + std::to_string(guard.first);
  if (guard.end < extent)
    text += (text.empty() ? "" : " && ") + at + " < " + std::to_string(guard.end);
  return text;
}

std::string StatementPrinter::column() const {
  std::string flat;
  for (std::size_t c = 0; c < kernel_.columns.size(); ++c) {
    const std::string variable = variables_[kernel_.rows.size() + c];
    flat = c == 0 ? variable
                  : "(" + flat + ") * " + std::to_string(kernel_.columns[c]) + " + " + variable;
  }
  return flat;
}

void StatementPrinter::skip_test() {
  if (kernel_.skipped_by) line("if (" + buffers_.at(*kernel_.skipped_by) + "[0] < 0.0) return;");
}

void StatementPrinter::piece_tables() {
  for (std::size_t i = 0; i < kernel_.statements.size(); ++i) {
    const Statement& s = kernel_.statements[i];
    if (s.code != Code::piecewise) continue;
    std::string ends, numbers;
    for (std::size_t p = 0; p < s.pieces.ends.size(); ++p) {
      ends += (p == 0 ? "" : ", ") + std::to_string(s.pieces.ends[p]);
      numbers += (p == 0 ? "" : ", ") + literal(s.pieces.numbers[p], s.dtype);
    }
    if (ends_of(i) == registers_[i] + "_ends")
      line("static const int64_t " + ends_of(i) + "[] = {" + ends + "};");
    line("static const " + c_type(s.dtype) + " " + registers_[i] + "_numbers[] = {" + numbers +
         "};");
  }
}

std::string StatementPrinter::ends_of(std::size_t i) const {
  const auto& statements = kernel_.statements;
  std::size_t first = 0;
  while (statements[first].code != Code::piecewise ||
         statements[first].pieces.ends != statements[i].pieces.ends)
    ++first;
  return registers_[first] + "_ends";
}

std::string StatementPrinter::piece_position(const Statement& s) const {
  const std::string first =
      s.interval < 0
          ? ""
          : "(int64_t)first_" + body_.intervals[static_cast<std::size_t>(s.interval)] + " + ";
  return first + "(int64_t)(" + position(s.access.strides) + ")";
}

std::string StatementPrinter::piece_at(std::size_t i) const {
  const Statement& s = kernel_.statements[i];
  return registers_[i] + "_numbers[piper_bisect(" + ends_of(i) + ", " +
         std::to_string(s.pieces.ends.size()) + ", " + piece_position(s) + ")]";
}

std::string StatementPrinter::dropout_key(const Statement& s) const {
  char hash[32];
  std::snprintf(hash, sizeof hash, "0x%016llxull", static_cast<unsigned long long>(s.key));
  return hash;
}

std::string StatementPrinter::stream_key(const Statement& s) const {
  const std::string sample =
      s.interval < 0 ? "0"
                     : "first_" + body_.intervals[static_cast<std::size_t>(s.interval)] +
                           " + (uint64_t)(" + position(s.sample_strides) + ")";
  return "piper_stream_key(" + seed() + ", PIPER_RANDOM_DROPOUT, " + step() + ", " + sample + ", " +
         dropout_key(s) + ")";
}

std::string StatementPrinter::dropout(const Statement& s) const {
  return "piper_dropout(" + value(s, 0) + ", " + literal(s.scalar, DType::f64) + ", " +
         stream_key(s) + ", (uint64_t)(" + position(s.element_strides) + "))";
}

bool StatementPrinter::wide_columns() const {
  std::int64_t count = 1;
  for (std::int64_t extent : kernel_.columns) count *= extent;
  return count > 0x7fffffff;
}

std::string StatementPrinter::expression(std::size_t i) const {
  const Statement& s = kernel_.statements[i];
  const auto a = [&] { return value(s, 0); };
  const auto b = [&] { return value(s, 1); };
  const auto infix = [&](const char* op) { return a() + " " + op + " " + b(); };
  const std::string library = s.brief ? "piper_bf16_" : "piper_";
  const auto call1 = [&](const char* f) { return library + f + "(" + a() + ")"; };
  const auto call2 = [&](const char* f) { return library + f + "(" + a() + ", " + b() + ")"; };
  const std::string zero = literal(0, s.dtype);
  const auto select = [&](const char* op) {
    return a() + " " + op + " " + b() + " ? " + value(s, 2) + " : " + zero;
  };
  switch (s.code) {
    case Code::load:
      if (s.access.guard.strides.empty()) return loaded(s);
      return inside(s) + " ? " + loaded(s) + " : " + (s.operands[0] >= 0 ? a() : zero);
    case Code::constant: return literal(s.scalar, s.dtype);
    case Code::position: return "(" + c_type(s.dtype) + ")(" + position(s.access.strides) + ")";
    case Code::piecewise: return piece_at(i);
    case Code::column: return column();
    case Code::add: return infix("+");
    case Code::sub: return infix("-");
    case Code::mul: return infix("*");
    case Code::div: return infix("/");
    case Code::maximum: return call2("max");
    case Code::minimum: return call2("min");
    case Code::neg: return "-" + a();
    case Code::exp: return call1("exp");
    case Code::log: return call1("log");
    case Code::sqrt: return call1("sqrt");
    case Code::rsqrt: return call1("rsqrt");
    case Code::square: return a() + " * " + a();
    case Code::sin: return call1("sin");
    case Code::cos: return call1("cos");
    case Code::tanh: return call1("tanh");
    case Code::sigmoid: return call1("sigmoid");
    case Code::softplus: return call1("softplus");
    case Code::relu: return call1("relu");
    case Code::gelu: return call1("gelu");
    case Code::silu: return call1("silu");
    case Code::relu_grad: return call2("relu_grad");
    case Code::gelu_grad: return call2("gelu_grad");
    case Code::silu_grad: return call2("silu_grad");
    case Code::select_ge: return select(">=");
    case Code::select_lt: return select("<");
    case Code::select_eq: {
      const std::string index = wide_columns() ? "(int64_t)" : "(int32_t)";
      return index + a() + " == " + index + b() + " ? " + value(s, 2) + " : " + zero;
    }
    case Code::select_other:
      return a() + " != " + std::to_string(s.ignore) + " ? " + b() + " : " + zero;
    case Code::dropout: return dropout(s);
    case Code::cast: return "(" + c_type(s.dtype) + ")" + a();
    case Code::round: return call1("round_bf16");
    // Statements, not expressions.
    case Code::row_sum:
    case Code::row_max:
    case Code::row_first:
    case Code::store:
    case Code::store_add:
    case Code::total: break;
  }
  llvm_unreachable("no expression");
}

bool StatementPrinter::only_stored(std::size_t i) const {
  bool stored = false, read = false;
  for (const Statement& s : kernel_.statements) {
    if (std::count(s.operands, s.operands + 3, static_cast<std::int32_t>(i)) == 0) continue;
    (s.code == Code::store && !adds(s) && tensor::is_narrow(body_.buffers[s.access.buffer].dtype)
         ? stored
         : read) = true;
  }
  return stored && !read;
}

void StatementPrinter::inline_values() {
  const auto& statements = kernel_.statements;
  for (std::size_t i = 0; i < statements.size(); ++i) {
    const Statement& s = statements[i];
    if ((s.code != Code::load && s.code != Code::column) || s.row ||
        !s.access.guard.strides.empty() || stands_alone(s))
      continue;
    std::size_t uses = 0, user = 0;
    for (std::size_t u = 0; u < statements.size(); ++u) {
      const auto id = static_cast<std::int32_t>(i);
      const auto count = static_cast<std::size_t>(
                             std::count(statements[u].operands, statements[u].operands + 3, id)) +
                         (statements[u].access.index == id ? 1 : 0);
      uses += count;
      if (count > 0) user = u;
    }
    bool untouched = uses == 1 && statements[user].code != Code::square;
    for (std::size_t u = i; u < user && untouched; ++u)
      untouched = s.code == Code::column || !is_effect(statements[u].code) ||
                  statements[u].access.buffer != s.access.buffer;
    if (!untouched) continue;
    inlined_.insert(i);
    registers_[i] = s.code == Code::column && kernel_.columns.size() == 1 ? "j"
                    : s.code == Code::column ? "(" + expression(i) + ")"
                                             : loaded(s);
  }
  for (std::size_t i = 0; i < statements.size(); ++i) {
    if (statements[i].code != Code::round ||
        inlined_.contains(static_cast<std::size_t>(statements[i].operands[0])) || !only_stored(i))
      continue;
    inlined_.insert(i);
    registers_[i] = value(statements[i], 0);
  }
}

}  // namespace piper::backend
