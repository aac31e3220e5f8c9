#include "runtime/transport/process_channel.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/dtypes.h"
#include "runtime/transport/element_sums.h"

namespace piper::runtime {

namespace {

// A slice of a reduction: large enough that UCX moves it without a copy, small enough that the
// memory for the slices of many members stays small.
constexpr std::uint64_t kMaxSlice = 256 * 1024, kMinSlice = 16 * 1024;
constexpr std::uint64_t kSlicesOfAll = 4 * 1024 * 1024;
// The running sum stays in the first-level cache.
constexpr std::uint64_t kSumBytes = 16 * 1024;

std::uint64_t slice_bytes(std::size_t members) {
  return std::clamp<std::uint64_t>(kSlicesOfAll / members / 64 * 64, kMinSlice, kMaxSlice);
}

bool is_reduction(const Operation& operation) {
  return operation.action->op == PIPER_ALL_REDUCE || operation.action->op == PIPER_REDUCE_SCATTER;
}

void set_failed(Operation& operation, const char* error, std::int64_t value, bool carrier = false) {
  operation.error = error;
  operation.error_value = value;
  operation.carrier_failed = carrier;
  operation.state = OperationState::failed;
}

}  // namespace

ProcessChannel::ProcessChannel(UcxWorker& worker, std::uint32_t epoch, std::uint32_t number,
                               const PiperCommunicator& communicator,
                               std::vector<std::uint32_t> processes)
    : worker_(worker),
      epoch_(epoch),
      number_(number),
      communicator_(communicator.id),
      self_(communicator.self),
      pair_(communicator.kind == 0),
      peers_(processes.size()),
      sum_(pair_ ? 0 : kSumBytes) {
  for (std::size_t member = 0; member < processes.size(); ++member)
    peers_[member].process = processes[member];
}

template <typename Use>
void ProcessChannel::for_peers(const Use& use) {
  for (std::uint32_t member = 0; member < peers_.size(); ++member) {
    if (member != self_) use(peers_[member], member);
  }
}

// ---- offers

void ProcessChannel::start(Operation& operation) {
  operation.state = OperationState::pending;
  if (operation_ != nullptr) {
    return set_failed(operation,
                      "two communications of one member are in flight on one communicator",
                      operation_->action->identity);
  }
  operation_ = &operation;
  matched_ = busy_ = false;
  if (pair_ && operation.action->op != (self_ == 0 ? PIPER_SEND : PIPER_RECV))
    return fail("the directions of the two ends do not fit", operation.action->identity);
  digests_ = digests_of(operation);
  terms_.assign(operation);
  for (std::uint32_t i = 0; i < operation.action->num_parts; ++i) {
    const PiperMessagePart& part = operation.parts[i];
    if (part.flags & PIPER_ZERO_FILL)
      std::memset(operation.arena + part.out, 0, part.elements * element_bytes(part.dtype));
  }
  if (!is_send()) send_offers();
  advance();
}

void ProcessChannel::send_offers() {
  for_peers([&](Peer& peer, std::uint32_t member) { send_offer(peer, member); });
}

void ProcessChannel::send_offer(Peer& peer, std::uint32_t member) {
  const PiperCommAction& action = *operation_->action;
  const Offer offer{.sizes = digests_.sizes,
                    .types = digests_.types,
                    .epoch = epoch_,
                    .communicator = communicator_,
                    .from = self_,
                    .to = member,
                    .sequence = sequence_,
                    .op = action.op,
                    .identity = action.identity,
                    .num_parts = action.num_parts,
                    .channel = number_};
  peer.note.assign(reinterpret_cast<const char*>(&offer), sizeof offer);
  peer.note += terms_.bytes();
  worker_.send_note(peer.process, peer.note, peer.note_request);
}

void ProcessChannel::take(const Offer& offer, std::string_view terms) {
  if (offer.from >= peers_.size() || offer.from == self_) return;
  Received& slot = peers_[offer.from].received[offer.sequence % 2];
  const std::uint32_t ahead = offer.sequence - sequence_;
  if (slot.here || ahead > 1 || !slot.terms.assign(terms, offer.num_parts)) {
    broken_ = "another process sent an offer that does not fit";
    return;
  }
  slot.offer = offer;
  slot.here = true;
}

/// The reason why the offer is not the other side of this operation, or null.
const char* ProcessChannel::difference(std::uint32_t member, const Offer& offer) const {
  const PiperCommAction& action = *operation_->action;
  if (pair_) {
    if (offer.op != (member == 0 ? PIPER_SEND : PIPER_RECV))
      return "the directions of the two ends do not fit";
  } else if (offer.op != action.op) {
    return "the members run different operations";
  }
  if (offer.identity != action.identity) return "the members run different communications";
  if (offer.num_parts != action.num_parts) return "the members have different numbers of values";
  if (offer.sizes != digests_.sizes) return "the members have values of different sizes";
  if (offer.types != digests_.types) return "the members have values of different types";
  return nullptr;
}

/// Compares the offers that are here; true after a failure. The sender of a pair sends one only if
/// the receiver runs something else.
bool ProcessChannel::differs() {
  for (std::uint32_t member = 0; member < peers_.size(); ++member) {
    const Received& received = offer_of(peers_[member]);
    const char* const error =
        member != self_ && received.here ? difference(member, received.offer) : nullptr;
    if (error == nullptr) continue;
    if (is_send()) send_offer(peers_[member], member);
    fail(error, received.offer.identity);
    return true;
  }
  return false;
}

/// Whether data may move: the offers of all others are here. The receiver of a pair needs none.
bool ProcessChannel::match() {
  bool all = true;
  for_peers([&](Peer& peer, std::uint32_t) { all = all && offer_of(peer).here; });
  if (!all && (!pair_ || is_send())) return false;
  if (!pair_ && !find_contributors()) return false;
  begin_lanes();
  copy_own_parts();
  return true;
}

bool ProcessChannel::find_contributors() {
  const std::uint32_t parts = operation_->action->num_parts;
  contributors_.resize(parts);
  for (std::uint32_t part = 0; part < parts; ++part) {
    std::uint32_t member = 0;
    while (member < peers_.size() &&
           !(member == self_ ? terms_ : offer_of(peers_[member]).terms).has(part))
      ++member;
    contributors_[part] = member;
    if (member < peers_.size() || (operation_->parts[part].flags & PIPER_ZERO_FILL)) continue;
    fail("no member contributes a value", operation_->action->identity);
    return false;
  }
  return true;
}

// ---- messages

void ProcessChannel::begin_lanes() {
  const Operation& operation = *operation_;
  const auto members = static_cast<std::uint32_t>(peers_.size());
  PartCursor none{.part = operation.action->num_parts};
  PartCursor slices{.members = members, .slice_bytes = slice_bytes(members)};
  const auto shard_of = [&](PartCursor cursor, std::uint32_t member) {
    cursor.shard_of = member;
    cursor.members = members;
    return cursor;
  };
  const auto with_terms = [](PartCursor cursor, const Terms& terms) {
    cursor.terms = &terms;
    return cursor;
  };
  const auto from = [&](std::uint32_t member) {
    return PartCursor{.contributors = &contributors_, .contributor = member};
  };
  for_peers([&](Peer& peer, std::uint32_t member) {
    for (Lane* lane : {&peer.out, &peer.in, &peer.sums_out, &peer.sums_in}) {
      lane->cursor = none;
      lane->begun = lane->done = lane->taken = 0;
    }
    switch (static_cast<PiperCommOp>(operation.action->op)) {
      case PIPER_SEND: peer.out.cursor = PartCursor{}; return;
      case PIPER_RECV: peer.in.cursor = PartCursor{}; return;
      case PIPER_ALL_GATHER:
        peer.out.cursor = shard_of({}, self_);
        peer.in.cursor = shard_of({}, member);
        return;
      case PIPER_ALL_GATHER_V:
        peer.out.cursor = from(self_);
        peer.in.cursor = from(member);
        return;
      case PIPER_ALL_REDUCE:
        peer.sums_out.cursor = shard_of(slices, self_);
        peer.sums_in.cursor = shard_of(slices, member);
        [[fallthrough]];
      case PIPER_REDUCE_SCATTER:
        peer.out.cursor = with_terms(shard_of(slices, member), terms_);
        peer.in.cursor = with_terms(shard_of(slices, self_), offer_of(peer).terms);
        peer.slices.resize(kSlices * slices.slice_bytes);
        return;
      case PIPER_OFFLOAD:
      case PIPER_FETCH: return;  // they have one member
    }
  });
  rounds_ = is_reduction(operation) ? shard_of(slices, self_) : none;
  rounds_done_ = 0;
}

/// The pieces of a gather that this member has itself.
void ProcessChannel::copy_own_parts() {
  const Operation& operation = *operation_;
  PartCursor own;
  if (operation.action->op == PIPER_ALL_GATHER) {
    own = {.shard_of = self_, .members = static_cast<std::uint32_t>(peers_.size())};
  } else if (operation.action->op == PIPER_ALL_GATHER_V) {
    own = {.contributors = &contributors_, .contributor = self_};
  } else {
    return;
  }
  const bool shards = operation.action->op == PIPER_ALL_GATHER;
  while (const auto piece = own.next(operation)) {
    const unsigned char* const source =
        shards ? in_shard(operation, *piece) : in_at(operation, *piece);
    unsigned char* const target = out_at(operation, *piece);
    if (source != target) std::memcpy(target, source, bytes_of(operation, *piece));
  }
}

/// Data goes to the number of the receiver's channel, from a member; sums are apart.
std::uint64_t ProcessChannel::tag_to(Peer& peer, bool sums) {
  return std::uint64_t{offer_of(peer).offer.channel} << 32 | (sums ? 1u << 31 : 0u) | self_;
}
std::uint64_t ProcessChannel::tag_from(std::uint32_t member, bool sums) const {
  return std::uint64_t{number_} << 32 | (sums ? 1u << 31 : 0u) | member;
}

/// Forgets the messages that have ended, in their order; false after a failure.
bool ProcessChannel::retire(Lane& lane) {
  while (lane.done < lane.begun) {
    UcxRequest& request = lane.requests[lane.done % kInFlight];
    const UcxState state = worker_.state(request);
    if (state == UcxState::pending) return true;
    if (state == UcxState::failed) {
      fail(request.error, -1, true);
      return false;
    }
    ++lane.done;
  }
  return true;
}

/// Sends pieces, at most `limit` of the lane in all.
template <typename Address>
void ProcessChannel::send_parts(Peer& peer, Lane& lane, bool sums, std::uint64_t limit,
                                const Address& address) {
  while (operation_ != nullptr && retire(lane) && lane.begun - lane.done < kInFlight &&
         lane.begun < limit) {
    const auto piece = lane.cursor.next(*operation_);
    if (!piece) return;
    worker_.send(peer.process, tag_to(peer, sums), address(*piece), bytes_of(*operation_, *piece),
                 lane.requests[lane.begun % kInFlight]);
    ++lane.begun;
  }
}

template <typename Address>
void ProcessChannel::receive_parts(std::uint32_t member, Lane& lane, bool sums, std::uint64_t limit,
                                   const Address& address) {
  while (operation_ != nullptr && retire(lane) && lane.begun - lane.done < kInFlight &&
         lane.begun < limit) {
    const auto piece = lane.cursor.next(*operation_);
    if (!piece) return;
    worker_.receive(tag_from(member, sums), address(*piece), bytes_of(*operation_, *piece),
                    lane.requests[lane.begun % kInFlight]);
    ++lane.begun;
  }
}

void ProcessChannel::move_lanes() {
  const bool reduces = is_reduction(*operation_);
  const bool shards = operation_->action->op == PIPER_ALL_GATHER;
  for_peers([&](Peer& peer, std::uint32_t member) {
    if (operation_ == nullptr) return;
    const std::uint64_t slice = peer.slices.size() / kSlices;
    receive_parts(member, peer.in, false, reduces ? peer.in.taken + kSlices : UINT64_MAX,
                  [&](const PartInterval& piece) {
                    return reduces ? peer.slices.data() + (peer.in.begun % kSlices) * slice
                                   : out_at(*operation_, piece);
                  });
    send_parts(peer, peer.out, false, UINT64_MAX, [&](const PartInterval& piece) {
      return shards ? in_shard(*operation_, piece) : in_at(*operation_, piece);
    });
    receive_parts(member, peer.sums_in, true, UINT64_MAX,
                  [&](const PartInterval& piece) { return out_at(*operation_, piece); });
    send_parts(peer, peer.sums_out, true, rounds_done_,
               [&](const PartInterval& piece) { return out_at(*operation_, piece); });
  });
}

// ---- sums

/// Adds the next slice of this member's shards, if the terms of all others for it are here.
bool ProcessChannel::add_slice() {
  const auto piece = rounds_.peek(*operation_);
  if (!piece) return false;
  bool here = true;
  for_peers([&](Peer& peer, std::uint32_t) {
    if (offer_of(peer).terms.has(piece->part)) here = here && peer.in.done > peer.in.taken;
  });
  if (!here) return false;
  add_terms(*piece);
  for_peers([&](Peer& peer, std::uint32_t) {
    if (offer_of(peer).terms.has(piece->part)) ++peer.in.taken;
  });
  rounds_.next(*operation_);
  ++rounds_done_;
  return true;
}

void ProcessChannel::add_terms(const PartInterval& piece) {
  const Operation& operation = *operation_;
  const PiperMessagePart& part = operation.parts[piece.part];
  const std::uint64_t size = element_bytes(part.dtype);
  const bool to_shard = operation.action->op == PIPER_REDUCE_SCATTER;
  for (std::uint64_t at = 0; at < piece.count; at += kSumBytes / size) {
    const PartInterval now{piece.part, piece.first + at,
                           std::min(piece.count - at, kSumBytes / size)};
    const std::uint64_t bytes = now.count * size;
    bool any = false;
    for (std::uint32_t member = 0; member < peers_.size(); ++member) {
      Peer& peer = peers_[member];
      if (!(member == self_ ? terms_ : offer_of(peer).terms).has(piece.part)) continue;
      const unsigned char* const term =
          member == self_
              ? in_at(operation, now)
              : peer.slices.data() + (peer.in.taken % kSlices) * (peer.slices.size() / kSlices) +
                    at * size;
      if (!std::exchange(any, true)) {
        std::memcpy(sum_.data(), term, bytes);
      } else {
        add_elements(part.dtype, sum_.data(), term, now.count);
      }
    }
    unsigned char* const to = to_shard ? out_shard(operation, now) : out_at(operation, now);
    if (to_shard && (part.flags & PIPER_ACCUMULATE) != 0) {
      add_elements(part.dtype, to, sum_.data(), now.count);
    } else {
      std::memcpy(to, sum_.data(), bytes);
    }
  }
}

// ---- progress

void ProcessChannel::advance() {
  if (operation_ == nullptr) return;
  if (broken_ != nullptr) return fail(broken_, -1, true);
  if (differs() || (!matched_ && !(matched_ = match()))) return;
  move_lanes();
  busy_ = operation_ != nullptr && add_slice();
  if (busy_) move_lanes();
  if (operation_ != nullptr) end_if_done();
}

bool ProcessChannel::offers_sent() {
  bool sent = true;
  for_peers([&](Peer& peer, std::uint32_t) {
    const UcxState state = worker_.state(peer.note_request);
    if (state == UcxState::failed) fail(peer.note_request.error, -1, true);
    sent = sent && state == UcxState::done;
  });
  return sent;
}

void ProcessChannel::end_if_done() {
  bool ended = !rounds_.peek(*operation_).has_value();
  for_peers([&](Peer& peer, std::uint32_t) {
    for (Lane* lane : {&peer.out, &peer.in, &peer.sums_out, &peer.sums_in})
      ended = ended && lane->ended(*operation_);
  });
  if (!ended || !offers_sent() || operation_ == nullptr) return;
  for_peers([&](Peer& peer, std::uint32_t) { offer_of(peer).here = false; });
  ++sequence_;
  std::exchange(operation_, nullptr)->state = OperationState::done;
}

void ProcessChannel::cancel() {
  for (Peer& peer : peers_) {
    worker_.cancel(peer.note_request);
    for (Lane* lane : {&peer.out, &peer.in, &peer.sums_out, &peer.sums_in}) {
      for (UcxRequest& request : lane->requests) worker_.cancel(request);
    }
  }
}

void ProcessChannel::fail(const char* error, std::int64_t value, bool carrier) {
  if (operation_ != nullptr) set_failed(*std::exchange(operation_, nullptr), error, value, carrier);
}

}  // namespace piper::runtime
