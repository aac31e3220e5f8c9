#pragma once
// The transport between ranks of one process: at the rendezvous the progress thread copies from the
// sender's arena into the receiver's.
//
// Guarantees: nothing is buffered; a long message moves in slices, one per poll, so that others are
// not held up. An all_reduce adds in member order whatever the timing.

#include <memory>

#include "runtime/transport/transport.h"

namespace piper::runtime {

std::unique_ptr<Transport> make_local_transport();

}  // namespace piper::runtime
