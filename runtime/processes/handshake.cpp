#include "runtime/processes/handshake.h"

namespace piper::runtime {

std::optional<Hello> ProcessEnd::take_answer(const Answer& answer) const {
  const Claim theirs{Role::rank_zero, 0, run_, nonce_, answer.nonce};
  if (!token_.empty() && !same_proof(answer.proof, prove(token_, theirs))) return std::nullopt;
  const Claim mine{Role::process, rank_, run_, nonce_, answer.nonce};
  return Hello{run_, rank_, world_, this_process(), prove(token_, mine)};
}

std::optional<Answer> RankZeroEnd::take_opening(std::string_view token, std::string_view run,
                                                std::string_view body) {
  const auto opening = opened_ ? std::nullopt : decode_opening(body);
  if (!opening) return std::nullopt;
  opened_ = true;
  theirs_ = opening->nonce;
  own_ = random_nonce();
  return Answer{own_, prove(token, {Role::rank_zero, 0, run, theirs_, own_})};
}

bool RankZeroEnd::proves(std::string_view token, const Hello& hello) const {
  return opened_ && same_proof(hello.proof,
                               prove(token, {Role::process, hello.rank, hello.run, theirs_, own_}));
}

}  // namespace piper::runtime
