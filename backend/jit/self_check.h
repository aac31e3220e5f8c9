#pragma once
// A program that shows whether the host's compiler keeps the law of values: small bodies, whose results the evaluator has, too.
//
// Guarantees: the program is the same for the same version of piper, so the cache of objects builds it once per compiler, flags and processor; it runs in every process that
// loads generated code, in less than a millisecond.
//
//   const SelfCheck check;
//   // build check.source(), load it, then:
//   if (const std::string found = check.difference(*loaded.program()); !found.empty()) ...;

#include <memory>
#include <string>

#include "runtime/abi.h"

namespace piper::backend {

class SelfCheck {
 public:
  SelfCheck();
  ~SelfCheck();

  /// C++ that exports `piper_program_v1`; a step runs every body once.
  std::string source() const;
  /// Where the step of the program leaves other numbers than the evaluator, in words; empty: nowhere.
  std::string difference(const PiperProgram& program) const;

 private:
  struct Bodies;
  std::unique_ptr<const Bodies> bodies_;
};

}  // namespace piper::backend
