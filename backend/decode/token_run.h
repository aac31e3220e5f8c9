#pragma once
// Runs a token program (ir/dag/token_program.h) on the calling thread: one token at one position
// after the other, each over the cached keys and values of those before.
//
// The bodies are evaluated as those of a train that is interpreted. `attend` of the step is the only
// operation that differs: the keys and values of the token are appended to a cache, and the query
// attends over the cache so far. Caches are memory of their own, for all positions.
//
//   TokenRun run(program, host);
//   for (std::int64_t token : prompt) if (!run.step(token)) return host_failure();
//   run.logits()[0]

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "ir/dag/token_program.h"
#include "runtime/abi.h"

namespace piper::backend {

/// The callbacks of the run.
struct TokenHost {
  const PiperApi* api = nullptr;  // call and fail are called
  void* runtime = nullptr;        // PiperRank::runtime of these calls
  /// The values of a parameter of the model: row-major, aligned to 64 bytes, constant.
  std::function<const void*(tensor::ParamId)> parameter;
};

class TokenRun {
 public:
  /// `program` must outlive it.
  TokenRun(const dag::TokenProgram& program, TokenHost host);
  ~TokenRun();
  TokenRun(const TokenRun&) = delete;
  TokenRun& operator=(const TokenRun&) = delete;

  /// The next position, from 0; that of a full cache is `program.positions`.
  std::int64_t position() const;
  /// Reads a token at the next position, below `program.positions`. False if a call failed: the
  /// reason was passed to api->fail, and the run has ended.
  bool step(std::int64_t token);
  /// The logits of the token after the last one: `program.classes` numbers.
  std::span<const double> logits() const;
  /// Bytes of all caches.
  std::int64_t cache_bytes() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace piper::backend
