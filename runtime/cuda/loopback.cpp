#include "runtime/cuda/loopback.h"

#include <algorithm>
#include <map>
#include <string>

#include "runtime/cuda/gpu.h"
#include "runtime/dtypes.h"

namespace piper::runtime::cuda {

std::optional<Failure> Loopback::connect(Phase phase) {
  const auto p = static_cast<std::size_t>(phase);
  MatchedComms found;
  if (auto failure = match_communications({gpu_.job.ranks, gpu_.job.num_ranks}, phase, found))
    return failure;
  at_[p] = std::move(found.at);
  std::vector<MatchedComm>& matched = matched_[p];
  std::map<std::uint32_t, Event> done;  // by communicator
  for (const std::vector<CommMember>& members : found.list) {
    MatchedComm& comm = matched.emplace_back();
    Event& event = done[members.front().operation.communicator->id];
    if (event == nullptr && !gpu_.done(gpu_.driver->create_event(&event), "cuEventCreate"))
      return gpu_.failure;
    comm.done = event;
    for (const CommMember& each : members) {
      Member& member = comm.members.emplace_back(
          Member{gpu_.ranks[each.rank].get(), each.stream, each.action, each.operation, {}});
      member.operation.arena = member.rank->arena;
      member.operation.host = member.rank->host;
    }
    std::vector<const Operation*> operations;
    for (const Member& member : comm.members) operations.push_back(&member.operation);
    for (std::uint32_t part = 0; part < operations[0]->action->num_parts; ++part)
      plan_part(comm, operations, part);
  }
  return upload_tables(matched);
}

void Loopback::plan_part(MatchedComm& comm, std::span<const Operation* const> members,
                         std::uint32_t part) {
  const Operation& head = *members[0];
  const PiperMessagePart& first = head.parts[part];
  const std::uint32_t op = head.action->op;
  const std::uint64_t size = element_bytes(first.dtype), elements = first.elements;
  if (elements == 0) return;
  const auto in = [&](const Operation& member) {
    return part_at(member, member.parts[part], member.parts[part].in);
  };
  const auto out = [&](const Operation& member) {
    return part_at(member, member.parts[part], member.parts[part].out);
  };
  const auto block = [&](std::size_t owner) {
    return piper_shard(elements, static_cast<std::uint32_t>(members.size()),
                       static_cast<std::uint32_t>(owner));
  };
  const auto own = [&](std::size_t owner) {
    return in_own(members[owner]->parts[part], block(owner), block(owner).first) * size;
  };
  const auto copy = [&](unsigned char* to, const unsigned char* from, std::uint64_t count) {
    if (to != from) comm.copies.push_back({to, from, count * size});
  };
  if (first.flags & PIPER_ZERO_FILL) {
    for (Member& member : comm.members)
      member.cleared.emplace_back(out(member.operation), elements * size);
    return;
  }
  const auto sum_of = [&](const PiperInterval& of) {
    Sum& sum = comm.sums.emplace_back();
    for (const Operation* member : members) {
      if (contributes(*member, part)) sum.in.push_back(in(*member) + of.first * size);
    }
    sum.elements = of.extent;
    sum.dtype = first.dtype;
    return &sum;
  };
  switch (static_cast<PiperCommOp>(op)) {
    case PIPER_ALL_REDUCE: {
      Sum* sum = sum_of({0, elements, elements});
      for (const Operation* member : members) sum->out.push_back(out(*member));
      return;
    }
    case PIPER_REDUCE_SCATTER:
      for (std::size_t owner = 0; owner < members.size(); ++owner) {
        if (block(owner).extent == 0) continue;
        Sum* sum = sum_of(block(owner));
        sum->out.push_back(out(*members[owner]) + own(owner));
        sum->adds = members[owner]->parts[part].flags & PIPER_ACCUMULATE ? 1 : 0;
      }
      return;
    case PIPER_ALL_GATHER:
      for (std::size_t owner = 0; owner < members.size(); ++owner) {
        if (block(owner).extent == 0) continue;
        for (const Operation* member : members)
          copy(out(*member) + block(owner).first * size, in(*members[owner]) + own(owner),
               block(owner).extent);
      }
      return;
    case PIPER_ALL_GATHER_V: {
      const Operation& owner = *contributor(members, part);
      for (const Operation* member : members) copy(out(*member), in(owner), elements);
      return;
    }
    case PIPER_OFFLOAD: return copy(head.host + first.out, in(head), elements);
    case PIPER_FETCH: return copy(out(head), head.host + first.in, elements);
    case PIPER_SEND:
    case PIPER_RECV: copy(out(*members[1]), in(head), elements);
  }
}

/// Uploads the operand addresses of all sums into one piece of device memory.
std::optional<Failure> Loopback::upload_tables(std::vector<MatchedComm>& matched) {
  std::vector<const void*> table;
  for (const MatchedComm& comm : matched) {
    for (const Sum& sum : comm.sums) {
      table.insert(table.end(), sum.in.begin(), sum.in.end());
      table.insert(table.end(), sum.out.begin(), sum.out.end());
    }
  }
  if (table.empty()) return std::nullopt;
  unsigned char* at = nullptr;
  const std::uint64_t bytes = table.size() * sizeof(void*);
  if (!gpu_.done(gpu_.driver->allocate(bytes, &at), "cuMemAlloc") ||
      !gpu_.upload(*gpu_.ranks.front(), at, table.data(), bytes))
    return gpu_.failure;
  for (MatchedComm& comm : matched) {
    for (Sum& sum : comm.sums) {
      sum.table = at;
      at += (sum.in.size() + sum.out.size()) * sizeof(void*);
    }
  }
  return std::nullopt;
}

void Loopback::part() {
  for (MatchedComm& comm : matched_[static_cast<std::size_t>(gpu_.phase)]) comm.arrived = 0;
  for (const auto& rank : gpu_.ranks) {
    for (GpuStream& stream : rank->streams) stream.in_comm = false;
  }
}

int Loopback::arrive(GpuRank& rank, std::uint32_t stream, std::uint32_t action,
                     std::uint32_t position) {
  MatchedComm& comm =
      matched_[static_cast<std::size_t>(gpu_.phase)]
              [at_[static_cast<std::size_t>(gpu_.phase)][rank.index][stream][position]];
  GpuStream& own = rank.streams[stream];
  own.in_comm = true;
  for (const Member& member : comm.members) {
    if (member.rank != &rank) continue;
    for (const auto& [at, bytes] : member.cleared) {
      if (!gpu_.done(gpu_.driver->fill(own.cuda_stream, at, 0, bytes), "cuMemsetD8Async", &rank,
                     action))
        return 1;
    }
  }
  if (!gpu_.done(gpu_.driver->record(own.ready, own.cuda_stream), "cuEventRecord", &rank, action))
    return 1;
  if (++comm.arrived < comm.members.size()) return 0;
  comm.arrived = 0;
  return move(comm);
}

int Loopback::move(MatchedComm& comm) {
  Driver& driver = *gpu_.driver;
  const Member& mover = comm.members[comm.mover()];
  const CudaStream cuda_stream = mover.rank->streams[mover.stream].cuda_stream;
  const auto done = [&](Status status, const char* call) {
    return gpu_.done(status, call, mover.rank, mover.action);
  };
  for (const Member& member : comm.members) {
    const GpuStream& stream = member.rank->streams[member.stream];
    if (stream.cuda_stream != cuda_stream &&
        !done(driver.wait(cuda_stream, stream.ready), "cuStreamWaitEvent"))
      return 1;
  }
  for (const Copy& copy : comm.copies) {
    if (!done(driver.copy(cuda_stream, copy.to, copy.from, copy.bytes), "cuMemcpyAsync")) return 1;
  }
  for (const Sum& sum : comm.sums) {
    constexpr std::uint64_t kThreads = 256, kMaxBlocks = 2048;
    const std::uint64_t blocks = std::min((sum.elements + kThreads - 1) / kThreads, kMaxBlocks),
                        stride = blocks * kThreads;
    const void *const in = sum.table, *const out = sum.table + sum.in.size() * sizeof(void*);
    const auto num_in = static_cast<std::uint32_t>(sum.in.size()),
               num_out = static_cast<std::uint32_t>(sum.out.size());
    const void* const arguments[] = {&in,           &num_in, &out,     &num_out,
                                     &sum.elements, &stride, &sum.adds};
    if (!done(driver.launch(cuda_stream, gpu_.kernels.sums.at(sum.dtype), blocks, kThreads,
                            arguments),
              "cuLaunchKernel"))
      return 1;
  }
  if (!done(driver.record(comm.done, cuda_stream), "cuEventRecord")) return 1;
  for (const Member& member : comm.members) {
    GpuStream& stream = member.rank->streams[member.stream];
    if (stream.cuda_stream != cuda_stream &&
        !done(driver.wait(stream.cuda_stream, comm.done), "cuStreamWaitEvent"))
      return 1;
    stream.in_comm = false;
    if (gpu_.end_action(*member.rank, member.stream, member.action) != 0) return 1;
  }
  return 0;
}

}  // namespace piper::runtime::cuda
