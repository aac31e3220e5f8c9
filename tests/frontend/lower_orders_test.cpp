// The library's orders, operation by operation, against generators written from the published rules
// alone.

#include <algorithm>
#include <deque>
#include <map>
#include <set>
#include <tuple>

#include "tests/frontend/lowered.h"

namespace piper {
namespace {

using test::Lowered;

/// An operation of a device: pass, stage, copy, microbatch, and the overlap group it is in (0:
/// none, else counted per device from 1).
struct Op {
  std::string pass;
  int stage = 0, copy = 0, mb = 0, group = 0;
  friend bool operator==(const Op&, const Op&) = default;
};
using Orders = std::vector<std::vector<Op>>;

std::ostream& operator<<(std::ostream& os, const Op& op) {
  os << op.pass << op.stage << "." << op.mb;
  if (op.copy) os << "'";
  if (op.group) os << "(" << op.group << ")";
  return os;
}

// ---- results of the language
// ----------------------------------------------------------------------------------------

class Flattener {
 public:
  Flattener(const Lowered& lowered, const directive::Order& order)
      : lowered_(lowered), order_(order) {
    for (const directive::Order::Trim& trim : order.trims)
      bound_[std::string(lowered.context.text(trim.dim))] = static_cast<int>(trim.bound);
  }

  std::vector<Op> rank(const directive::RankSteps& steps) {
    ops_.clear();
    groups_ = 0;
    for (std::uint32_t i = 0; i < steps.num_steps; ++i)
      step(order_.children[steps.first_step + i], 0);
    return ops_;
  }

 private:
  void step(std::uint32_t id, int group) {
    const directive::OrderStep& step = order_.steps[id];
    if (step.kind == directive::OrderStep::Kind::group && group == 0) group = ++groups_;
    for (std::uint32_t i = step.first; i < step.first + step.count; ++i) {
      if (step.kind == directive::OrderStep::Kind::op) {
        op(order_.ops[i], group);
      } else {
        this->step(order_.children[i], group);
      }
    }
  }
  void op(const directive::OrderOp& op, int group) {
    Op out{std::string(pass_name(op.pass)), 0, 0, 0, group};
    for (std::uint32_t i = 0; i < op.num_coordinates; ++i) {
      const directive::OrderCoordinate& c = order_.coordinates[op.first_coordinate + i];
      const std::string name(lowered_.context.text(c.name));
      EXPECT_FALSE(c.all);
      const int index = static_cast<int>(c.index);
      (name == "stage" ? out.stage : name == "copy" ? out.copy : out.mb) = index;
      EXPECT_TRUE(name == "stage" || name == "copy" || name == "mb") << name;
      if (bound_.contains(name) && index >= bound_[name]) return;
    }
    ops_.push_back(out);
  }

