#pragma once
// Aligns the times that several processes recorded for their ranks, each from the start of its own
// step, so that they count from one point.
//
// No clocks are compared: communications order the times. A message is received after it is sent,
// so a member's communication ends after every contributing member has begun it. A communication in
// which all give and receive ends on all members at the same time, except for the message of the
// last one. These facts bound the offset between the starts of two ranks from below and from above,
// also across several communications and ranks; each rank is put in the middle between its bounds
// to the first rank. If messages go one way only there is one bound, which is taken; a rank that
// communicates with no other starts with the first one. If ends that should coincide contradict
// each other, only the order of send and receive counts.
//
//   align_times(meetings, recorded);     // ranks in the order of the meetings

#include <vector>

#include "runtime/trace/recorder.h"
#include "runtime/transport/match_communications.h"

namespace piper::runtime {

/// Afterwards the earliest start of all is 0. Durations do not change.
void align_times(const MatchedComms& matched, std::vector<RecordedRank>& recorded);

}  // namespace piper::runtime
