#include "tests/cuda/test_nccl.h"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "runtime/dtypes.h"
#include "tests/support/golden.h"

namespace piper::test {

namespace cuda = runtime::cuda;
using cuda::NcclKind;
namespace fs = std::filesystem;

namespace {

/// A member's description of a call, before its data.
struct Head {
  std::uint32_t kind, dtype, peer;
  std::uint64_t count, bytes;  // bytes: of data that follows
};

/// NCCL waits so long for a graph to be dropped; without an end, but no test should take that long.
constexpr std::chrono::seconds kLongest(8);

/// Ends the process, so that the test sees it.
[[noreturn]] void give_up(const char* why) {
  std::fprintf(stderr, "NCCL of the tests: %s\n", why);
  std::abort();
}

/// Whole or not at all.
void write_file(const std::string& path, const std::string& bytes) {
  const std::string aside = path + ".part";
  std::ofstream(aside, std::ios::binary) << bytes;
  fs::rename(aside, path);
}

bool gives(const cuda::NcclCall& call, std::uint32_t self) {
  return call.kind != NcclKind::receive && (call.kind != NcclKind::broadcast || call.peer == self);
}
bool takes(const cuda::NcclCall& call, std::uint32_t self) {
  return call.kind != NcclKind::send && (call.kind != NcclKind::reduce || call.peer == self);
}

}  // namespace

struct TestNccl::Member {
  std::string name;
  std::uint32_t members = 0, self = 0;
  std::atomic<cuda::NcclResult> state{cuda::kNcclInProgress};
  std::atomic<bool> aborted{false};
  bool joined = false, finalized = false;
  int polls = 0;                  // until deferred work is enqueued
  std::atomic<int> in_graphs{0};  // communications that graphs contain
  std::function<void()> put_off = {};
  std::set<NcclKind> known = {};  // kinds of calls that it has made
  std::uint64_t sequence = 0;
  mutable std::mutex mutex;
  std::string wrong = {};  // with the mutex

