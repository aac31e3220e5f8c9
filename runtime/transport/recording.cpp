#include "runtime/transport/recording.h"

#include <algorithm>

#include "runtime/dtypes.h"

namespace piper::runtime {

void RecordingTransport::start(Operation& operation) {
  const PiperCommunicator& communicator = *operation.communicator;
  std::string text = "communicator " + std::to_string(communicator.id) + ": ";
  text += comm_op_name(operation.action->op);
  text += ' ' + std::to_string(operation.action->identity);
  for (std::uint32_t i = 0; i < operation.action->num_parts; ++i) {
    const PiperMessagePart& part = operation.parts[i];
    text += ' ';
    text += dtype_name(part.dtype);
    text += '[' + std::to_string(part.elements) + ']';
  }
  calls_.push_back({communicator.members[communicator.self], communicator.id, std::move(text)});
  inner_->start(operation);
}

std::vector<std::string> RecordingTransport::lines(std::uint32_t rank) const {
  std::vector<const Call*> own;
  for (const Call& call : calls_) {
    if (call.rank == rank) own.push_back(&call);
  }
  std::stable_sort(own.begin(), own.end(),
                   [](const Call* a, const Call* b) { return a->communicator < b->communicator; });
  std::vector<std::string> lines;
  for (const Call* call : own) lines.push_back(call->text);
  return lines;
}

}  // namespace piper::runtime
