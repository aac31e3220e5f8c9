#include "runtime/transport/match_communications.h"

#include <algorithm>
#include <map>
#include <string>

namespace piper::runtime {

namespace {

std::optional<Failure> compare(std::span<const PiperJobRank> ranks, Phase phase,
                               const std::vector<CommMember>& matched_comm) {
  const auto mismatch = [&](const CommMember& at, const char* error) {
    const PiperJobRank& rank = ranks[at.rank];
    Failure failure{.code = kMessageMismatch, .message = error, .rank = rank.rank};
    failure.place = location_of(*in_phase(rank, phase).program, at.action);
    return failure;
  };
  std::vector<const Operation*> operations;
  for (const CommMember& member : matched_comm) {
    if (member.operation.action == nullptr) {
      const auto other =
          std::find_if(matched_comm.begin(), matched_comm.end(),
                       [](const CommMember& each) { return each.operation.action != nullptr; });
      return mismatch(*other,
                      "a member of the communicator has fewer communications than this one");
    }
    operations.push_back(&member.operation);
  }
  std::size_t member = 0;
  if (const char* error = disagreement(operations, member))
    return mismatch(matched_comm[member], error);
  return std::nullopt;
}

}  // namespace

std::optional<Failure> match_communications(std::span<const PiperJobRank> ranks, Phase phase,
                                            MatchedComms& matched) {
  // Communicator and number of the communication on it -> meeting.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> known;
  matched.at.resize(ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const PiperRank rank = in_phase(ranks[r], phase);
    const PiperProgram& program = *rank.program;
    std::map<std::uint32_t, std::uint32_t> numbers;  // of the next communication, by communicator
    matched.at[r].resize(program.num_streams);
    for (std::uint32_t s = 0; s < program.num_streams; ++s) {
      for (std::uint32_t i = 0;
           program.streams[s].comm != nullptr && i < program.streams[s].num_actions; ++i) {
        const PiperCommAction& action = program.streams[s].comm[i];
        const PiperCommunicator& communicator = rank.communicators[action.communicator];
        const auto [found, fresh] =
            known.try_emplace({communicator.id, numbers[communicator.id]++},
                              static_cast<std::uint32_t>(matched.list.size()));
        if (fresh) matched.list.emplace_back(communicator.num_members);
        matched.at[r][s].push_back(found->second);
        CommMember& member = matched.list[found->second][communicator.self];
        member.rank = r;
        member.stream = s;
        member.action = action.action;
        member.operation.action = &action;
        member.operation.parts = program.parts + action.first_part;
        member.operation.intervals = rank.intervals;
        member.operation.communicator = &communicator;
      }
    }
  }
  for (const std::vector<CommMember>& matched_comm : matched.list) {
    if (auto failure = compare(ranks, phase, matched_comm)) return failure;
  }
  return std::nullopt;
}

}  // namespace piper::runtime
