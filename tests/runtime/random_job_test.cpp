// Law 2 at run time: any plan whose orders are restrictions of one global order runs to its end
// under every timing, with the values of a sequential run. Plans are random: chunks on two to four
// ranks, messages with few buffers, all_reduces, streams shared or not.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>

#include "tests/runtime/sample_jobs.h"
#include "tests/support/random_cases.h"

namespace piper::runtime {
namespace {

constexpr std::uint64_t kSteps = 3;

// A value: the result of a chunk, or a sum over ranks that every member of `group` gets.
struct Value {
  bool is_sum = false;
  std::uint32_t rank = 0;            // chunk
  std::vector<std::size_t> inputs;   // chunk: values; sum: one chunk per member
  std::vector<std::uint32_t> group;  // sum: members in order
};

struct Message {
  std::size_t value;
  std::uint32_t to;
  std::size_t first_reader, last_reader;
};

struct Plan {
  std::uint32_t ranks;
  std::uint64_t width;
  std::vector<Value> values;
  std::vector<Message> messages;
};

bool on(const Value& value, std::uint32_t rank) {
  return value.is_sum ? std::count(value.group.begin(), value.group.end(), rank) > 0
                      : value.rank == rank;
}

Plan random_plan(test::Random& random) {
  Plan plan{.ranks = static_cast<std::uint32_t>(random.between(2, 4)),
            .width = static_cast<std::uint64_t>(random.between(1, 3000)),
            .values = {},
            .messages = {}};
  const std::size_t count = static_cast<std::size_t>(random.between(8, 40));
  std::map<std::pair<std::size_t, std::uint32_t>, std::size_t> sent;
  while (plan.values.size() < count) {
    const std::size_t index = plan.values.size();
    Value value;
    value.is_sum = random.chance(0.12);
    if (value.is_sum) {
      for (std::uint32_t r = 0; r < plan.ranks; ++r) {
        for (std::size_t i = index; i-- > 0;) {
          if (plan.values[i].is_sum || plan.values[i].rank != r) continue;
          value.group.push_back(r);
          value.inputs.push_back(i);
          break;
        }
      }
      if (value.group.size() < 2) continue;
    } else {
      value.rank = static_cast<std::uint32_t>(random.below(plan.ranks));
      for (std::int64_t n = index ? random.between(0, 3) : 0; n > 0; --n) {
        const std::size_t from = random.below(index);
        const Value& source = plan.values[from];
        if (std::count(value.inputs.begin(), value.inputs.end(), from)) continue;
        if (source.is_sum && !on(source, value.rank)) continue;
        value.inputs.push_back(from);
        if (on(source, value.rank)) continue;
        const auto [it, fresh] = sent.try_emplace({from, value.rank}, plan.messages.size());
        if (fresh) plan.messages.push_back({from, value.rank, index, index});
        plan.messages[it->second].last_reader = index;
      }
    }
    plan.values.push_back(std::move(value));
  }
  return plan;
}

double element(std::uint64_t step, std::size_t value, std::uint64_t i) {
  return 0.25 * static_cast<double>(value + 1) + static_cast<double>(step) +
         0.125 * static_cast<double>(i);
}

void make(std::uint64_t step, std::size_t index, const std::vector<const double*>& inputs,
          std::uint64_t width, double* out) {
  for (std::uint64_t i = 0; i < width; ++i) {
    double sum = element(step, index, i);
    for (const double* input : inputs) sum = 0.5 * sum + 0.3 * input[i];
    out[i] = sum;
  }
}

using Expected = std::vector<std::vector<double>>;  // [step * values + value]

Expected evaluate(const Plan& plan) {
  Expected out(kSteps * plan.values.size(), std::vector<double>(plan.width));
  for (std::uint64_t step = 0; step < kSteps; ++step) {
    for (std::size_t v = 0; v < plan.values.size(); ++v) {
      std::vector<double>& target = out[step * plan.values.size() + v];
      std::vector<const double*> inputs;
      for (const std::size_t from : plan.values[v].inputs)
        inputs.push_back(out[step * plan.values.size() + from].data());
      if (!plan.values[v].is_sum) {
        make(step, v, inputs, plan.width, target.data());
        continue;
      }
      target.assign(inputs[0], inputs[0] + plan.width);
      for (std::size_t m = 1; m < inputs.size(); ++m) {
        for (std::uint64_t i = 0; i < plan.width; ++i) target[i] += inputs[m][i];
      }
    }
  }
  return out;
}

// A buffer for arriving messages: whose readers must have ended before the next one arrives.
struct Buffer {
  std::uint64_t offset;
  std::size_t free_after;  // value whose chunk reads it last
  Spot first_receive;
};

// Locations and ends of values, filled in global order.
class Builder {
 public:
  Builder(const Plan& plan, test::Random& random, HandJob& job, const Expected& expected,
          std::atomic<int>& wrong)
      : plan_(plan),
        random_(random),
        job_(job),
        expected_(expected),
        wrong_(wrong),
        spots_(plan.values.size()),
        buffers_(plan.ranks) {
    for (std::uint32_t r = 0; r < plan.ranks; ++r) shares_stream_.push_back(random.chance(0.3));
  }