  const Lowered& lowered_;
  const directive::Order& order_;
  std::map<std::string, int> bound_;
  std::vector<Op> ops_;
  int groups_ = 0;
};

Orders orders_of(const Lowered& lowered) {
  Orders result;
  int orders = 0;
  for (const directive::Directive& directive : lowered.result->strategy.directives) {
    const auto* order = std::get_if<directive::Order>(&directive);
    if (!order) continue;
    EXPECT_EQ(++orders, 1);
    Flattener flatten(lowered, *order);
    for (std::size_t r = 0; r < order->ranks.size(); ++r) {
      EXPECT_EQ(lowered.result->strategy.device_sets[order->ranks[r].devices].at,
                std::vector<std::int32_t>{static_cast<std::int32_t>(r)});
      result.push_back(flatten.rank(order->ranks[r]));
    }
  }
  return result;
}

/// The rank of each stage of each copy: by copy, then stage. Instances that no `place` names are
/// -1.
std::vector<std::vector<int>> placement_of(const Lowered& lowered, int copies) {
  int stages = 0;
  for (const directive::Directive& directive : lowered.result->strategy.directives) {
    if (const auto* partition = std::get_if<directive::Partition>(&directive))
      stages = static_cast<int>(partition->into.extent);
  }
  std::vector<std::vector<int>> at(static_cast<std::size_t>(copies),
                                   std::vector<int>(static_cast<std::size_t>(stages), -1));
  for (const directive::Directive& directive : lowered.result->strategy.directives) {
    const auto* place = std::get_if<directive::Place>(&directive);
    if (!place) continue;
    for (const directive::Selector& target : place->targets) {
      std::vector<std::uint32_t> on_copies, on_stages;
      for (int c = 0; c < copies; ++c) on_copies.push_back(static_cast<std::uint32_t>(c));
      for (const directive::Coordinate& c : target.coordinates) {
        (lowered.context.text(c.name) == "copy" ? on_copies : on_stages) = c.indices;
      }
      for (const std::uint32_t c : on_copies) {
        for (const std::uint32_t s : on_stages)
          at[c][s] = lowered.result->strategy.device_sets[place->devices].at[0];
      }
    }
  }
  return at;
}

// ---- generators from the rules
// -------------------------------------------------------------------------------------

using Work = std::pair<int, int>;  // stage, microbatch

/// The first `warm` of fs; then the next of fs if any and the k-th of bs. Split: from k = lag on
/// the oldest pending weight gradient follows.
std::vector<Op> alternate(const std::vector<Work>& fs, const std::vector<Work>& bs, int warm,
                          bool split = false, int lag = 0) {
  std::vector<Op> ops;
  std::size_t f = 0, w = 0;
  const auto add = [&](const char* pass, Work work) {
    ops.push_back({pass, work.first, 0, work.second, 0});
  };
  while (f < fs.size() && static_cast<int>(f) < warm) add("F", fs[f++]);
  for (std::size_t k = 0; k < bs.size(); ++k) {
    if (f < fs.size()) add("F", fs[f++]);
    add(split ? "BI" : "B", bs[k]);
    if (split && static_cast<int>(k) >= lag) add("BW", bs[w++]);
  }
  while (split && w < bs.size()) add("BW", bs[w++]);
  return ops;
}

std::vector<Work> own(int r, int m) {
  std::vector<Work> list;
  for (int i = 0; i < m; ++i) list.emplace_back(r, i);
  return list;
}

std::vector<Work> grouped(int p, int r, int m, int v, int g, bool reverse) {
  std::vector<Work> list;
  for (int first = 0; first < m; first += g) {
    for (int c = 0; c < v; ++c) {
      const int chunk = reverse ? v - 1 - c : c;
      for (int i = first; i < std::min(first + g, m); ++i) list.emplace_back(chunk * p + r, i);
    }
  }
  return list;
}

std::vector<Op> zbv(int p, int r, int m) {
  const int most = std::max(m, 2 * p - 1);
  std::vector<Op> ops;
  const int stage[2] = {r, 2 * p - 1 - r};
  int f[2] = {0, 0}, i[2] = {0, 0}, w[2] = {0, 0};
  const auto F = [&](int s) { ops.push_back({"F", stage[s], 0, f[s]++, 0}); };
  const auto I = [&](int s) { ops.push_back({"BI", stage[s], 0, i[s]++, 0}); };
  const auto W = [&](int s) { ops.push_back({"BW", stage[s], 0, w[s]++, 0}); };
  for (int n = 0; n < 2 * (p - r) - 1; ++n) F(0);
  for (int n = 0; n < r; ++n) F(1), F(0);
  for (int n = 0; n < p - r; ++n) F(1), I(1), W(1);
  while (f[0] < most || f[1] < most) {
    if (f[0] < most) F(0);
    I(0), W(0), F(1), I(1), W(1);
  }
  for (int n = 0; n < r; ++n) I(0), I(1);
  for (int n = 0; n < p - r; ++n) I(0), W(0);
  while (w[1] < most) W(1);
  while (w[0] < most) W(0);
  std::erase_if(ops, [&](const Op& op) { return op.mb >= m; });
  return ops;
}

struct Stream {
  int stage = 0, copy = 0;
};

/// The core of DualPipe in eight phases; streams 0 (near) and 1 (far).
std::vector<Op> dual(Stream near, Stream far, int h, int depth, int n) {
  std::vector<Op> ops;
  const Stream at[2] = {near, far};
  int f[2] = {0, 0}, b[2] = {0, 0}, group = 0;
  std::deque<Op> weights;
  const auto F = [&](int s, int g = 0) {
    ops.push_back({"F", at[s].stage, at[s].copy, f[s]++, g});
  };
  const auto B = [&](int s, int g = 0) {
    ops.push_back({"B", at[s].stage, at[s].copy, b[s]++, g});
  };
  const auto I = [&](int s) {
    ops.push_back({"BI", at[s].stage, at[s].copy, b[s]++, 0});
    weights.push_back({"BW", ops.back().stage, ops.back().copy, ops.back().mb, 0});
  };
  const auto W = [&] { ops.push_back(weights.front()), weights.pop_front(); };
  const int inner = depth - 1 - h;
  for (int k = 0; k < 2 * inner; ++k) F(0);
  for (int k = 0; k < h + 1; ++k) F(0), F(1);
  for (int k = 0; k < inner; ++k) I(1), W(), F(1);
  for (int k = 0; k < n - 2 * depth + h + 1; ++k) {
    const int g = k == 0 && h == depth - 1 ? 0 : ++group;
    F(0, g), B(1, g);
    ++group;
    F(1, group), B(0, group);
  }
  for (int k = 0; k < inner; ++k) {
    B(1);
    ++group;
    F(1, group), B(0, group);
  }
  // B1 B0 in turn; from (h+1) div 2 of the pairs on they are I, and stream 1 turns first if h is
  // odd, else stream 0.
  const int turn = (h + 1) / 2;
  for (int k = 0; k < h + 1; ++k) {
    const bool first_turned = h % 2 == 1 ? k >= turn : k >= turn + 1;
    if (first_turned) I(1);
    else B(1);
    if (k >= turn) I(0);
    else B(0);
  }
  for (int k = 0; k < inner; ++k) W(), I(0);
  for (int k = 0; k < h + 1; ++k) W();
  EXPECT_TRUE(weights.empty());
  EXPECT_TRUE(f[0] == n && f[1] == n && b[0] == n && b[1] == n);
  return ops;
}

// ---- the comparison
// ------------------------------------------------------------------------------------------------

using Parameters = std::vector<lower::Override>;

struct Check {
  explicit Check(const char* name) : lowered(Lowered::use(name)), name(name) {}

