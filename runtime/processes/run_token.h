#pragma once
// The token of a run: a secret that its processes share, and the proofs by which the two ends of a
// connection show each other that they have it. A proof is an HMAC-SHA256 with the token as its key
// over the role, the rank, the run and the random numbers of both ends, so it is valid for one
// connection and one direction only. It does not reveal the token.
//
//   const RunTokenRead read = read_run_token(environment);
//   if (read.failure) ...;                        // P6028: others may read the file `run.token`
//   const Nonce own = random_nonce();
//   prove(read.token, {Role::process, 3, "job/0", own, theirs});

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/failure.h"
#include "runtime/processes/launch.h"

namespace piper::runtime {

inline constexpr const char* kTokenVariable = "PIPER_RUN_TOKEN";
inline constexpr const char* kTokenFileVariable = "PIPER_RUN_TOKEN_FILE";
// Characters of a token. Short ones are refused: a stranger who has seen a proof can try them all.
inline constexpr std::size_t kMinToken = 32, kMaxToken = 256;

/// A command that makes a token in a file, for hints.
inline constexpr const char* kMakeToken =
    "(umask 077; head -c 32 /dev/urandom | base64 >run.token)";

struct RunTokenRead {
  std::string token = {};               // empty: the run has none
  std::optional<Failure> failure = {};  // kBadToken; its text does not show the token
};
/// The token of the variable or of the file that the environment names.
RunTokenRead read_run_token(const Environment& environment);
/// A new token of 64 hexadecimal digits.
std::string random_run_token();

using Nonce = std::array<unsigned char, 32>;
using Proof = std::array<unsigned char, 32>;

/// An unpredictable number, different for every connection.
Nonce random_nonce();

enum class Role : std::uint8_t { rank_zero, process };
/// The statement that one end of a connection proves.
struct Claim {
  Role role = Role::process;
  std::uint32_t rank = 0;
  std::string_view run;
  Nonce of_process{}, of_rank_zero{};
};
/// `token`: empty if the run has none; then a proof shows only that its sender has both numbers.
Proof prove(std::string_view token, const Claim& claim);
/// Takes a time that does not depend on the contents.
bool same_proof(const Proof& one, const Proof& other);

}  // namespace piper::runtime
