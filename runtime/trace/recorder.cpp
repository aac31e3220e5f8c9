#include "runtime/trace/recorder.h"

namespace piper::runtime {

void ActionRecorder::prepare(const PiperProgram& program) {
  first_.assign(1, 0);
  for (std::uint32_t stream = 0; stream < program.num_streams; ++stream)
    first_.push_back(first_.back() + program.streams[stream].num_actions);
  times_.assign(2 * first_.back(), {});
  shortest_.assign(first_.back(), 0);
  product_ns_ = attention_ns_ = 0;
}

std::vector<RecordedAction> ActionRecorder::last(std::uint64_t steps) const {
  std::vector<RecordedAction> actions;
  if (first_.empty() || steps == 0) return actions;
  const Times* const times = times_.data() + ((steps - 1) & 1) * first_.back();
  for (std::uint32_t stream = 0; stream + 1 < first_.size(); ++stream) {
    for (std::size_t at = first_[stream]; at < first_[stream + 1]; ++at) {
      actions.push_back({stream, static_cast<std::uint32_t>(at - first_[stream]),
                         times[at].begin_ns, times[at].end_ns, times[at].product_ns,
                         times[at].attention_ns, shortest_[at]});
    }
  }
  return actions;
}

}  // namespace piper::runtime
