#pragma once
// Streams: `compute` for a device's own work, by default one stream per communicator.
//
//   stream grads: model.reduce with priority: high     ->  streams compute, grads (high), act.pp0.to.pp1, grad.pp1.to.pp0
//
// Guarantees: the same stream at both ends of a message; at most kMaxStreams streams on a rank
// (default streams of a crowded rank are pooled); a window of a `stream` line that is smaller than
// the order needs is refused, with the two messages that need more.

#include <cstdint>
#include <span>

#include "ir/dag/dag.h"
#include "ir/diagnostics/diagnostics.h"
#include "passes/order/communicators.h"
#include "passes/order/roles.h"
#include "passes/selectors/select.h"

namespace piper::passes {

/// PIPER_MAX_STREAMS of runtime/abi.h, which passes do not see.
inline constexpr std::size_t kMaxStreams = 64;

/// Fills `dag.streams` and the streams of nodes. `routes`, `position`: as for form_communicators,
/// whose result it returns; nothing after an error.
std::optional<Communicators> assign_streams(dag::Dag& dag, const directive::Strategy& strategy,
                                            const WorkGraph& graph, Selection& selection,
                                            const RoleTable& roles, Routes routes,
                                            std::span<const std::uint32_t> position,
                                            DiagnosticSink& sink);

}  // namespace piper::passes
