#include "runtime/processes/run_token.h"

#include <fcntl.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace piper::runtime {

namespace {

static_assert(std::tuple_size_v<Proof> == crypto_auth_hmacsha256_BYTES);

// Separates these proofs from all other uses of a token, and the versions of the protocol.
constexpr std::string_view kPurpose = "piper rendezvous 1";

RunTokenRead refused(std::string message, std::string hint) {
  return {{}, Failure{.code = kBadToken, .message = std::move(message), .hint = std::move(hint)}};
}

RunTokenRead checked(std::string token, const std::string& source) {
  const bool printable =
      std::ranges::all_of(token, [](char byte) { return byte > ' ' && byte <= '~'; });
  if (printable && token.size() >= kMinToken && token.size() <= kMaxToken)
    return {std::move(token), {}};
  return refused(
      printable ? "the token in " + source + " has `" + std::to_string(token.size()) +
                      "` characters, and a token has " + std::to_string(kMinToken) + " to " +
                      std::to_string(kMaxToken)
                : "the token in " + source + " has characters that are not printable, or spaces",
      std::string("make one: `") + kMakeToken + "`");
}

RunTokenRead read_file(const std::string& path) {
  const std::string source = "the file `" + path + "`";
  // A pipe without a writer does not block.
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat status{};
  const bool opened = file >= 0 && fstat(file, &status) == 0;
  char bytes[kMaxToken + 3];  // a token that is too long, or has a line break, fits
  ssize_t count = -1;
  if (opened && S_ISREG(status.st_mode)) count = read(file, bytes, sizeof bytes);
  const int error = errno;
  if (file >= 0) close(file);
  if (opened && !S_ISREG(status.st_mode))
    return refused(source + " is no regular file", std::string("make one: `") + kMakeToken + "`");
  if (count < 0)
    return refused("the token cannot be read from " + source + ": " + std::strerror(error),
                   std::string("make one: `") + kMakeToken + "`");
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return refused(
        "other users may read or change " + source + ", which has the run's token",
        "`chmod 600 " + path + "`, and make a new token if others had the time to read it");
  std::string token(bytes, static_cast<std::size_t>(count));
  while (token.ends_with('\n') || token.ends_with('\r')) token.pop_back();
  return checked(std::move(token), source);
}

std::string value_of(const Environment& environment, const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? std::string() : found->second;
}

void add(crypto_auth_hmacsha256_state& state, const void* bytes, std::size_t count) {
  crypto_auth_hmacsha256_update(&state, static_cast<const unsigned char*>(bytes), count);
}

}  // namespace

RunTokenRead read_run_token(const Environment& environment) {
  const std::string token = value_of(environment, kTokenVariable);
  const std::string path = value_of(environment, kTokenFileVariable);
  if (!token.empty() && !path.empty())
    return refused(
        std::string("`") + kTokenVariable + "` and `" + kTokenFileVariable + "` are both set",
        "set one of them");
  if (!path.empty()) return read_file(path);
  if (token.empty()) return {};
  return checked(token, std::string("the environment variable `") + kTokenVariable + "`");
}

std::string random_run_token() {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string token;
  for (const unsigned char byte : random_nonce()) token += {kDigits[byte >> 4], kDigits[byte & 15]};
  return token;
}

Nonce random_nonce() {
  // Once, because threads may ask at the same time.
  [[maybe_unused]] static const int ready = sodium_init();
  Nonce nonce;
  // It ends the process if the system has no random bytes.
  randombytes_buf(nonce.data(), nonce.size());
  return nonce;
}

Proof prove(std::string_view token, const Claim& claim) {
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, reinterpret_cast<const unsigned char*>(token.data()),
                              token.size());
  const auto role = static_cast<unsigned char>(claim.role);
  const std::uint64_t run_bytes = claim.run.size();
  add(state, kPurpose.data(), kPurpose.size());
  add(state, &role, sizeof role);
  add(state, &claim.rank, sizeof claim.rank);
  add(state, &run_bytes, sizeof run_bytes);
  add(state, claim.run.data(), claim.run.size());
  add(state, claim.of_process.data(), claim.of_process.size());
  add(state, claim.of_rank_zero.data(), claim.of_rank_zero.size());
  Proof proof;
  crypto_auth_hmacsha256_final(&state, proof.data());
  return proof;
}

bool same_proof(const Proof& one, const Proof& other) {
  return crypto_verify_32(one.data(), other.data()) == 0;
}

}  // namespace piper::runtime
