// Every schedule of the library as processes over the NCCL of the tests: the losses and norms of
// all ranks on one GPU, by the NCCL calls that the plan has.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

#include "backend/cuda/print_program.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/transport/match_communications.h"
#include "tests/cuda/cuda_laws.h"
#include "tests/cuda/forked.h"
#include "tests/laws/library_cases.h"
#include "tests/support/golden.h"

namespace piper::test {
namespace {

constexpr std::uint64_t kSteps = 4;

/// A loss whose targets are counted where its forward is, and read where its backward is: members
/// add nothing. Ranks have other numbers of parameters.
constexpr const char* kApart = R"(model net() {
    input x: tensor[batch, dim], targets: i64[batch]
    weight head[dim, classes: 5] = normal(0.3)
    let h = inner(x)
    loss cross_entropy(outer(h) @ head, targets, ignore: 2)
}
model inner(x: tensor[batch, dim]) -> tensor[batch, dim] {
    weight w[dim] = normal(0.4)
    return x * w
}
model outer(x: tensor[batch, dim]) -> tensor[batch, dim] {
    weight w[dim] = normal(0.4)
    return tanh(x * w)
}
mesh grid(pp: 2, dp: 2)
train small = net() on grid {
    data:  synthetic(batch: 8, dim: 3, classes: 5)
    optim: adamw(lr: 1e-2, clip: 1.0)
    steps: 3
    partition model into stage: 2
    split batch into mb: 2
    place stage[0] on pp[0]
    place F stage[1] on pp[0]
    place B stage[1] on pp[1]
    replicate model over dp with zero: 2
}
)";

struct Planned {
  std::string what;
  std::unique_ptr<CudaLaw> law;
};

/// The losses and norms of a run of training and one of held-out data.
std::vector<double> run_all(runtime::Executor& executor, std::string& wrong) {
  std::vector<double> numbers;
  for (const runtime::Phase phase : {runtime::Phase::training, runtime::Phase::evaluation}) {
    const auto result = executor.run(phase, phase == runtime::Phase::training ? kSteps : 1,
                                     [&](const runtime::StepRecord& step) {
                                       numbers.push_back(step.loss);
                                       numbers.push_back(step.gradient_norm.value_or(-1));
                                       return std::nullopt;
                                     });
    if (result.ended != runtime::Ended::finished)
      wrong += result.failure ? describe(*result.failure) : "stopped";
  }
  for (const runtime::Failure& warning : executor.warnings()) wrong += describe(warning);
  return numbers;
}

/// Rare properties of communications: each of these occurs in some program.
struct Occurs {
  bool unequal_parts = false, adds_nothing = false, adds_to_something = false, padding = false,
       copies = false;
  void look(const PiperJob& tables) {
    for (std::uint32_t r = 0; r < tables.num_ranks; ++r) {
      const PiperProgram& program = *tables.ranks[r].program;
      for (std::uint32_t s = 0; s < program.num_streams; ++s) {
        for (std::uint32_t i = 0;
             program.streams[s].comm != nullptr && i < program.streams[s].num_actions; ++i) {
          const PiperCommAction& action = program.streams[s].comm[i];
          copies |= action.op == PIPER_OFFLOAD || action.op == PIPER_FETCH;
          std::uint32_t own = 0;
          for (std::uint32_t p = 0; p < action.num_parts; ++p) {
            const PiperMessagePart& part = program.parts[action.first_part + p];
            own += part.in != PIPER_NO_OFFSET;
            adds_nothing |= (action.op == PIPER_ALL_REDUCE || action.op == PIPER_REDUCE_SCATTER) &&
                            part.in == PIPER_NO_OFFSET && (part.flags & PIPER_ZERO_FILL) == 0;
            adds_to_something |= (part.flags & PIPER_ACCUMULATE) != 0;
            padding |= (part.flags & PIPER_ZERO_FILL) != 0;
          }
          unequal_parts |= action.op == PIPER_ALL_GATHER_V &&
                           own * tables.ranks[r].communicators[action.communicator].num_members !=
                               action.num_parts;
        }
      }
    }
  }
};

