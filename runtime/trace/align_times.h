#pragma once
// The times of ranks that were recorded by several processes, each from the start of its own step, as times from one point.
//
// No clock is compared: what a member of a communication waits for says where its times lie. What a member receives has been sent before, so its communication ends after every member that gives something
// has begun it. One in which all give and receive ends at all of them together, but for the time that it took who came last. That bounds how far apart the starts of two ranks are, over several communications
// and ranks too, from below and from above; each rank is put into the middle between its bounds to the first rank. Where messages go one way alone there is one bound, which is taken; a rank that never meets
// another begins with the first one. Where ends that shall be together contradict each other, only what is received after it was sent counts.
//
//   align_times(meetings, recorded);     // ranks in the order of the meetings

#include <vector>

#include "runtime/trace/recorder.h"
#include "runtime/transport/meetings.h"

namespace piper::runtime {

/// The earliest start of all is 0 afterwards. Nothing lasts longer or shorter than before.
void align_times(const Meetings& meetings, std::vector<RecordedRank>& recorded);

}  // namespace piper::runtime