  void build() {
    // Messages go anywhere between the end of their producer and their first reader.

    // Value index, or values.size() + message index.
    std::vector<std::pair<double, std::size_t>> order;
    for (std::size_t v = 0; v < plan_.values.size(); ++v)
      order.emplace_back(static_cast<double>(v), v);
    for (std::size_t m = 0; m < plan_.messages.size(); ++m) {
      const double from = static_cast<double>(plan_.messages[m].value),
                   to = static_cast<double>(plan_.messages[m].first_reader);
      order.emplace_back(from + (to - from) * (0.01 + 0.98 * random_.unit()),
                         plan_.values.size() + m);
    }
    std::sort(order.begin(), order.end());
    for (const auto& [key, index] : order) {
      if (index >= plan_.values.size()) {
        send(plan_.messages[index - plan_.values.size()], key);
      } else if (plan_.values[index].is_sum) {
        reduce(index);
      } else {
        compute(index);
      }
    }
    for (std::uint32_t r = 0; r < plan_.ranks; ++r) {
      if (!has_chunk_[r]) job_.rank(r).compute("idle", {}, [](Step&) { return 0; });
      for (const Buffer& buffer : buffers_[r])
        job_.rank(r).add_wait(buffer.first_receive,
                              HandProgram::after(spots_[buffer.free_after].at(r), 1));
    }
  }

 private:
  using Key = std::pair<std::size_t, std::uint32_t>;  // value, rank

  std::string stream(std::uint32_t rank, std::uint32_t communicator) {
    return shares_stream_[rank] ? "shared" : "c" + std::to_string(communicator);
  }

  void compute(std::size_t v) {
    const Value& value = plan_.values[v];
    HandProgram& program = job_.rank(value.rank);
    std::vector<PiperWait> waits;
    std::vector<std::uint64_t> inputs;
    for (const std::size_t from : value.inputs) {
      inputs.push_back(offset_.at({from, value.rank}));
      if (const auto arrived = arrived_.find({from, value.rank}); arrived != arrived_.end())
        waits.push_back(HandProgram::after(arrived->second));
    }
    const std::uint64_t out = program.allocate<double>(plan_.width);
    offset_[{v, value.rank}] = out;
    has_chunk_[value.rank] = true;
    const Spot spot = program.compute("chunk" + std::to_string(v), waits, [=, this](Step& step) {
      std::vector<const double*> from;
      for (const std::uint64_t input : inputs) from.push_back(step.at<double>(input));
      make(step.rank->step, v, from, plan_.width, step.at<double>(out));
      const std::vector<double>& right = expected_[step.rank->step * plan_.values.size() + v];
      wrong_ += std::memcmp(right.data(), step.at<double>(out), plan_.width * sizeof(double)) != 0;
      return 0;
    });
    spots_[v][value.rank] = spot;
    // A sum is written again in the next step, after its last reader here; the latest wait implies
    // the earlier ones.
    for (const std::size_t from : value.inputs) {
      if (plan_.values[from].is_sum)
        program.add_wait(arrived_.at({from, value.rank}), HandProgram::after(spot, 1));
    }
  }