/// Members of the largest group that adds.
std::uint32_t largest_sum(const PiperJob& tables) {
  std::uint32_t most = 0;
  for (std::uint32_t r = 0; r < tables.num_ranks; ++r) {
    const PiperProgram& program = *tables.ranks[r].program;
    for (std::uint32_t s = 0; s < program.num_streams; ++s) {
      for (std::uint32_t i = 0;
           program.streams[s].comm != nullptr && i < program.streams[s].num_actions; ++i) {
        const PiperCommAction& action = program.streams[s].comm[i];
        if (action.op == PIPER_ALL_REDUCE || action.op == PIPER_REDUCE_SCATTER)
          most = std::max(most, tables.ranks[r].communicators[action.communicator].num_members);
      }
    }
  }
  return most;
}

/// A call of NCCL as one line: `COMMUNICATOR ncclSend 64 f64`, with the count that is printed and
/// the one that NCCL was given.
using Calls = std::vector<std::string>;

/// The calls of a rank in a step, as `show program` prints them.
Calls planned_calls(const backend::Job& job, std::size_t rank) {
  const PiperJobRank& tables = job.tables().ranks[rank];
  const backend::ProgramSet& set = job.training();
  const auto role = std::find_if(set.roles.begin(), set.roles.end(), [&](const auto& each) {
    return each.role == tables.program->role;
  });
  backend::cuda::KernelSet known = job.kernels();
  std::vector<std::vector<backend::cuda::BodyStep>> steps;
  for (const backend::KernelBody& body : set.bodies) steps.push_back(known.add(body));
  std::vector<std::uint32_t> members;
  for (std::uint32_t c = 0; c < role->communicators.size(); ++c)
    members.push_back(tables.communicators[c].num_members);
  std::istringstream text(backend::cuda::print_calls(*role, set.bodies, known, steps, members));
  Calls calls;
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::string call, dtype;
    std::uint64_t count = 0;
    if (!(words >> call) || !call.starts_with("nccl") || !(words >> count >> dtype)) continue;
    const std::size_t at = line.rfind("communicator ");
    const PiperCommunicator& communicator = tables.communicators[std::stoul(line.substr(at + 13))];
    calls.push_back(std::to_string(communicator.id) + " " + call + " " + std::to_string(count) +
                    " " + dtype);
  }
  return calls;
}

/// The calls of a rank in enqueued steps, each as `NAME MEMBERS ncclSend 64 f64`, with
/// communicators named by the order of their first use in the plan.
Calls made_calls(const std::string& path, const Calls& planned) {
  std::istringstream text(read_text(path).value_or(""));
  Calls calls;
  std::map<std::string, std::string> names;
  std::size_t next = 0;
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    std::string name, members, call, count, dtype;
    words >> name >> members >> call >> count >> dtype;
    // Before step 1, which begins with another call.
    if (calls.empty() && count == "1" && dtype == "f32") continue;
    const std::string& plan = planned[next++ % planned.size()];
    names.try_emplace(name, plan.substr(0, plan.find(' ')));
    calls.push_back(names[name] + " " + call + " " + count + " " + dtype);
  }
  return calls;
}

/// Per rank the meetings of a step in the order in which it enqueues them.
std::vector<std::vector<std::uint32_t>> issue_orders(const PiperJob& tables,
                                                     std::vector<std::size_t>& members) {
  runtime::MatchedComms matched;
  EXPECT_FALSE(runtime::match_communications({tables.ranks, tables.num_ranks},
                                             runtime::Phase::training, matched));
  for (const auto& matched_comm : matched.list) members.push_back(matched_comm.size());
  std::vector<std::vector<std::uint32_t>> orders;
  for (std::uint32_t r = 0; r < tables.num_ranks; ++r) {
    const PiperProgram& program = *tables.ranks[r].program;
    std::map<std::uint32_t, std::uint32_t> by_action;  // actions are numbered as they are enqueued
    for (std::uint32_t s = 0; s < program.num_streams; ++s) {
      for (std::uint32_t i = 0;
           program.streams[s].comm != nullptr && i < program.streams[s].num_actions; ++i)
        by_action[program.streams[s].comm[i].action] = matched.at[r][s][i];
    }
    std::vector<std::uint32_t>& order = orders.emplace_back();
    for (const auto& [action, matched_comm] : by_action) order.push_back(matched_comm);
  }
  return orders;
}

