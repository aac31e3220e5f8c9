#pragma once
// Times of a recorded run: of each body, library call and message, and of the parts of its last
// step.
//
//   const Profile profile = profile_of(dag, programs, executor.recorded());
//   profile_text(profile)                          // a line per rank
//   profile_json(profile)                          // an object per rank
//   service::cost_file_text(profile.costs)         // the input of `simulate --costs`

#include <span>
#include <string>
#include <vector>

#include "backend/device_program/job.h"
#include "frontend/service/cost_text.h"
#include "llvm/Support/JSON.h"
#include "runtime/executor/executor.h"

namespace piper::tools {

struct Profile {
  /// Parts of the last step, in seconds; they add up to `step`.
  struct Rank {
    std::string name;
    double step = 0;
    double products = 0, attention = 0;
    double kernels = 0;        // all other work
    double communication = 0;  // a message or collective is on its way, and nothing is computed
    double idle = 0;
  };
  std::vector<Rank> ranks;
  service::MeasuredCosts costs;
};

/// `recorded`: a step of all ranks.
Profile profile_of(const dag::Dag& dag, const backend::ProgramSet& programs,
                   std::span<const runtime::RecordedRank> recorded);

std::string profile_text(const Profile& profile);
/// In seconds.
llvm::json::Array profile_json(const Profile& profile);

}  // namespace piper::tools