  void send(const Message& message, double now) {
    const std::uint32_t source = plan_.values[message.value].rank;
    HandProgram& from = job_.rank(source);
    HandProgram& to = job_.rank(message.to);
    std::vector<std::uint32_t>& choices = pairs_[{source, message.to}];
    if (choices.size() < 2 && (choices.empty() || random_.chance(0.3)))
      choices.push_back(job_.pair(source, message.to));
    const std::uint32_t communicator = random_.pick(choices);
    const std::uint32_t identity = next_identity_++;
    const Spot producer = spots_[message.value].at(source);
    const Spot sent =
        from.communicate(stream(source, communicator), PIPER_SEND, communicator, identity,
                         {HandProgram::part<double>(offset_.at({message.value, source}),
                                                    PIPER_NO_OFFSET, plan_.width)},
                         {HandProgram::after(producer)});
    from.add_wait(producer, HandProgram::after(sent, 1));
    // The first buffer whose last reader stands before this point of the global order.
    std::vector<Buffer>& buffers = buffers_[message.to];
    auto buffer = std::find_if(buffers.begin(), buffers.end(), [&](const Buffer& b) {
      return static_cast<double>(b.free_after) < now;
    });
    const bool fresh = buffer == buffers.end();
    if (fresh) buffer = buffers.insert(buffers.end(), {to.allocate<double>(plan_.width), 0, {}});
    std::vector<PiperWait> waits;
    if (!fresh) waits.push_back(HandProgram::after(spots_[buffer->free_after].at(message.to)));
    const Spot received = to.communicate(
        stream(message.to, communicator), PIPER_RECV, communicator, identity,
        {HandProgram::part<double>(PIPER_NO_OFFSET, buffer->offset, plan_.width)}, waits);
    if (fresh) buffer->first_receive = received;
    buffer->free_after = message.last_reader;
    offset_[{message.value, message.to}] = buffer->offset;
    arrived_[{message.value, message.to}] = received;
  }

  void reduce(std::size_t v) {
    const Value& value = plan_.values[v];
    const std::uint32_t communicator = job_.group(value.group), identity = next_identity_++;
    for (std::size_t m = 0; m < value.group.size(); ++m) {
      const std::uint32_t rank = value.group[m];
      HandProgram& program = job_.rank(rank);
      const Spot producer = spots_[value.inputs[m]].at(rank);
      const std::uint64_t out = program.allocate<double>(plan_.width);
      const Spot spot = program.communicate(
          stream(rank, communicator), PIPER_ALL_REDUCE, communicator, identity,
          {HandProgram::part<double>(offset_.at({value.inputs[m], rank}), out, plan_.width)},
          {HandProgram::after(producer)});
      program.add_wait(producer, HandProgram::after(spot, 1));
      offset_[{v, rank}] = out;
      arrived_[{v, rank}] = spot;
    }
  }

  const Plan& plan_;
  test::Random& random_;
  HandJob& job_;
  const Expected& expected_;
  std::atomic<int>& wrong_;
  std::vector<std::map<std::uint32_t, Spot>> spots_;  // per value: its chunk's spot, by rank
  std::vector<std::vector<Buffer>> buffers_;          // per rank
  std::vector<bool> shares_stream_;
  std::map<std::uint32_t, bool> has_chunk_;
  std::map<Key, std::uint64_t> offset_;
  std::map<Key, Spot> arrived_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::vector<std::uint32_t>> pairs_;
  std::uint32_t next_identity_ = 1;
};

TEST(RandomJobs, EndUnderEveryTimingWithTheValuesOfOneDevice) {
  test::for_each_case(60, [](test::Random& random) {
    const Plan plan = random_plan(random);
    const Expected expected = evaluate(plan);
    std::atomic<int> wrong{0};
    HandJob job(plan.ranks);
    Builder builder(plan, random, job, expected, wrong);
    builder.build();
    ExecutorOptions options;
    const RandomDelays delays{.seed = random.next(), .max_us = random.chance(0.6) ? 60u : 0u};
    options.runtime.stall_seconds = 5;
    options.runtime.spin = random.chance(0.5) ? 0 : 50;
    options.runtime.check_memory = random.chance(0.5);
    auto executor = create(job.finish(), options, {.delays = delays});
    ASSERT_TRUE(executor);
    const RunResult result = executor->run(Phase::training, kSteps);
    ASSERT_EQ(result.ended, Ended::finished) << describe(*result.failure);
    ASSERT_EQ(wrong.load(), 0);
  });
}

}  // namespace
}  // namespace piper::runtime