/// Whether ranks that run one communication at a time get through.
bool get_through(const std::vector<std::vector<std::uint32_t>>& orders,
                 const std::vector<std::size_t>& members) {
  std::vector<std::size_t> at(orders.size()), arrived(members.size());
  std::vector<std::uint8_t> waits(orders.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t r = 0; r < orders.size(); ++r) {
      if (at[r] == orders[r].size()) continue;
      const std::uint32_t matched_comm = orders[r][at[r]];
      if (waits[r] == 0) {
        waits[r] = 1;
        ++arrived[matched_comm];
        moved = true;
      }
      if (arrived[matched_comm] < members[matched_comm]) continue;
      waits[r] = 0;
      ++at[r];
      moved = true;
    }
  }
  for (std::size_t r = 0; r < orders.size(); ++r) {
    if (at[r] < orders[r].size()) return false;
  }
  return true;
}

class NcclLibrary : public testing::Test {
 protected:
  static Planned plan(std::string what, const std::string& text, backend::cuda::KernelSet& kernels,
                      tensor::DType dtype = tensor::DType::f64) {
    Planned made{std::move(what) + " in " + std::string(tensor::dtype_name(dtype)),
                 std::make_unique<CudaLaw>(text, dtype)};
    EXPECT_TRUE(job_of(made, kernels)) << made.what;
    return made;
  }
  /// Its kernels come into the set, and stay where they are until another comes.
  static std::unique_ptr<backend::Job> job_of(const Planned& planned,
                                              backend::cuda::KernelSet& kernels) {
    LawRunOptions options;
    options.kernels = &kernels;
    options.held_out_steps = 1;
    return planned.law->program && *planned.law->program ? planned.law->program->make_job(options)
                                                         : nullptr;
  }

