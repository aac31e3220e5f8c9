#pragma once
// The transport between ranks on one GPU: the device copies and adds on the stream of one member of
// a matched communication; the streams of the others wait for it.
//
// Guarantees: all messages of a step are known before the first step, and both ends of every
// message are compared then; sums add in member order, as in the local transport
// (runtime/transport/local.h), so both give the same bits. Members arrive in the order of all
// ranks, in which they are neighbours: nothing is enqueued behind a communication that waits for
// its members.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "runtime/cuda/driver.h"
#include "runtime/cuda/exchange.h"
#include "runtime/transport/match_communications.h"

namespace piper::runtime::cuda {

struct Gpu;

class Loopback final : public Exchange {
 public:
  explicit Loopback(Gpu& gpu) : gpu_(gpu) {}

  std::optional<Failure> connect(Phase phase) override;
  void part() override;
  int arrive(GpuRank& rank, std::uint32_t stream, std::uint32_t action,
             std::uint32_t position) override;

 private:
  struct Member {
    GpuRank* rank = nullptr;
    std::uint32_t stream = 0, action = 0;
    Operation operation;
    std::vector<std::pair<unsigned char*, std::uint64_t>> cleared;  // before it is read
  };
  struct Copy {
    unsigned char* to = nullptr;
    const unsigned char* from = nullptr;
    std::uint64_t bytes = 0;
  };
  struct Sum {
    std::vector<const unsigned char*> in;
    std::vector<unsigned char*> out;
    unsigned char* table = nullptr;  // both, on the device
    std::uint64_t elements = 0;
    std::uint32_t dtype = 0, adds = 0;
  };
  struct MatchedComm {
    std::vector<Member> members;
    std::size_t arrived = 0;
    Event done = nullptr;  // of its communicator
    std::vector<Copy> copies;
    std::vector<Sum> sums;
    /// The member whose stream moves the data: the receiver, or the first member.
    std::size_t mover() const {
      return members.size() == 2 && members[1].operation.action->op == PIPER_RECV ? 1 : 0;
    }
  };

  void plan_part(MatchedComm& comm, std::span<const Operation* const> members, std::uint32_t part);
  std::optional<Failure> upload_tables(std::vector<MatchedComm>& matched);
  int move(MatchedComm& comm);

  Gpu& gpu_;
  std::vector<MatchedComm> matched_[2];  // by Phase
  // By Phase, rank, stream, position: the matched communication.
  std::vector<std::vector<std::vector<std::uint32_t>>> at_[2];
};

}  // namespace piper::runtime::cuda
