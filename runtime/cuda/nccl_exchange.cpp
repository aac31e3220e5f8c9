#include "runtime/cuda/nccl_exchange.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "runtime/alignment.h"
#include "runtime/device/idle_time.h"
#include "runtime/dtypes.h"

namespace piper::runtime::cuda {

namespace {

using Clock = std::chrono::steady_clock;
/// Device blocks of a communication between two: a receive that was posted early occupies them
/// until its message arrives.
constexpr std::uint32_t kBlocksOfPair = 4;
constexpr std::chrono::milliseconds kLook(50);
constexpr std::chrono::seconds kEndWithin(10);
constexpr std::chrono::milliseconds kNoticeWithin(500), kNameWithin(10);
constexpr std::uint64_t kLine = 256;

bool stays_on_machine(std::uint32_t op) { return op == PIPER_OFFLOAD || op == PIPER_FETCH; }

}  // namespace

NcclExchange::NcclExchange(Gpu& gpu, ProcessGroup& group, std::unique_ptr<Nccl> nccl,
                           const PiperJob& whole)
    : gpu_(gpu), group_(group), nccl_(std::move(nccl)), whole_job_(whole) {
  while (whole_job_.ranks[self_].rank != gpu_.job.ranks[0].rank) ++self_;
  watch_ = std::thread([this] { watch(); });
}

NcclExchange::~NcclExchange() {
  ends_.store(true);
  gpu_.drop_graphs();
  watch_.join();
  if (gpu_.failure || group_.failed() || (!aborted_ && !finalize_all())) abort_all();
  const Clock::time_point until = Clock::now() + kEndWithin;
  const auto ended = [&](const std::future<void>& abort) {
    return abort.wait_until(until) == std::future_status::ready;
  };
  // Nothing on the device for which NCCL still waits can be released.
  if (!std::all_of(aborts_.begin(), aborts_.end(), ended)) gpu_.driver->abandon();
}

bool NcclExchange::finalize_all() {
  const Clock::time_point until = Clock::now() + kEndWithin;
  for (Communicator& each : communicators_) {
    NcclResult state = nccl_->finalize(each.handle);
    while (state == kNcclSuccess || state == kNcclInProgress) {
      const NcclResult asked = nccl_->state(each.handle, &state);
      if (asked != kNcclSuccess) state = asked;
      if (state != kNcclInProgress || Clock::now() >= until) break;
      std::this_thread::sleep_for(std::chrono::microseconds(100));
    }
    if (state != kNcclSuccess) return false;
    nccl_->destroy(std::exchange(each.handle, nullptr));
  }
  return true;
}

// ---- before the first step

std::optional<Failure> NcclExchange::connect(Phase phase) {
  zero_bytes_ = 0;
  MatchedComms matched;
  if (auto failure = match_communications({whole_job_.ranks, whole_job_.num_ranks}, phase, matched))
    return failure;
  if (auto failure = open_communicators(phase)) return failure;
  if (auto failure = plan(phase, matched)) return failure;
  if (auto failure = place_scratch(phase)) return failure;
  return exchange_elements(phase);
}

std::map<std::uint32_t, const PiperCommunicator*> NcclExchange::used(Phase phase) const {
  const PiperRank& active = gpu_.ranks[0]->ranks[static_cast<std::size_t>(phase)];
  const PiperProgram& program = *active.program;
  std::map<std::uint32_t, const PiperCommunicator*> used;
  for (std::uint32_t s = 0; s < program.num_streams; ++s) {
    for (std::uint32_t i = 0;
         program.streams[s].comm != nullptr && i < program.streams[s].num_actions; ++i) {
      const PiperCommAction& action = program.streams[s].comm[i];
      const PiperCommunicator& communicator = active.communicators[action.communicator];
      if (!stays_on_machine(action.op)) used[communicator.id] = &communicator;
    }
  }
  return used;
}

/// Buffers by NCCL's defaults: about 10 MiB for each block of a communication and direction.
std::uint64_t NcclExchange::library_bytes() const {
  constexpr std::uint64_t kMiB = 1 << 20, kOfPair = 10 * kBlocksOfPair * kMiB,
                          kOfGroup = 256 * kMiB;
  std::uint64_t bytes = 0;
  for (const auto& [id, members] : used(Phase::training))
    bytes += members->kind == 0 ? kOfPair : kOfGroup;
  return bytes;
}

std::optional<Failure> NcclExchange::open_communicators(Phase phase) {
  for (const auto& [id, members] : used(phase)) {
    // Training and evaluation take turns, so they share communicators: the first of evaluation
    // among the same members is the first of training.
    const auto same = std::find_if(
        communicators_.begin(), communicators_.end(),
        [&, wanted = members](const Communicator& each) {
          const PiperCommunicator& other = *each.members;
          return phase == Phase::evaluation && !each.evaluates && other.kind == wanted->kind &&
                 other.num_members == wanted->num_members &&
                 std::equal(other.members, other.members + other.num_members, wanted->members);
        });
    if (same != communicators_.end()) {
      same->evaluates = true;
      known_[id] = static_cast<std::size_t>(same - communicators_.begin());
    } else if (auto failure = open_communicator(*members)) {
      return failure;
    }
    communicators_[known_[id]].evaluates |= phase == Phase::evaluation;
  }
  return std::nullopt;
}

std::optional<Failure> NcclExchange::open_communicator(const PiperCommunicator& members) {
  const std::string key = "nccl." + std::to_string(members.id);
  NcclId id{};
  if (members.self == 0) {
    if (const NcclResult result = nccl_->make_id(&id); result != kNcclSuccess) {
      fail(result, "ncclGetUniqueId", nullptr, gpu_.ranks[0].get(), Gpu::kNoAction);
      return gpu_.failure;
    }
    group_.set(key, std::string(id.bytes, sizeof id.bytes));
  } else {
    const auto received = group_.get(key);
    if (!received) return group_.failure();
    if (received->size() != sizeof id.bytes)
      return group_.fail_message(members.members[0],
                                 "an id of a communicator that has another size");
    std::copy(received->begin(), received->end(), id.bytes);
  }
  NcclCommunicator handle = nullptr;
  const NcclResult result = nccl_->open(&handle, members.num_members, id, members.self,
                                        members.kind == 0 ? kBlocksOfPair : 0);
  if (result != kNcclSuccess && result != kNcclInProgress) {
    fail(result, "ncclCommInitRankConfig", handle, gpu_.ranks[0].get(), Gpu::kNoAction);
    return gpu_.failure;
  }
  {
    const std::lock_guard lock(mutex_);
    known_[members.id] = communicators_.size();
    communicators_.push_back({handle, &members});
  }
  if (!settle(handle, "ncclCommInitRankConfig", gpu_.ranks[0].get(), Gpu::kNoAction))
    return gpu_.failure;
  return std::nullopt;
}

std::optional<Failure> NcclExchange::plan(Phase phase, const MatchedComms& matched) {
  const auto p = static_cast<std::size_t>(phase);
  for (const std::vector<std::uint32_t>& of_stream : matched.at[self_]) {
    std::vector<Communication>& planned = communications_[p].emplace_back();
    for (const std::uint32_t number : of_stream) {
      const std::vector<CommMember>& matched_comm = matched.list[number];
      Communication& made = planned.emplace_back();
      const std::size_t self = static_cast<std::size_t>(
          std::find_if(matched_comm.begin(), matched_comm.end(),
                       [&](const CommMember& each) { return each.rank == self_; }) -
          matched_comm.begin());
      const PiperCommAction& action = *matched_comm[self].operation.action;
      if (!stays_on_machine(action.op))
        made.communicator = known_.at(matched_comm[self].operation.communicator->id);
      for (std::uint32_t part = 0; part < action.num_parts; ++part)
        plan_part(made, matched_comm, self, part);
    }
  }
  return std::nullopt;
}

void NcclExchange::plan_part(Communication& made, const std::vector<CommMember>& matched_comm,
                             std::size_t self, std::uint32_t number) {
  Operation own = matched_comm[self].operation;
  own.arena = gpu_.ranks[0]->arena;
  own.host = gpu_.ranks[0]->host;
  const PiperMessagePart& part = own.parts[number];
  const std::uint32_t op = own.action->op;
  const std::uint64_t size = element_bytes(part.dtype);
  if (part.elements == 0) return;
  if (part.flags & PIPER_ZERO_FILL) {
    made.cleared.emplace_back(part_at(own, part, part.out), part.elements * size);
    return;
  }
  const bool gives = contributes(own, number);
  unsigned char* const in = gives ? part_at(own, part, part.in) : nullptr;
  const auto out = [&] { return part_at(own, part, part.out); };
  const auto call = [&](NcclKind kind, const void* from, void* to, std::uint64_t count,
                        std::uint32_t peer = 0) {
    made.calls.push_back({kind, from, to, count, part.dtype, peer});
  };
  switch (static_cast<PiperCommOp>(op)) {
    case PIPER_SEND: return call(NcclKind::send, in, nullptr, part.elements, 1);
    case PIPER_RECV: return call(NcclKind::receive, nullptr, out(), part.elements, 0);
    case PIPER_ALL_REDUCE:
      // A member that adds nothing has room for zeros at the destination of the sum.
      if (!gives) made.cleared.emplace_back(out(), part.elements * size);
      return call(NcclKind::all_reduce, gives ? in : out(), out(), part.elements);
    case PIPER_ALL_GATHER_V: {
      std::size_t owner = 0;
      while (!contributes(matched_comm[owner].operation, number)) ++owner;
      return call(NcclKind::broadcast, self == owner ? in : out(), out(), part.elements,
                  static_cast<std::uint32_t>(owner));
    }
    case PIPER_REDUCE_SCATTER: return plan_reduce_scatter(made, own, part, in);
    case PIPER_ALL_GATHER: return plan_all_gather(made, own, part, in);
    case PIPER_OFFLOAD:
      made.copies.push_back({NcclKind::send, in, own.host + part.out, part.elements * size, 0, 0});
      return;
    case PIPER_FETCH:
      made.copies.push_back(
          {NcclKind::receive, own.host + part.in, out(), part.elements * size, 0, 0});
      return;
  }
}

/// Shards of one size are one call, others a sum for each owner. `in`: null if this member adds
/// nothing.
void NcclExchange::plan_reduce_scatter(Communication& made, const Operation& own,
                                       const PiperMessagePart& part, const unsigned char* in) {
  const std::uint64_t size = element_bytes(part.dtype);
  const std::uint32_t members = own.communicator->num_members, self = own.communicator->self;
  const bool equal = part.elements % members == 0;
  if (in == nullptr) zero_bytes_ = std::max(zero_bytes_, part.elements * size);
  for (std::uint32_t owner = equal ? self : 0; owner < (equal ? self + 1 : members); ++owner) {
    const PiperInterval block = piper_shard(part.elements, members, owner);
    if (block.extent == 0) continue;
    const unsigned char* const from = in == nullptr || equal ? in : in + block.first * size;
    unsigned char* const to =
        owner == self ? part_at(own, part, part.out) + in_own(part, block, block.first) * size
                      : nullptr;
    if (to != nullptr && (part.flags & PIPER_ACCUMULATE)) {
      made.adds.push_back({.call = made.calls.size(),
                           .offset = made.scratch,
                           .to = to,
                           .elements = block.extent,
                           .dtype = part.dtype});
      made.scratch += round_up(block.extent * size, kLine);
    }
    made.calls.push_back({equal ? NcclKind::reduce_scatter : NcclKind::reduce, from, to,
                          block.extent, part.dtype, equal ? 0 : owner});
  }
}

/// Shards of one size are one call, others are broadcast by their owners.
void NcclExchange::plan_all_gather(Communication& made, const Operation& own,
                                   const PiperMessagePart& part, const unsigned char* in) {
  const std::uint64_t size = element_bytes(part.dtype);
  const std::uint32_t members = own.communicator->num_members, self = own.communicator->self;
  const bool equal = part.elements % members == 0;
  unsigned char* const out = part_at(own, part, part.out);
  for (std::uint32_t owner = equal ? self : 0; owner < (equal ? self + 1 : members); ++owner) {
    const PiperInterval block = piper_shard(part.elements, members, owner);
    if (block.extent == 0) continue;
    unsigned char* const to = equal ? out : out + block.first * size;
    const unsigned char* const from =
        owner == self ? in + in_own(part, block, block.first) * size : to;
    made.calls.push_back({equal ? NcclKind::all_gather : NcclKind::broadcast, from, to,
                          block.extent, part.dtype, equal ? 0 : owner});
  }
}

/// Accumulated sums need scratch, and members that contribute nothing need zeros: both lie outside
/// the plan.
std::optional<Failure> NcclExchange::place_scratch(Phase phase) {
  GpuRank& rank = *gpu_.ranks[0];
  const auto allocate = [&](std::uint64_t bytes, unsigned char*& to) {
    return gpu_.done(gpu_.driver->allocate(std::max(bytes, kLine), &to), "cuMemAlloc", &rank);
  };
  if (zero_bytes_ > 0) {
    if (!allocate(zero_bytes_, zeros_) ||
        !gpu_.done(gpu_.driver->fill(rank.streams.front().cuda_stream, zeros_, 0, zero_bytes_),
                   "cuMemsetD8Async", &rank))
      return gpu_.failure;
  }
  for (std::vector<Communication>& stream : communications_[static_cast<std::size_t>(phase)]) {
    std::uint64_t most = 0;
    for (const Communication& each : stream) most = std::max(most, each.scratch);
    unsigned char* scratch = nullptr;
    if (most > 0 && !allocate(most, scratch)) return gpu_.failure;
    for (Communication& each : stream) {
      for (NcclCall& call : each.calls) {
        if ((call.kind == NcclKind::reduce_scatter || call.kind == NcclKind::reduce) &&
            call.from == nullptr)
          call.from = zeros_;
      }
      for (Adds& adds : each.adds) {
        each.calls[adds.call].to = adds.from = scratch + adds.offset;
        const void* const addresses[] = {adds.from, adds.to};
        if (!allocate(sizeof addresses, adds.table) ||
            !gpu_.upload(rank, adds.table, addresses, sizeof addresses))
          return gpu_.failure;
      }
    }
  }
  return std::nullopt;
}

/// Sends one element by each kind of call that a communicator is used for.
std::optional<Failure> NcclExchange::exchange_elements(Phase phase) {
  GpuRank& rank = *gpu_.ranks[0];
  struct Use {
    std::size_t stream = 0;
    std::set<NcclKind> kinds;
  };
  std::map<std::size_t, Use> uses;
  std::uint64_t most = 0;
  const auto& streams = communications_[static_cast<std::size_t>(phase)];
  for (std::size_t q = 0; q < streams.size(); ++q) {
    for (const Communication& each : streams[q]) {
      for (const NcclCall& call : each.calls) {
        uses[each.communicator].stream = q;
        uses[each.communicator].kinds.insert(call.kind);
        most =
            std::max<std::uint64_t>(most, communicators_[each.communicator].members->num_members);
      }
    }
  }
  const std::uint64_t bytes = round_up((most + 1) * sizeof(float), kLine);
  if (!gpu_.done(gpu_.driver->allocate(2 * bytes, &elements_), "cuMemAlloc", &rank) ||
      !gpu_.done(gpu_.driver->fill(rank.streams.front().cuda_stream, elements_, 0, 2 * bytes),
                 "cuMemsetD8Async", &rank))
    return gpu_.failure;
  if (!gpu_.done(gpu_.driver->record(gpu_.transferred, rank.streams.front().cuda_stream),
                 "cuEventRecord", &rank) ||
      !gpu_.wait_for(gpu_.transferred))
    return gpu_.failure;
  std::vector<std::pair<std::uint32_t, std::size_t>> order;
  for (const auto& [id, number] : known_) {
    if (uses.contains(number)) order.emplace_back(id, number);
  }
  for (const auto& [id, number] : order) {
    const Use use = uses[number];
    uses[number].kinds.clear();  // of evaluation that shares it: once
    const CudaStream cuda_stream = rank.streams[use.stream].cuda_stream;
    for (const NcclKind kind : use.kinds) {
      Communication one;
      one.communicator = number;
      one.calls.push_back(
          {kind, elements_, elements_ + bytes, 1, PIPER_F32, kind == NcclKind::send ? 1u : 0u});
      if (!call(one, cuda_stream, &rank, Gpu::kNoAction)) return gpu_.failure;
    }
    if (!gpu_.done(gpu_.driver->record(gpu_.transferred, cuda_stream), "cuEventRecord", &rank) ||
        !gpu_.wait_for(gpu_.transferred))
      return gpu_.failure;
  }
  return std::nullopt;
}

// ---- in a step

int NcclExchange::arrive(GpuRank& rank, std::uint32_t stream, std::uint32_t action,
                         std::uint32_t position) {
  const Communication& communication =
      communications_[static_cast<std::size_t>(gpu_.phase)][stream][position];
  const CudaStream cuda_stream = rank.streams[stream].cuda_stream;
  const auto done = [&](Status status, const char* call) {
    return gpu_.done(status, call, &rank, action);
  };
  for (const auto& [at, bytes] : communication.cleared) {
    if (!done(gpu_.driver->fill(cuda_stream, at, 0, bytes), "cuMemsetD8Async")) return 1;
  }
  for (const NcclCall& copy : communication.copies) {
    if (!done(gpu_.driver->copy(cuda_stream, copy.to, copy.from, copy.count), "cuMemcpyAsync"))
      return 1;
  }
  if (!communication.calls.empty() && !call(communication, cuda_stream, &rank, action)) return 1;
  for (const Adds& adds : communication.adds) {
    constexpr std::uint64_t kThreads = 256, kMaxBlocks = 2048;
    constexpr std::uint32_t kOne = 1;
    const std::uint64_t blocks = std::min((adds.elements + kThreads - 1) / kThreads, kMaxBlocks),
                        stride = blocks * kThreads;
    const void *const in = adds.table, *const out = adds.table + sizeof(void*);
    const void* const arguments[] = {&in, &kOne, &out, &kOne, &adds.elements, &stride, &kOne};
    if (!done(gpu_.driver->launch(cuda_stream, gpu_.kernels.sums.at(adds.dtype), blocks, kThreads,
                                  arguments),
              "cuLaunchKernel"))
      return 1;
  }
  return gpu_.end_action(rank, stream, action);
}

bool NcclExchange::call(const Communication& communication, CudaStream cuda_stream, GpuRank* rank,
                        std::uint32_t action) {
  const NcclCommunicator communicator = communicators_[communication.communicator].handle;
  const bool group = communication.calls.size() > 1;
  NcclResult result = kNcclSuccess;
  const char* name = "ncclGroupStart";
  const auto good = [&] { return result == kNcclSuccess || result == kNcclInProgress; };
  bool progresses = false;
  {
    const std::lock_guard lock(mutex_);
    if (aborted_ || lost_.load()) return others_failed(rank, action);
    if (group) result = nccl_->group_start();
    const bool started = group && good();
    for (const NcclCall& each : communication.calls) {
      if (!good()) break;
      name = name_of(each.kind);
      result = nccl_->enqueue(communicator, cuda_stream, each);
      progresses |= result == kNcclInProgress;
    }
    if (started) {
      // Also after a failed call: otherwise later calls would be collected in the group, too.
      const NcclResult ended = nccl_->group_end();
      if (good()) {
        name = "ncclGroupEnd";
        result = ended;
      }
      progresses |= ended == kNcclInProgress;
    }
  }
  if (!good()) return fail(result, name, communicator, rank, action);
  return !progresses || settle(communicator, name, rank, action);
}

bool NcclExchange::settle(NcclCommunicator communicator, const char* call, GpuRank* rank,
                          std::uint32_t action) {
  const Clock::time_point until = Clock::now() + std::chrono::seconds(gpu_.options.meet_seconds);
  for (;;) {
    NcclResult state = kNcclSuccess, asked = kNcclSuccess;
    {
      const std::lock_guard lock(mutex_);
      if (aborted_ || lost_.load()) return others_failed(rank, action);
      asked = nccl_->state(communicator, &state);
    }
    if (asked != kNcclSuccess) state = asked;
    if (state == kNcclSuccess) return true;
    if (state != kNcclInProgress) return fail(state, call, communicator, rank, action);
    if (Clock::now() >= until) {
      Failure late{
          .code = kNcclFailed,
          .message = std::string("`") + call + "` has not ended within `" +
                     std::to_string(gpu_.options.meet_seconds) + "` seconds",
          .hint =
              "NCCL_DEBUG=INFO shows what NCCL waits for, mostly a network between two machines; PIPER_MEET_SECONDS sets the limit"};
      late.rank = rank->job->rank;
      gpu_.failure = group_.first_cause(late);
      return false;
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

bool NcclExchange::others_failed(const GpuRank* rank, std::uint32_t action) {
  noticed_.store(true);
  if (gpu_.failure) return false;
  gpu_.failure = failure_of_others(gpu_, failure_);
  // There may be no action in flight on the device while this rank is on its way to the
  // communication.
  if (gpu_.failure->place.action.empty() && action != Gpu::kNoAction) {
    const PiperRank& active = rank->ranks[static_cast<std::size_t>(gpu_.phase)];
    gpu_.failure->rank = active.rank;
    gpu_.failure->step = active.global_step;
    gpu_.failure->place = location_of(*active.program, action);
  }
  return false;
}

bool NcclExchange::fail(NcclResult result, const char* call, NcclCommunicator communicator,
                        const GpuRank* rank, std::uint32_t action) {
  if (gpu_.failure) return false;
  Failure failure{
      .code = kNcclFailed,
      .message = std::string("`") + call + "` failed: " + nccl_->text_of(result, communicator),
      .hint = "NCCL_DEBUG=INFO prints more details",
      .rank = rank->job->rank};
  if (action != Gpu::kNoAction)
    failure.place = location_of(*rank->ranks[static_cast<std::size_t>(gpu_.phase)].program, action);
  gpu_.failure = group_.first_cause(failure);
  return false;
}

// ---- failures of others

std::optional<Failure> NcclExchange::lost() {
  if (!lost_.load(std::memory_order_acquire)) return std::nullopt;
  noticed_.store(true);
  return failure_;
}

void NcclExchange::watch() {
  const std::uint32_t rank = gpu_.job.ranks[0].rank;
  for (std::optional<Failure> found; !found && !ends_.load(); std::this_thread::sleep_for(kLook)) {
    if (group_.failed()) {
      found = group_.failure();
    } else {
      std::unique_lock lock(mutex_);
      for (const Communicator& each : communicators_) {
        NcclResult state = kNcclSuccess;
        if (nccl_->state(each.handle, &state) != kNcclSuccess || state == kNcclSuccess ||
            state == kNcclInProgress)
          continue;
        found = Failure{.code = kNcclFailed,
                        .message = "a communication failed: " + nccl_->text_of(state, each.handle),
                        .hint = "NCCL_DEBUG=INFO prints more details",
                        .rank = rank};
        break;
      }
      lock.unlock();
      if (found) found = group_.first_cause(*found);
    }
    if (!found) continue;
    failure_ = *found;
    // Set first: communications that end from now on leave results that must not be read.
    lost_.store(true, std::memory_order_release);
    // A thread that waits for the device first finds out where it waits; then that wait is ended
    // and no longer visible. A thread within a call notices nothing.
    for (const Clock::time_point until = Clock::now() + kNoticeWithin;
         !noticed_.load() && !ends_.load() && Clock::now() < until;)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::this_thread::sleep_for(kNameWithin);
    abort_all();
  }
}

void NcclExchange::abort_all() {
  {
    // A thread within a call may wait there for the device, which waits for the communications that
    // end here.
    std::unique_lock lock(mutex_, std::chrono::seconds(2));
    if (aborted_.exchange(true)) return;
  }
  // All at the same time: each waits for the graphs that have its calls, and these wait for the
  // calls of the others.
  for (const Communicator& each : communicators_) {
    if (each.handle == nullptr) continue;
    std::packaged_task<void()> abort([nccl = nccl_, handle = each.handle] { nccl->abort(handle); });
    aborts_.push_back(abort.get_future());
    std::thread(std::move(abort)).detach();
  }
}

}  // namespace piper::runtime::cuda