  static void compare(const backend::Job& job, const std::vector<std::string>& images,
                      std::uint64_t seed) {
    const std::uint32_t world = job.tables().world;
    const auto programs = [&](std::size_t first, std::size_t count) {
      runtime::cuda::GpuPrograms made{images, {}, {}};
      for (std::size_t rank = first; rank < first + count; ++rank) {
        made.training.push_back(job.enqueue(rank, false));
        made.evaluation.push_back(job.enqueue(rank, true));
      }
      return made;
    };
    // The part of the verifier's proof for roles that NCCL needs, checked for ranks.
    std::vector<std::size_t> members;
    auto orders = issue_orders(job.tables(), members);
    EXPECT_TRUE(get_through(orders, members));
    const auto with_others = [&](std::uint32_t matched_comm) { return members[matched_comm] > 1; };
    std::swap(*std::find_if(orders[0].begin(), orders[0].end(), with_others),
              *std::find_if(orders[0].rbegin(), orders[0].rend(), with_others));
    EXPECT_FALSE(get_through(orders, members));

    runtime::Failure failure;
    const auto alone = runtime::Executor::create(
        job.tables(),
        runtime::cuda::make_cuda_device(programs(0, world),
                                        std::make_unique<HostDriver>(HostOptions{.seed = seed})),
        {}, failure);
    ASSERT_TRUE(alone) << describe(failure);
    std::string wrong;
    const std::vector<double> expected = run_all(*alone, wrong);
    ASSERT_EQ(wrong, "");

    const TemporaryFolder folder;
    const std::uint16_t port = free_port();
    const bool graphs = seed % 2 == 0;
    const std::vector<Ended> ended = run_forked(world, [&](std::uint32_t rank) {
      Ended of;
      runtime::Failure failed;
      runtime::Launch launch{
          .rank = rank, .world = world, .local_rank = rank, .host = "127.0.0.1", .port = port};
      const auto group = runtime::ProcessGroup::join(launch, {.seconds = 30}, failed);
      std::unique_ptr<runtime::Executor> executor;
      PiperJob tables = job.tables();
      tables.ranks += rank;
      tables.num_ranks = 1;
      if (group) {
        auto driver = std::make_unique<HostDriver>(HostOptions{.seed = seed + rank});
        auto nccl = std::make_unique<TestNccl>(
            *driver,
            TestNcclOptions{.folder = folder.path().string(),
                            .calls = (folder.path() / ("calls." + std::to_string(rank))).string()});
        executor = runtime::Executor::create(
            tables,
            runtime::cuda::make_cuda_device(programs(rank, 1), std::move(driver), std::move(nccl)),
            with_graphs(graphs), failed, {group.get(), &job.tables()});
      }
      if (!executor) return Ended{1, "", describe(failed)};
      std::ostringstream numbers;
      for (const double each : run_all(*executor, of.err)) numbers << std::hexfloat << each << "\n";
      of.out = numbers.str();
      of.code = of.err.empty() ? 0 : 1;
      if (of.code == 0) group->leave();
      return of;
    });
    for (std::uint32_t rank = 0; rank < world; ++rank)
      ASSERT_EQ(ended[rank].code, 0) << "rank " << rank << ": " << ended[rank].err;
    std::vector<double> found;
    std::istringstream lines(ended[0].out);
    for (std::string line; std::getline(lines, line);)
      found.push_back(std::strtod(line.c_str(), nullptr));
    ASSERT_EQ(found.size(), expected.size());
    const bool same_bits = largest_sum(job.tables()) <= 2;
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_LE(std::abs(found[i] - expected[i]), same_bits ? 0 : 1e-10 * std::abs(expected[i]))
          << i;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      const Calls plan = planned_calls(job, rank);
      Calls all,
          made = made_calls((folder.path() / ("calls." + std::to_string(rank))).string(), plan);
      // As graphs: two steps that are enqueued, and one of each parity that is captured.
      for (std::uint64_t step = 0; step < kSteps; ++step)
        all.insert(all.end(), plan.begin(), plan.end());
      ASSERT_GE(made.size(), all.size()) << "rank " << rank;
      made.resize(all.size());  // held-out data comes behind
      EXPECT_EQ(made, all) << "rank " << rank;
    }
  }
};

TEST_F(NcclLibrary, EveryScheduleIsThatOfOneGpu) {
  const TemporaryFolder folder;
  backend::cuda::KernelSet kernels;
  std::vector<Planned> all;
  std::size_t turn = 0;
  for (const LibraryCase& each : library_cases()) {
    constexpr const char* kCuts[] = {"zero: 1", "zero: 2", "zero: 3, prefetch: 1"};
    const char* const cut = kCuts[turn++ % std::size(kCuts)];
    all.push_back(plan(each.call + ", " + cut, gpt_source(each, cut), kernels));
  }
  for (const auto& [name, lines] : kNoisyLines)
    all.push_back(plan(name, noisy_source(lines), kernels));
  all.push_back(plan("apart", kApart, kernels));
  // Parameters move in bf16, gradients in f32.
  for (const auto& [name, lines] : kNoisyLines)
    all.push_back(plan(name, noisy_source(lines), kernels, tensor::DType::bf16));
  for (const char* cut : {"zero: 2", "zero: 3, prefetch: 1"}) {
    all.push_back(plan(std::string("gpt, ") + cut, gpt_source(library_cases().front(), cut),
                       kernels, tensor::DType::bf16));
  }
  const std::vector<std::string> images = {build_host_image(kernels, folder.path()),
                                           build_own_host_image(folder.path())};
  std::uint64_t seed = 1;
  Occurs occurs;
  for (const Planned& each : all) {
    SCOPED_TRACE(each.what);
    const auto job = job_of(each, kernels);
    if (!job) continue;
    compare(*job, images, seed++);
    occurs.look(job->tables());
  }
  EXPECT_TRUE(occurs.unequal_parts);
  EXPECT_TRUE(occurs.adds_nothing);
  EXPECT_TRUE(occurs.adds_to_something);
  EXPECT_TRUE(occurs.padding);
  EXPECT_TRUE(occurs.copies);
}

}  // namespace
}  // namespace piper::test
