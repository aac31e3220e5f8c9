#pragma once
// Common parts of C++ and CUDA C++ of a loop nest: names, literals, memory accesses, and the
// expression of every statement. Pointwise ops are printed only here.

#include <map>
#include <set>
#include <string>
#include <vector>

#include "backend/kernel/kernel.h"
#include "backend/kernel/names.h"

namespace piper::backend {

/// A literal that reads back as the same number.
std::string literal(double number, tensor::DType dtype);

class StatementPrinter {
 protected:
  /// `canonical` numbers all names. `names`: names reserved for the printer.
  StatementPrinter(const Kernel& kernel, const KernelBody& body, bool canonical, NameScope names)
      : kernel_(kernel), body_(body), canonical_(canonical), names_(std::move(names)) {
    for (const std::string& interval : body.intervals) names_.add_own("first_" + interval);
  }
  ~StatementPrinter() = default;

  void name_everything();
  /// A value with a single reader in the same pass is inlined into it, unless memory is written in
  /// between. A value rounded only for memory is rounded by its store.
  void inline_values();

  std::string expression(std::size_t i) const;
  std::string position(const std::vector<std::int64_t>& strides) const;
  std::string place(const Statement& s) const;
  std::string element(const Statement& s) const {
    return buffers_.at(s.access.buffer) + "[" + place(s) + "]";
  }
  /// The value of a load, which may be narrower in memory.
  std::string loaded(const Statement& s) const {
    return (tensor::is_narrow(body_.buffers[s.access.buffer].dtype) ? "(float)" : "") + element(s);
  }
  /// Returns from the nest if it is skipped.
  void skip_test();
  /// The tables of piecewise values: `rate_ends`, `rate_numbers`. Equal ends are one table.
  void piece_tables();
  /// The table of ends of a piecewise value.
  std::string ends_of(std::size_t i) const;
  /// The global position of a piecewise value.
  std::string piece_position(const Statement& s) const;
  /// The expression of a piecewise value at a position.
  std::string piece_at(std::size_t i) const;
  /// The key of the random numbers of a sample.
  std::string stream_key(const Statement& s) const;
  /// The number of the element within its row.
  std::string column() const;
  std::string value(const Statement& s, int operand) const {
    return registers_[static_cast<std::size_t>(s.operands[operand])];
  }
  const Statement& operand(const Statement& s, int i) const {
    return kernel_.statements[static_cast<std::size_t>(s.operands[i])];
  }
  bool adds(const Statement& s) const { return body_.buffers[s.access.buffer].accumulates; }
  std::string add_flag(const Statement& s) const { return buffers_.at(s.access.buffer) + "_adds"; }

  void line(const std::string& text) {
    out_ += std::string(static_cast<std::size_t>(indent_) * 2, ' ') + text + "\n";
  }
  void open(const std::string& head) {
    line(head + " {");
    ++indent_;
  }
  void close() {
    --indent_;
    line("}");
  }

  /// The value of an index at which memory is read or written; on a device that reports an index
  /// out of range only later, it must not be followed.
  virtual std::string index(const Statement& s) const {
    return registers_[static_cast<std::size_t>(s.access.index)];
  }
  /// The part of the key of random numbers that tells one dropout from others: a literal, unless
  /// the function has a parameter for it.
  virtual std::string dropout_key(const Statement& s) const;
  /// Seed and step of the key of random numbers.
  virtual std::string seed() const = 0;
  virtual std::string step() const = 0;
  /// Loads that must not be inlined into their reader.
  virtual bool stands_alone(const Statement&) const { return false; }

  const Kernel& kernel_;
  const KernelBody& body_;
  const bool canonical_;
  std::map<BufferIndex, std::string> buffers_;
  std::vector<std::string> registers_, variables_;
  NameScope names_;
  std::set<std::size_t> inlined_;
  std::string out_;
  int indent_ = 0;

 private:
  std::string unique(const std::string& name, const char* canonical);
  /// The condition under which a guarded load reads.
  std::string inside(const Statement& s) const;
  std::string dropout(const Statement& s) const;
  /// Whether all readers of the statement are stores of narrow numbers that do not accumulate.
  bool only_stored(std::size_t i) const;
  bool wide_columns() const;

  std::map<std::string, int> numbers_;  // of canonical names
};

}  // namespace piper::backend
