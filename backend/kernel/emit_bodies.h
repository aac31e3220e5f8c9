#pragma once
// Prints kernel bodies as C++: a struct of operands and a function per distinct body, a small
// function per distinct loop nest.
//
// Guarantees: the text includes nothing beyond runtime/abi.h and runtime/kernel_math.h (the caller
// prints these two lines), is the same for equal bodies, and shares loop nests and shapes
// of calls between bodies. Compile it with kKernelFlags.
//
//   struct stage0_F_at { uint64_t tokens; uint64_t x; ...; uint64_t workspace; };
//   static int stage0_F(const PiperApi* api, PiperRank* rank, uint32_t action, const stage0_F_at* at);

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "backend/kernel/kernel.h"
#include "backend/kernel/names.h"

namespace piper::backend {

/// Flags that keep generated code equal to the evaluator bit for bit and let it vectorise.
/// `-march=native` beside them keeps the bits (nothing is contracted), except for compiler bugs,
/// which the flags of `compiler_flags` (`backend/jit/jit.h`) avoid.
inline constexpr const char* kKernelFlags =
    "-std=c++20 -O3 -ffp-contract=off -fno-math-errno -fno-trapping-math";

/// The offsets of the operands of one call, for the `at` struct.
struct BodyOperands {
  // Bytes in the arena: inputs, outputs, workspace if scratch_bytes > 0.
  std::span<const std::uint64_t> offsets;
  std::span<const std::uint8_t> accumulate;  // per output
  std::span<const CallInterval> intervals;   // per interval of the body
};

/// The shapes of library calls, each a constant with its number.
struct CallShapes {
  std::string text;
  // By the texts of their kinds and of their members of PiperCallShape::of.
  std::map<std::pair<std::string, std::string>, std::string> names;
  std::map<std::uint32_t, std::uint32_t> counts;  // of names with a count, by kind
};
/// The name of the call's shape, which is added if it is new.
std::string shape_name(const LibraryCall& call, CallShapes& known);
/// `&gemm_2x16x8_nn, {x, w}, {y}, at->y_adds`: the last arguments of `piper_call`.
std::string call_arguments(const KernelBody& body, const LibraryCall& call, CallShapes& known);

/// `8 + rank->intervals[0].first`: the first index of a call's interval.
std::string begin_of(const CallInterval& call);
/// `first_sample`: the name of the first index of an interval of the body on the rank.
std::string first_of(const KernelBody& body, std::int32_t interval);
/// `struct NAME_at { ... };`: the offsets of the operands of a call, then the lines `members`.
std::string operand_struct(const KernelBody& body, const std::string& function,
                           const std::string& members = "");
/// The first lines of a body's function: the first indices of its intervals, and a pointer per used
/// buffer.
std::string operand_pointers(const KernelBody& body);

/// `{.tokens = 4096, .x = 65536, .up_adds = 1}`: an initialiser of the struct.
std::string operand_values(const KernelBody& body, const BodyOperands& operands);

/// Equal for bodies that one function of CppBodies can compute: they differ at most in names, in
/// the keys of their dropouts and in comments.
std::string code_of(const KernelBody& body);

class CppBodies {
 public:
  /// Adds a body and returns its function's name; the struct has `_at` appended. `equal`: the names
  /// of further bodies of equal `code_of`, for the comment.
  std::string add(const KernelBody& body, std::span<const std::string> equal = {});
  /// An initialiser of the `at` struct of `added` for a call of `body`, of equal `code_of`.
  static std::string operands(const KernelBody& added, const KernelBody& body,
                              const BodyOperands& operands);
  /// Everything added so far: shapes of calls, loop nests, bodies.
  std::string text() const;

 private:
  std::string kernel_function(const Kernel& kernel, const KernelBody& body);

  CallShapes shapes_;  // and index checks
  std::string kernels_, bodies_;
  NameScope functions_;                       // names of bodies
  std::map<std::string, std::string> known_;  // a loop nest without names -> its name
  std::map<std::string, int> names_;          // how often a name was given
};

}  // namespace piper::backend
