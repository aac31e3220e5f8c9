#pragma once
// A program that checks whether the host's compiler gives the evaluator's results: small bodies,
// compared bit for bit.
//
// Guarantees: the program is the same for the same version of piper, so the cache of objects builds
// it once per compiler, flags and processor; it runs in every process that loads generated code, in
// less than a millisecond.
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
  /// A text about the first difference between the program's step and the evaluator; empty if there
  /// is none.
  std::string difference(const PiperProgram& program) const;

 private:
  struct Bodies;
  std::unique_ptr<const Bodies> bodies_;
};

}  // namespace piper::backend
