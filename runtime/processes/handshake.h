#pragma once
// How a process and rank 0 recognise each other on a new connection. With a token each end proves
// that it has the token before it says anything else; a proof is valid for this connection only.
// Without a token the same messages prove only that the other end receives the answers.
//
//   process: ProcessEnd end(token, launch);      rank 0: RankZeroEnd end;
//   send(open, end.opening())                    send(nonce, end.take_opening(token, run, body))
//   send(hello, end.take_answer(body))           hello = decode_hello(body); end.proves(token, *hello)

#include <optional>
#include <string>
#include <string_view>

#include "runtime/processes/launch.h"
#include "runtime/processes/messages.h"

namespace piper::runtime {

class ProcessEnd {
 public:
  ProcessEnd(std::string token, const Launch& launch)
      : token_(std::move(token)),
        run_(launch.run),
        rank_(launch.rank),
        world_(launch.world),
        nonce_(random_nonce()) {}

  Opening opening() const { return {nonce_}; }
  /// The hello that answers rank 0's number. Empty if rank 0 has not proved that it has the token:
  /// then nothing about this process is sent to it.
  std::optional<Hello> take_answer(const Answer& answer) const;

 private:
  std::string token_, run_;
  std::uint32_t rank_ = 0, world_ = 0;
  Nonce nonce_;
};

class RankZeroEnd {
 public:
  /// Empty if the body is not an opening, or if this is the second opening.
  std::optional<Answer> take_opening(std::string_view token, std::string_view run,
                                     std::string_view body);
  bool opened() const { return opened_; }
  /// Whether the sender of a hello has the token, and has received the answer to its opening.
  bool proves(std::string_view token, const Hello& hello) const;

 private:
  Nonce theirs_{}, own_{};
  bool opened_ = false;
};

}  // namespace piper::runtime
