// Work on several threads: every item is done once, on any calling thread, also from inside other
// work.

#include "ir/parallel.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <new>
#include <vector>

namespace piper::test {
namespace {

using Counts = std::vector<std::atomic<int>>;

void take_all(std::size_t workers, Counts& taken) {
  std::atomic<std::size_t> next = 0;
  run_workers(workers, [&] {
    for (std::size_t i; (i = next++) < taken.size();) ++taken[i];
  });
}

void expect_once(const Counts& taken) {
  for (const std::atomic<int>& times : taken) ASSERT_EQ(times, 1);
}

TEST(Workers, TakeEveryItemOnce) {
  for (const std::size_t workers : {1u, 2u, 5u}) {
    Counts taken(1000);
    take_all(workers, taken);
    expect_once(taken);
  }
}

TEST(Workers, AreAsManyAsTheWorkIsWorth) {
  EXPECT_EQ(workers_for(64, 100), 1u);
  EXPECT_EQ(workers_for(1, 1000000), 1u);
  EXPECT_GE(workers_for(64, 1000000), 1u);
}

TEST(Workers, MayCallForWorkersThemselves) {
  std::vector<Counts> taken;
  for (int k = 0; k < 20; ++k) taken.emplace_back(500);
  std::atomic<std::size_t> next = 0;
  run_workers(3, [&] {
    for (std::size_t i; (i = next++) < taken.size();) take_all(3, taken[i]);
  });
  for (const Counts& each : taken) expect_once(each);
}

TEST(Workers, ServeSeveralCallers) {
  std::vector<Counts> taken;
  for (int k = 0; k < 4; ++k) taken.emplace_back(2000);
  std::vector<std::thread> callers;
  for (Counts& each : taken) {
    callers.emplace_back([&each] {
      for (int round = 1; round <= 50; ++round) {
        take_all(3, each);
        for (std::atomic<int>& times : each) ASSERT_EQ(times.exchange(0), 1);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

/// At work on both sides for certain: each waits for the other.
TEST(Workers, WorkAtOnce) {
  std::latch both(2);
  std::atomic<int> arrived = 0;
  run_workers(2, [&] {
    if (arrived++ < 2) both.arrive_and_wait();
  });
  EXPECT_GE(arrived, 2);
}

TEST(Both, RunAtOnceAndOneAfterTheOther) {
  for (const std::size_t nodes : {1u, 1000000u}) {
    std::latch first_done(1);
    int first = 0, second = 0;
    run_both(
        nodes,
        [&] {
          first = 1;
          first_done.count_down();
        },
        [&] {
          first_done.wait();
          second = first + 1;
        });
    EXPECT_EQ(second, 2);
  }
}

TEST(RunWorkers, ThrowWhatOneOfThemThrew) {
  for (const std::size_t workers : {1u, 2u, 4u}) {
    for (std::size_t thrower = 0; thrower < 64; thrower += 7) {
      std::atomic<std::size_t> next = 0;
      std::atomic<int> inside = 0;
      EXPECT_THROW(run_workers(workers,
                               [&] {
                                 ++inside;
                                 for (std::size_t i; (i = next++) < 64;) {
                                   if (i != thrower) continue;
                                   --inside;
                                   throw std::bad_alloc();
                                 }
                                 --inside;
                               }),
                   std::bad_alloc);
      EXPECT_EQ(inside, 0);  // all have returned
    }
  }
  Counts taken(1000);
  take_all(4, taken);
  for (const std::atomic<int>& count : taken) EXPECT_EQ(count, 1);
}

TEST(AllHold, LooksAtEveryNodeUntilOneDoesNot) {
  Counts seen(100000);
  EXPECT_TRUE(all_hold(nullptr, seen.size(), [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) ++seen[i];
    return true;
  }));
  expect_once(seen);
  EXPECT_FALSE(all_hold(nullptr, seen.size(), [](std::size_t begin, std::size_t end) {
    return end <= 50000 || begin > 50000;
  }));
  EXPECT_TRUE(all_hold(nullptr, 0, [](std::size_t, std::size_t) { return false; }));
}

}  // namespace
}  // namespace piper::test