  std::string file(std::uint64_t number, std::uint32_t member) const {
    return name + "." + std::to_string(number) + "." + std::to_string(member);
  }
  /// The part of a communication that a graph keeps alive.
  std::shared_ptr<void> in_graph() {
    ++in_graphs;
    return {this, [](Member* member) { --member->in_graphs; }};
  }
  void refuse(const std::string& why, cuda::NcclResult result = cuda::kNcclInvalidUsage) {
    const std::lock_guard lock(mutex);
    if (wrong.empty()) wrong = why;
    state.store(result);
  }
};

struct TestNccl::Waiting {
  std::vector<NcclCall> calls;
  std::uint64_t number = 0;
  bool fails = false;
};

TestNccl::TestNccl(HostDriver& driver, TestNcclOptions options)
    : driver_(driver), options_(std::move(options)) {}
TestNccl::~TestNccl() {
  if (groups_ > 0) give_up("a group has no end");
}

namespace {
template <typename T>
T* real(cuda::NcclCommunicator communicator) {
  return reinterpret_cast<T*>(communicator);
}
}  // namespace

std::string TestNccl::text_of(NcclResult result, NcclCommunicator communicator) const {
  std::string text = result == cuda::kNcclInvalidUsage ? "invalid usage"
                     : result == cuda::kNcclRemoteError
                         ? "remote process exited or there was a network error"
                         : "unhandled system error";
  if (communicator == nullptr) return text;
  const auto* const member = real<Member>(communicator);
  const std::lock_guard lock(member->mutex);
  return member->wrong.empty() ? text : text + ": " + member->wrong;
}

cuda::NcclResult TestNccl::make_id(cuda::NcclId* id) {
  if (options_.refused == "ncclGetUniqueId") return 2;
  const std::string text = std::to_string(getpid()) + "-" + std::to_string(ids_++);
  std::memset(id->bytes, 0, sizeof id->bytes);
  std::memcpy(id->bytes, text.data(), text.size());
  return cuda::kNcclSuccess;
}

cuda::NcclResult TestNccl::open(NcclCommunicator* made, std::uint32_t members,
                                const cuda::NcclId& id, std::uint32_t self,
                                std::uint32_t most_blocks) {
  if (options_.refused == "ncclCommInitRankConfig") return cuda::kNcclInvalidUsage;
  // Pairs leave the device to others.
  if (groups_ > 0 || self >= members || (members == 2 && most_blocks > 8))
    return cuda::kNcclInvalidUsage;
  Member& member = *members_.emplace_back(std::make_unique<Member>());
  member.name = options_.folder + "/" + id.bytes;
  member.members = members;
  member.self = self;
  const std::string here = member.name + ".join." + std::to_string(self);
  if (fs::exists(here)) return cuda::kNcclInvalidUsage;
  write_file(here, std::to_string(members));
  *made = reinterpret_cast<NcclCommunicator>(&member);
  return cuda::kNcclInProgress;
}

cuda::NcclResult TestNccl::state(NcclCommunicator communicator, NcclResult* state) {
  Member& member = *real<Member>(communicator);
  // Another thread looks on.
  if (std::this_thread::get_id() == owner_ && member.state.load() == cuda::kNcclInProgress) {
    if (!member.joined) {
      bool all = true;
      for (std::uint32_t m = 0; m < member.members && all; ++m) {
        const auto said = read_text(member.name + ".join." + std::to_string(m));
        if (said && *said != std::to_string(member.members))
          member.refuse("a member says that there are " + *said);
        all = said.has_value();
      }
      member.joined = all;
      if (all && member.state.load() == cuda::kNcclInProgress)
        member.state.store(cuda::kNcclSuccess);
    } else if (--member.polls <= 0 && (!member.finalized || member.in_graphs.load() == 0)) {
      if (const auto enqueue = std::exchange(member.put_off, {})) enqueue();
      member.state.store(cuda::kNcclSuccess);
    }
  }
  *state = member.state.load();
  return cuda::kNcclSuccess;
}

cuda::NcclResult TestNccl::finalize(NcclCommunicator communicator) {
  Member& member = *real<Member>(communicator);
  if (groups_ > 0 || member.finalized || member.state.load() != cuda::kNcclSuccess)
    return cuda::kNcclInvalidUsage;
  member.finalized = true;
  member.polls = 2;
  member.state.store(cuda::kNcclInProgress);
  return cuda::kNcclInProgress;
}

cuda::NcclResult TestNccl::destroy(NcclCommunicator communicator) {
  return real<Member>(communicator)->finalized ? cuda::kNcclSuccess : cuda::kNcclInvalidUsage;
}

cuda::NcclResult TestNccl::abort(NcclCommunicator communicator) {
  Member& member = *real<Member>(communicator);
  member.aborted.store(true);
  // NCCL waits until no graph has a call of it any more.
  for (const auto until = std::chrono::steady_clock::now() + kLongest; member.in_graphs.load() > 0;
       std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    if (std::chrono::steady_clock::now() >= until)
      give_up("a communicator is aborted, and a graph that nobody drops has calls of it");
  }
  return cuda::kNcclSuccess;
}

cuda::NcclResult TestNccl::group_start() {
  ++groups_;
  return cuda::kNcclSuccess;
}

cuda::NcclResult TestNccl::enqueue(NcclCommunicator communicator, cuda::CudaStream stream,
                                   const NcclCall& call) {
  Member& member = *real<Member>(communicator);
  if (options_.refused == cuda::name_of(call.kind) && call.count > 1) {
    if (groups_ > 0) group_failed_ = cuda::kNcclInvalidUsage;
    return cuda::kNcclInvalidUsage;
  }
  if (std::this_thread::get_id() != owner_ || member.state.load() != cuda::kNcclSuccess ||
      member.finalized || member.aborted) {
    member.refuse("it is used while something of it is in progress, or after its end");
    return cuda::kNcclInvalidUsage;
  }
  if (groups_ == 0) return launch(member, stream, {call});
  gathered_.emplace_back(&member, stream, call);
  return cuda::kNcclSuccess;
}

cuda::NcclResult TestNccl::group_end() {
  if (groups_ == 0) return cuda::kNcclInvalidUsage;
  if (--groups_ > 0 || gathered_.empty()) return cuda::kNcclSuccess;
  const auto gathered = std::exchange(gathered_, {});
  if (const NcclResult failed = std::exchange(group_failed_, cuda::kNcclSuccess)) return failed;
  auto [member, stream, first] = gathered.front();
  std::vector<NcclCall> calls;
  for (const auto& [other, on, call] : gathered) {
    if (other != member || on != stream) return cuda::kNcclInvalidUsage;
    calls.push_back(call);
  }
  return launch(*member, stream, std::move(calls));
}

cuda::NcclResult TestNccl::launch(Member& member, cuda::CudaStream stream,
                                  std::vector<NcclCall> calls) {
  write_down(member, calls);
  bool first = false;
  for (const NcclCall& call : calls) first |= member.known.insert(call.kind).second;
  auto enqueue = [this, &member, stream, calls = std::move(calls)] {
    driver_.enqueue_comm(
        stream, [this, &member, calls] { return begin(member, calls); }, member.in_graph());
  };
  if (!first) {
    enqueue();
    return cuda::kNcclSuccess;
  }
  member.put_off = std::move(enqueue);
  member.polls = 3;
  member.state.store(cuda::kNcclInProgress);
  return cuda::kNcclInProgress;
}

namespace {

template <typename T>
void add(std::string& sum, const std::string& value) {
  for (std::size_t at = 0; at + sizeof(T) <= sum.size(); at += sizeof(T)) {
    T a, b;
    std::memcpy(&a, sum.data() + at, sizeof a);
    std::memcpy(&b, value.data() + at, sizeof b);
    a = a + b;
    std::memcpy(sum.data() + at, &a, sizeof a);
  }
}

/// The sum of all members' data of one call.
std::string sum_of(const std::vector<std::string>& given, std::uint32_t dtype) {
  std::string sum = given.back();
  for (std::size_t m = given.size() - 1; m-- > 0;)
    runtime::with_element(dtype, [&](auto zero) { add<decltype(zero)>(sum, given[m]); });
  return sum;
}

/// Whether all that a call reads and writes was allocated.
bool lies_on_device(const HostDriver& driver, std::uint32_t members, std::uint32_t self,
                    const cuda::NcclCall& call) {
  const std::uint64_t block = call.count * runtime::element_bytes(call.dtype),
                      whole = block * members;
  const bool reads = gives(call, self), writes = takes(call, self);
  return (!reads ||
          driver.holds(call.from, call.kind == NcclKind::reduce_scatter ? whole : block)) &&
         (!writes || driver.holds(call.to, call.kind == NcclKind::all_gather ? whole : block));
}

/// Whether two members' descriptions of a call match.
bool fit(const Head& a, std::uint32_t of_a, const Head& b, std::uint32_t of_b) {
  const auto send = static_cast<std::uint32_t>(NcclKind::send),
             receive = static_cast<std::uint32_t>(NcclKind::receive);
  if (a.count != b.count || a.dtype != b.dtype) return false;
  if (a.kind == send || a.kind == receive)
    return b.kind == (a.kind == send ? receive : send) && a.peer == of_b && b.peer == of_a;
  return a.kind == b.kind && a.peer == b.peer;
}

}  // namespace

/// Its turn has come: this member's data is ready; it ends when all others have arrived, too.
HostTries TestNccl::begin(Member& member, const std::vector<NcclCall>& calls) {
  const auto waiting = std::make_shared<Waiting>();
  waiting->calls = calls;
  waiting->number = member.sequence++;
  waiting->fails = ++communications_ == options_.breaks;
  if (communications_ == options_.killed_at) kill(getpid(), SIGKILL);
  std::string said;
  for (const NcclCall& call : calls) {
    if (!lies_on_device(driver_, member.members, member.self, call))
      member.refuse(std::string(cuda::name_of(call.kind)) + " of " + std::to_string(call.count) +
                    " reaches beyond an allocation");
    const std::uint64_t size = runtime::element_bytes(call.dtype);
    const std::uint64_t bytes =
        !gives(call, member.self)
            ? 0
            : size * call.count * (call.kind == NcclKind::reduce_scatter ? member.members : 1);
    const Head head{static_cast<std::uint32_t>(call.kind), call.dtype, call.peer, call.count,
                    bytes};
    said.append(reinterpret_cast<const char*>(&head), sizeof head);
    if (bytes > 0) said.append(static_cast<const char*>(call.from), bytes);
  }
  write_file(member.file(waiting->number, member.self), said);
  return [&member, waiting]() -> HostProgress {
    if (member.aborted) return HostProgress::done;
    if (waiting->fails)
      member.refuse("the connection to a peer was closed", cuda::kNcclRemoteError);
    if (member.state.load() != cuda::kNcclSuccess && member.state.load() != cuda::kNcclInProgress)
      return HostProgress::none;
    for (std::uint32_t m = 0; m < member.members; ++m) {
      if (!fs::exists(member.file(waiting->number, m))) return HostProgress::none;
    }
    std::vector<std::string> said;
    for (std::uint32_t m = 0; m < member.members; ++m)
      said.push_back(read_text(member.file(waiting->number, m)).value_or(""));
    std::vector<std::size_t> at(member.members);
    for (const NcclCall& call : waiting->calls) {
      std::vector<Head> heads(member.members);
      std::vector<std::string> given(member.members);
      for (std::uint32_t m = 0; m < member.members; ++m) {
        if (at[m] + sizeof(Head) > said[m].size()) {
          member.refuse("member " + std::to_string(m) + " has fewer calls in its group");
          return HostProgress::none;
        }
        std::memcpy(&heads[m], said[m].data() + at[m], sizeof(Head));
        given[m] = said[m].substr(at[m] + sizeof(Head), heads[m].bytes);
        at[m] += sizeof(Head) + heads[m].bytes;
      }
      for (std::uint32_t m = 0; m < member.members; ++m) {
        if (m == member.self || fit(heads[member.self], member.self, heads[m], m)) continue;
        member.refuse("members " + std::to_string(member.self) + " and " + std::to_string(m) +
                      " make different calls: " + cuda::name_of(call.kind) + " of " +
                      std::to_string(call.count) + ", and " +
                      cuda::name_of(static_cast<NcclKind>(heads[m].kind)) + " of " +
                      std::to_string(heads[m].count));
        return HostProgress::none;
      }
      const auto put = [&](const std::string& bytes) {
        std::memcpy(call.to, bytes.data(), bytes.size());
      };
      const std::size_t block = call.count * runtime::element_bytes(call.dtype);
      switch (call.kind) {
        case NcclKind::send: break;
        case NcclKind::receive: put(given[call.peer]); break;
        case NcclKind::broadcast: put(given[call.peer]); break;
        case NcclKind::all_reduce: put(sum_of(given, call.dtype)); break;
        case NcclKind::reduce:
          if (takes(call, member.self)) put(sum_of(given, call.dtype));
          break;
        case NcclKind::reduce_scatter:
          put(sum_of(given, call.dtype).substr(member.self * block, block));
          break;
        case NcclKind::all_gather: {
          std::string all;
          for (const std::string& each : given) all += each;
          put(all);
          break;
        }
      }
    }
    // A member that has reached this one has read the one before.
    std::error_code ignored;
    if (waiting->number > 0) fs::remove(member.file(waiting->number - 1, member.self), ignored);
    return HostProgress::done;
  };
}

void TestNccl::write_down(const Member& member, const std::vector<NcclCall>& calls) {
  if (options_.calls.empty()) return;
  std::ofstream file(options_.calls, std::ios::app);
  for (const NcclCall& call : calls) {
    file << fs::path(member.name).filename().string() << " " << member.members << " "
         << cuda::name_of(call.kind) << " " << call.count << " " << runtime::dtype_name(call.dtype)
         << "\n";
  }
}

}  // namespace piper::test
