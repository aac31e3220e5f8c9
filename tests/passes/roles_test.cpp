#include "passes/order/roles.h"

#include <gtest/gtest.h>

#include <map>

#include "ir/dag/device_role.h"
#include "ir/dag/local_body.h"
#include "tests/support/random_cases.h"

namespace piper::passes {
namespace {

using dag::local_extents;
using dag::uneven_shardings;
using test::for_each_case;
using test::Random;

constexpr std::int32_t kWhole = DeviceSet::kWhole;

struct Fixture {
  Context context;
  dag::Dag dag{context};

  explicit Fixture(std::vector<std::pair<const char*, std::uint32_t>> axes) {
    dag.mesh.name = context.symbol("cluster");
    for (const auto& [name, size] : axes) dag.mesh.axes.push_back({context.symbol(name), size});
  }
  DeviceSetId set(std::vector<std::int32_t> at) {
    return dag.device_sets.intern(DeviceSet{std::move(at)});
  }
  /// Adds a body whose samples these axes shard.
  void shard(std::int64_t samples, std::initializer_list<const char*> axes) {
    dag.level = dag::Level::placed;
    dag::Body body{context.symbol("x"), tensor::Graph(context), {}, {}};
    const Symbol batch = context.symbol("batch");
    Layout layout;
    for (const char* axis : axes) layout.add(context.symbol(axis), AxisLayout::sharded(batch));
    const tensor::ValueId value =
        body.graph.add_leaf({tensor::DType::f32, {{batch, samples, true}}}, context.symbol("x"));
    body.graph.set_layout(value, context.layouts.intern(std::move(layout)));
    dag.bodies.push_back(std::move(body));
  }
};

std::size_t role_at(const RoleTable& roles, const std::vector<std::uint32_t>& coordinates) {
  const auto at = [&](std::size_t role) { return std::span(roles.at(role)); };
  return dag::role_of_device(roles.size(), at, coordinates);
}

TEST(roles, one_per_stage_whatever_the_replicas) {
  Fixture fixture({{"pp", 2}, {"dp", 1024}});
  const DeviceSetId sets[] = {fixture.set({0, kWhole}), fixture.set({1, kWhole})};
  const RoleTable roles(fixture.dag, sets);
  ASSERT_EQ(roles.size(), 2u);
  EXPECT_EQ(fixture.context.text(roles.name(0)), "pp0");
  EXPECT_EQ(roles.at(1), (std::vector<std::int32_t>{1, kWhole}));
  EXPECT_TRUE(roles.in(sets[0], 0));
  EXPECT_FALSE(roles.intersects(sets[0], sets[1]));
}

TEST(roles, devices_without_work_have_one_of_their_own) {
  Fixture fixture({{"pp", 4}});
  const DeviceSetId sets[] = {fixture.set({1})};
  const RoleTable roles(fixture.dag, sets);
  ASSERT_EQ(roles.size(), 2u);
  EXPECT_EQ(roles.roles_of(sets[0]).size(), 1u);
  EXPECT_EQ(fixture.context.text(roles.name(1)), "cluster");
  EXPECT_EQ(role_at(roles, {1}), 0u);
  EXPECT_EQ(role_at(roles, {3}), 1u);
}

TEST(roles, a_finer_set_refines_only_where_it_is) {
  Fixture fixture({{"pp", 2}, {"dp", 2}});
  const DeviceSetId sets[] = {fixture.set({0, kWhole}), fixture.set({1, 0}), fixture.set({1, 1})};
  const RoleTable roles(fixture.dag, sets);
  ASSERT_EQ(roles.size(), 3u);
  EXPECT_EQ(fixture.context.text(roles.name(0)), "pp0");
  EXPECT_EQ(fixture.context.text(roles.name(1)), "pp1.dp0");
}

TEST(roles, larger_boxes_have_roles_of_their_own) {
  Fixture fixture({{"pp", 2}, {"dp", 4}});
  fixture.shard(9, {"dp"});
  const DeviceSetId sets[] = {fixture.set({0, kWhole}), fixture.set({1, kWhole})};
  const RoleTable roles(fixture.dag, sets);
  ASSERT_EQ(roles.size(), 4u);
  EXPECT_EQ(fixture.context.text(roles.name(0)), "pp0.dp0");  // 3 samples
  EXPECT_EQ(fixture.context.text(roles.name(1)), "pp0");      // 2 each
}

TEST(roles, fewer_smaller_boxes_have_them_instead) {
  Fixture fixture({{"pp", 2}, {"dp", 4}});
  fixture.shard(11, {"dp"});
  const DeviceSetId sets[] = {fixture.set({0, kWhole}), fixture.set({1, kWhole})};
  const RoleTable roles(fixture.dag, sets);
  ASSERT_EQ(roles.size(), 4u);
  EXPECT_EQ(fixture.context.text(roles.name(0)), "pp0.dp3");  // 2 samples
  EXPECT_EQ(fixture.context.text(roles.name(1)), "pp0");      // 3 each
}

TEST(roles, equal_boxes_need_none) {
  Fixture fixture({{"pp", 2}, {"dp", 4}});
  fixture.shard(8, {"dp"});
  const DeviceSetId sets[] = {fixture.set({0, kWhole}), fixture.set({1, kWhole})};
  EXPECT_EQ(RoleTable(fixture.dag, sets).size(), 2u);
}

TEST(roles, devices_of_one_role_lie_in_the_same_sets_and_have_equal_extents) {
  for_each_case(300, [](Random& random) {
    Fixture fixture({{"a", static_cast<std::uint32_t>(random.between(1, 4))},
                     {"b", static_cast<std::uint32_t>(random.between(1, 3))},
                     {"c", static_cast<std::uint32_t>(random.between(1, 3))}});
    std::vector<DeviceSetId> sets;
    for (std::uint64_t i = random.below(6); i > 0; --i) {
      std::vector<std::int32_t> at;
      for (const MeshAxis& axis : fixture.dag.mesh.axes)
        at.push_back(random.chance(0.4) ? kWhole
                                        : static_cast<std::int32_t>(random.below(axis.size)));
      sets.push_back(fixture.set(at));
    }
    const auto samples = static_cast<std::int64_t>(random.between(12, 30));
    if (random.chance(0.3)) fixture.shard(samples, {"a"});
    if (random.chance(0.3)) fixture.shard(samples, {"b", "c"});
    const std::vector<Sharding> uneven = uneven_shardings(fixture.dag);
    std::map<std::size_t, std::vector<std::int64_t>> extents;
    const RoleTable roles(fixture.dag, sets);
    std::vector<bool> inhabited(roles.size(), false);
    for (std::uint64_t rank = 0; rank < fixture.dag.mesh.devices(); ++rank) {
      const std::vector<std::uint32_t> coordinates = coordinates_of(fixture.dag.mesh, rank);
      const std::size_t role = role_at(roles, coordinates);
      ASSERT_LT(role, roles.size());
      inhabited[role] = true;
      const std::vector<std::int64_t> here = local_extents(uneven, fixture.dag.mesh, coordinates);
      ASSERT_EQ(extents.try_emplace(role, here).first->second, here) << "rank " << rank;
      for (const DeviceSetId set : sets) {
        ASSERT_EQ(roles.in(set, role), fixture.dag.device_sets[set].contains_device(coordinates))
            << "rank " << rank;
      }
    }
    for (std::size_t role = 0; role < roles.size(); ++role)
      EXPECT_TRUE(inhabited[role]) << "role " << role;
  });
}

}  // namespace
}  // namespace piper::passes