  template <typename Rank, typename Place>
  void operator()(const Parameters& parameters, int p, int copies, Rank rank, Place place) {
    if (testing::Test::HasFailure()) return;  // the first difference is enough
    std::string with = name;
    for (const lower::Override& parameter : parameters)
      with += " " + parameter.name + "=" + parameter.value;
    SCOPED_TRACE(with);
    ASSERT_TRUE(lowered.schedule(name, parameters)) << lowered.report();
    Orders expected;
    for (int r = 0; r < p; ++r) expected.push_back(rank(r));
    const Orders actual = orders_of(lowered);
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t r = 0; r < expected.size(); ++r)
      EXPECT_EQ(actual[r], expected[r]) << "rank " << r;
    const auto at = placement_of(lowered, copies);
    for (int c = 0; c < copies; ++c) {
      for (std::size_t s = 0; s < at[static_cast<std::size_t>(c)].size(); ++s) {
        EXPECT_EQ(at[static_cast<std::size_t>(c)][s], place(c, static_cast<int>(s)))
            << "stage " << s << " copy " << c;
      }
    }
  }

  Lowered lowered;
  std::string name;
};

Parameters pm(int p, int m) { return {{"p", std::to_string(p)}, {"m", std::to_string(m)}}; }

TEST(Orders, GPipe) {
  Check check("gpipe");
  for (int p = 1; p <= 9; ++p) {
    for (int m = 1; m <= 12; ++m) {
      check(
          pm(p, m), p, 1, [&](int r) { return alternate(own(r, m), own(r, m), m); },
          [](int, int s) { return s; });
    }
  }
}

TEST(Orders, OneFOneB) {
  Check check("one_f_one_b");
  for (int p = 1; p <= 9; ++p) {
    for (int m = 1; m <= 20; ++m) {
      check(
          pm(p, m), p, 1,
          [&](int r) { return alternate(own(r, m), own(r, m), std::min(p - 1 - r, m)); },
          [](int, int s) { return s; });
    }
  }
}

TEST(Orders, Interleaved) {
  Check check("interleaved");
  int cases = 0;
  for (int p = 1; p <= 5; ++p) {
    for (int v = 1; v <= 4; ++v) {
      for (int group = p; group <= 2 * p + 1; ++group) {
        for (int m = p; m <= 4 * p + 3; ++m) {
          if (m % group != 0 && m % group < p) continue;
          Parameters parameters = pm(p, m);
          parameters.push_back({"v", std::to_string(v)});
          // p is the default.
          if (group != p || m % 2 == 0) parameters.push_back({"group", std::to_string(group)});
          check(
              parameters, p, 1,
              [&](int r) {
                return alternate(grouped(p, r, m, v, group, false),
                                 grouped(p, r, m, v, group, true),
                                 std::min(2 * (p - 1 - r) + (v - 1) * group, m * v));
              },
              [&](int, int s) { return s % p; });
          ++cases;
        }
      }
    }
  }
  EXPECT_GT(cases, 300);
}

TEST(Orders, ZeroBubbleH1) {
  Check check("zb_h1");
  for (int p = 1; p <= 9; ++p) {
    for (int m = p; m <= 2 * p + 8; ++m) {
      check(
          pm(p, m), p, 1,
          [&](int r) { return alternate(own(r, m), own(r, m), p - 1 - r, true, r); },
          [](int, int s) { return s; });
    }
  }
}

TEST(Orders, ZeroBubbleV) {
  Check check("zbv");
  for (int p = 1; p <= 8; ++p) {
    for (int m = 1; m <= 3 * p + 3; ++m) {
      check(
          pm(p, m), p, 1, [&](int r) { return zbv(p, r, m); },
          [&](int, int s) { return s < p ? s : 2 * p - 1 - s; });
    }
  }
}

TEST(Orders, DualPipe) {
  Check check("dual_pipe");
  for (int p = 2; p <= 12; p += 2) {
    for (int m = 2 * p; m <= 4 * p + 6; m += 2) {
      check(
          pm(p, m), p, 2,
          [&](int r) {
            const int h = std::min(r, p - 1 - r), c = r < p / 2 ? 0 : 1;
            return dual({h, c}, {p - 1 - h, 1 - c}, h, p / 2, m / 2);
          },
          [&](int c, int s) { return c == 0 ? s : p - 1 - s; });
    }
  }
}

TEST(Orders, DualPipeV) {
  Check check("dual_pipe_v");
  for (int p = 1; p <= 8; ++p) {
    for (int m = 2 * p; m <= 4 * p + 5; ++m) {
      check(
          pm(p, m), p, 1, [&](int r) { return dual({r, 0}, {2 * p - 1 - r, 0}, r, p, m); },
          [&](int, int s) { return s < p ? s : 2 * p - 1 - s; });
    }
  }
}

/// In every order each instance has one forward and one backward, whole or in its two halves, on
/// the rank of its stage.
TEST(Orders, EveryInstanceIsDoneOnceWhereItIsPlaced) {
  struct Case {
    const char* name;
    int p, m, copies;
  };
  for (const Case& c : {Case{"gpipe", 6, 7, 1},
                        {"one_f_one_b", 6, 3, 1},
                        {"interleaved", 4, 12, 1},
                        {"interleaved", 4, 5, 1},
                        {"interleaved_zb", 4, 10, 1},
                        {"looped_bfs", 3, 5, 1},
                        {"group_interleaved", 4, 7, 1},
                        {"zb_h2", 4, 9, 1},
                        {"v_min", 4, 12, 1},
                        {"v_half", 4, 15, 1},
                        {"v_1f1b", 3, 10, 1},
                        {"chimera", 6, 12, 2},
                        {"bit_pipe", 4, 12, 2},
                        {"gems", 5, 6, 2},
                        {"zb_h1", 5, 9, 1},
                        {"zbv", 6, 4, 1},
                        {"zbv", 4, 20, 1},
                        {"dual_pipe", 6, 16, 2},
                        {"dual_pipe_v", 5, 13, 1}}) {
    SCOPED_TRACE(c.name);
    Lowered lowered(Lowered::use(c.name));
    ASSERT_TRUE(lowered.schedule(c.name, pm(c.p, c.m))) << lowered.report();
    const auto at = placement_of(lowered, c.copies);
    std::map<std::tuple<int, int, int>, std::multiset<std::string>> done;
    const Orders orders = orders_of(lowered);
    for (std::size_t r = 0; r < orders.size(); ++r) {
      for (const Op& op : orders[r]) {
        EXPECT_EQ(at[static_cast<std::size_t>(op.copy)][static_cast<std::size_t>(op.stage)],
                  static_cast<int>(r))
            << op;
        done[{op.copy, op.stage, op.mb}].insert(op.pass);
      }
    }
    EXPECT_EQ(done.size(), at[0].size() * static_cast<std::size_t>(c.m));
    for (const auto& [instance, passes] : done) {
      EXPECT_TRUE(passes == (std::multiset<std::string>{"B", "F"}) ||
                  passes == (std::multiset<std::string>{"BI", "BW", "F"}))
          << std::get<1>(instance);
    }
  }
}

TEST(Orders, RequirementsOfSchedulesAreReported) {
  struct Case {
    const char* name;
    int p, m;
  };
  for (const Case& c : {Case{"zb_h1", 4, 3},
                        {"dual_pipe", 3, 8},
                        {"dual_pipe", 4, 9},
                        {"dual_pipe", 4, 6},
                        {"dual_pipe_v", 4, 7},
                        {"zb_h2", 4, 7},
                        {"chimera", 3, 6},
                        {"chimera", 4, 6},
                        {"bit_pipe", 3, 6},
                        {"bit_pipe", 4, 6},
                        {"gems", 4, 5}}) {
    SCOPED_TRACE(c.name);
    Lowered lowered(Lowered::use(c.name));
    EXPECT_FALSE(lowered.schedule(c.name, pm(c.p, c.m)));
    EXPECT_EQ(lowered.codes(), std::vector<Code>{Code::requirement_not_met}) << lowered.report();
  }
}

}  // namespace
}  // namespace piper
