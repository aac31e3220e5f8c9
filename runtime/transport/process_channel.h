#pragma once
// One local member of a communicator that has members in other processes: its operation in flight,
// and the messages to and from each other member. Internal to the process transport.
//
// The first operation on a channel grows its tables; later ones of that shape allocate nothing.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/transport/member_messages.h"
#include "runtime/transport/ucx.h"

namespace piper::runtime {

/// The fixed part of an offer, as it is sent; the bits of its terms follow.
struct Offer {
  std::uint64_t sizes = 0, types = 0;  // PartDigests
  std::uint32_t epoch = 0;             // the number of times that channels were forgotten before
  std::uint32_t communicator = 0, from = 0, to = 0;  // members
  std::uint32_t sequence = 0;                        // of the operation on the channel
  std::uint32_t op = 0, identity = 0, num_parts = 0;
  std::uint32_t channel = 0;  // of the sender: a part of the tags of data for it
  std::uint32_t padding = 0;
};

class ProcessChannel {
 public:
  /// `number`: of the channel in this process. `processes`: of the members, in their order.
  ProcessChannel(UcxWorker& worker, std::uint32_t epoch, std::uint32_t number,
                 const PiperCommunicator& communicator, std::vector<std::uint32_t> processes);

  void start(Operation& operation);
  /// Moves the operation in flight as far as possible within a short time.
  void advance();
  /// True if `advance` can go on without a further message.
  bool busy() const { return operation_ != nullptr && busy_; }
  /// An offer of another member for this one: one that does not fit fails the next operation.
  void take(const Offer& offer, std::string_view terms);
  /// Gives up the messages in flight.
  void cancel();

 private:
  static constexpr std::size_t kInFlight = 4;  // messages of a lane
  // Slices of a reduction in one direction between two members: one is added while the next comes.
  static constexpr std::uint64_t kSlices = 2;

  /// The messages of one kind between this member and another, in one direction.
  struct Lane {
    PartCursor cursor;
    std::array<UcxRequest, kInFlight> requests;
    std::uint64_t begun = 0, done = 0, taken = 0;

    bool ended(const Operation& operation) {
      return begun == done && !cursor.peek(operation).has_value();
    }
  };
  struct Received {
    bool here = false;
    Offer offer;
    Terms terms;
  };
  struct Peer {
    std::uint32_t process = 0;
    std::array<Received, 2> received;  // a member may be one operation ahead
    std::string note;
    UcxRequest note_request;
    Lane out, in;                       // data, or the terms of a reduction
    Lane sums_out, sums_in;             // all_reduce
    std::vector<unsigned char> slices;  // kSlices terms of that member
  };

  bool is_send() const { return pair_ && self_ == 0; }
  Received& offer_of(Peer& peer) { return peer.received[sequence_ % 2]; }
  template <typename Use>
  void for_peers(const Use& use);

  void send_offers();
  void send_offer(Peer& peer, std::uint32_t member);
  bool differs();
  bool match();
  const char* difference(std::uint32_t member, const Offer& offer) const;
  bool find_contributors();
  void begin_lanes();
  void copy_own_parts();
  void move_lanes();
  template <typename Address>
  void send_parts(Peer& peer, Lane& lane, bool sums, std::uint64_t limit, const Address& address);
  template <typename Address>
  void receive_parts(std::uint32_t member, Lane& lane, bool sums, std::uint64_t limit,
                     const Address& address);
  bool retire(Lane& lane);
  bool add_slice();
  void add_terms(const PartInterval& piece);
  bool offers_sent();
  void end_if_done();
  /// Ends the operation in flight.
  void fail(const char* error, std::int64_t value, bool carrier = false);

  std::uint64_t tag_to(Peer& peer, bool sums);
  std::uint64_t tag_from(std::uint32_t member, bool sums) const;

  UcxWorker& worker_;
  const std::uint32_t epoch_, number_, communicator_, self_;
  const bool pair_;
  std::vector<Peer> peers_;  // by member; that of this one is not used
  Operation* operation_ = nullptr;
  PartDigests digests_;
  Terms terms_;
  std::uint32_t sequence_ = 0;
  bool matched_ = false, busy_ = false;
  const char* broken_ = nullptr;             // an offer that did not fit
  std::vector<std::uint32_t> contributors_;  // by part
  PartCursor rounds_;                        // this member's slices of a reduction
  std::uint64_t rounds_done_ = 0;
  std::vector<unsigned char> sum_;
};

}  // namespace piper::runtime
