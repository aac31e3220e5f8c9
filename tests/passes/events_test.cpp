#include "passes/plan/events.h"

#include <vector>

#include <gtest/gtest.h>

#include "tests/support/random_cases.h"

namespace piper::passes {
namespace {

using test::for_each_case;
using test::Random;

/// The actions of one rank with their dependencies.
struct Case {
  std::vector<Slot> slots;
  std::size_t streams = 1;
  std::vector<std::uint32_t> first_need;
  std::vector<Need> needs;
};

Case random_case(Random& random) {
  Case made;
  made.streams = static_cast<std::size_t>(random.between(1, 4));
  const std::uint32_t actions = static_cast<std::uint32_t>(random.between(1, 14));
  std::vector<std::int32_t> count(made.streams, 0);
  for (std::uint32_t a = 0; a < actions; ++a) {
    const std::uint32_t stream = static_cast<std::uint32_t>(random.below(made.streams));
    made.slots.push_back({stream, count[stream]++});
  }
  made.first_need.push_back(0);
  for (std::uint32_t a = 0; a < actions; ++a) {
    for (std::uint64_t k = random.below(4); k > 0; --k) {
      const bool same_step = a > 0 && random.chance(0.7);
      made.needs.push_back(
          {static_cast<std::uint32_t>(random.below(same_step ? a : actions)), same_step ? 0u : 1u});
    }
    made.first_need.push_back(static_cast<std::uint32_t>(made.needs.size()));
  }
  return made;
}

/// before[x][y]: action x ends before y starts, over three steps, by stream order and `waits`
/// alone. Skips wait `without`.
std::vector<std::vector<bool>> happens_before(const Case& c, const Events& events,
                                              std::size_t without) {
  const std::size_t n = c.slots.size(), all = 3 * n;
  std::vector<std::vector<bool>> before(all, std::vector<bool>(all, false));
  for (std::size_t step = 0; step < 3; ++step) {
    for (std::size_t a = 0; a < n; ++a) {
      for (std::size_t b = 0; b < all; ++b) {  // stream order
        const bool earlier = b / n < step || (b / n == step && b % n < a);
        if (earlier && c.slots[b % n].stream == c.slots[a].stream) before[b][step * n + a] = true;
      }
      for (std::uint32_t w = events.first[a]; w < events.first[a + 1]; ++w) {
        if (w != without && step >= events.waits[w].distance)
          before[(step - events.waits[w].distance) * n + events.waits[w].action][step * n + a] =
              true;
      }
    }
  }
  for (std::size_t k = 0; k < all; ++k) {
    for (std::size_t i = 0; i < all; ++i) {
      if (!before[i][k]) continue;
      for (std::size_t j = 0; j < all; ++j) {
        if (before[k][j]) before[i][j] = true;
      }
    }
  }
  return before;
}

bool all_needs_hold(const Case& c, const std::vector<std::vector<bool>>& before) {
  const std::size_t n = c.slots.size();
  for (std::size_t a = 0; a < n; ++a) {
    for (std::uint32_t i = c.first_need[a]; i < c.first_need[a + 1]; ++i) {
      for (std::size_t step = c.needs[i].distance; step < 3; ++step) {
        const std::size_t target = (step - c.needs[i].distance) * n + c.needs[i].action;
        if (!before[target][step * n + a]) return false;
      }
    }
  }
  return true;
}

TEST(events, waits_imply_every_need_and_none_can_be_left_out) {
  std::size_t needed = 0, kept = 0;
  WaitChooser chooser;
  for_each_case(300, [&](Random& random) {
    const Case c = random_case(random);
    const Events& events = chooser.choose(c.slots, c.streams, c.first_need, c.needs);
    ASSERT_EQ(events.first.size(), c.slots.size() + 1);
    ASSERT_TRUE(all_needs_hold(c, happens_before(c, events, events.waits.size())));
    for (std::size_t w = 0; w < events.waits.size(); ++w) {
      ASSERT_FALSE(all_needs_hold(c, happens_before(c, events, w)))
          << "wait " << w << " follows from the others";
    }
    needed += c.needs.size();
    kept += events.waits.size();
  });
  EXPECT_LT(kept, needed / 2);
}

TEST(events, none_within_one_stream) {
  const std::vector<Slot> slots = {{0, 0}, {0, 1}};
  const std::vector<std::uint32_t> first = {0, 0, 1};
  const std::vector<Need> needs = {{0, 0}};
  EXPECT_TRUE(WaitChooser().choose(slots, 1, first, needs).waits.empty());
}

TEST(events, a_wait_on_a_later_action_of_a_stream_covers_the_earlier) {
  const std::vector<Slot> slots = {{1, 0}, {1, 1}, {0, 0}};
  const std::vector<std::uint32_t> first = {0, 0, 0, 2};
  const std::vector<Need> needs = {{0, 0}, {1, 0}};
  WaitChooser chooser;
  const Events& events = chooser.choose(slots, 2, first, needs);
  ASSERT_EQ(events.waits.size(), 1u);
  EXPECT_EQ(events.waits[0], (Need{1, 0}));
}

}  // namespace
}  // namespace piper::passes
