// Layouts as values and as text, and the boxes that they cut.

#include <gtest/gtest.h>

#include "ir/layout/box.h"
#include "ir/layout/local.h"

namespace piper::test {
namespace {

struct Layouts {
  SymbolTable symbols;
  LayoutTable table{symbols};
  Mesh mesh;

  explicit Layouts(std::initializer_list<std::pair<const char*, std::uint32_t>> axes) {
    for (const auto& [name, size] : axes) mesh.axes.push_back({symbols.intern(name), size});
  }
  Symbol name(const char* text) { return symbols.intern(text); }
  LayoutId of(std::initializer_list<std::pair<const char*, AxisLayout>> axes) {
    Layout layout;
    for (const auto& [axis, how] : axes) layout.add(name(axis), how);
    return table.intern(layout);
  }
  std::string text(LayoutId id) {
    return print(table[id], symbols, [](std::string_view name) { return std::string(name); });
  }
};

TEST(Layouts, EqualOnesHaveOneId) {
  Layouts all({{"tp", 2}, {"dp", 2}});
  const AxisLayout batch = AxisLayout::sharded(all.name("batch")),
                   heads = AxisLayout::sharded(all.name("heads"));
  EXPECT_TRUE(all.of({}).replicated());
  EXPECT_TRUE(all.of({{"dp", {}}}).replicated());
  EXPECT_EQ(all.of({{"tp", heads}, {"dp", batch}}), all.of({{"dp", batch}, {"tp", heads}}));
  // Which one is outermost.
  EXPECT_NE(all.of({{"tp", batch}, {"dp", batch}}), all.of({{"dp", batch}, {"tp", batch}}));
  EXPECT_NE(all.of({{"tp", AxisLayout::flat_sharded()}, {"dp", AxisLayout::flat_sharded()}}),
            all.of({{"dp", AxisLayout::flat_sharded()}, {"tp", AxisLayout::flat_sharded()}}));
  EXPECT_EQ(all.of({{"tp", AxisLayout::partial()}, {"dp", AxisLayout::partial()}}),
            all.of({{"dp", AxisLayout::partial()}, {"tp", AxisLayout::partial()}}));
}

TEST(Layouts, ArePrintedAxisByAxis) {
  Layouts all({{"tp", 2}, {"dp", 2}, {"cp", 2}});
  const AxisLayout batch = AxisLayout::sharded(all.name("batch"));
  EXPECT_EQ(all.text({}), "");
  EXPECT_EQ(all.text(all.of({{"tp", AxisLayout::partial()}, {"dp", batch}})), "dp: batch, tp: +");
  EXPECT_EQ(all.text(all.of({{"tp", batch}, {"cp", AxisLayout::flat_sharded()}, {"dp", batch}})),
            "cp: flat, tp: batch, dp: batch");
  EXPECT_EQ(all.text(all.of({{"tp", AxisLayout::sharded(all.name("flat"))}})), "tp: \"flat\"");
}

TEST(Boxes, BlocksAreContiguousAndTheFirstOnesLarger) {
  for (std::int64_t n = 0; n < 20; ++n) {
    for (std::int64_t k = 1; k < 8; ++k) {
      std::int64_t next = 0;
      for (std::int64_t i = 0; i < k; ++i) {
        const Interval part = shard_of(full_interval(n), k, i);
        EXPECT_EQ(part.first, next);
        EXPECT_EQ(part.extent, n / k + (i < n % k ? 1 : 0));
        EXPECT_EQ(part.global, n);
        next += part.extent;
      }
      EXPECT_EQ(next, n);
    }
  }
}

TEST(Boxes, FollowFromTypeLayoutAndDevice) {
  Layouts all({{"dp", 2}, {"tp", 3}});
  const tensor::Type type{tensor::DType::f32,
                          {{all.name("batch"), 8, true}, {all.name("dim"), 7, false}}};
  const AxisLayout batch = AxisLayout::sharded(all.name("batch")),
                   dim = AxisLayout::sharded(all.name("dim"));
  const auto box = [&](LayoutId layout, std::vector<std::uint32_t> at) {
    return box_of(type, all.table[layout], all.mesh, at);
  };
  EXPECT_EQ(box({}, {1, 1}), (Box{{0, 8, 8}, {0, 7, 7}}));
  EXPECT_EQ(box(all.of({{"dp", batch}, {"tp", dim}}), {1, 0}), (Box{{4, 4, 8}, {0, 3, 7}}));
  EXPECT_EQ(box(all.of({{"dp", batch}, {"tp", dim}}), {1, 2}), (Box{{4, 4, 8}, {5, 2, 7}}));
  // The outermost axis cuts first: 4 + 4, each into 2 + 1 + 1; or 3 + 3 + 2, each into halves.
  EXPECT_EQ(box(all.of({{"dp", batch}, {"tp", batch}}), {1, 1}), (Box{{6, 1, 8}, {0, 7, 7}}));
  EXPECT_EQ(box(all.of({{"tp", batch}, {"dp", batch}}), {1, 1}), (Box{{5, 1, 8}, {0, 7, 7}}));
  EXPECT_EQ(box(all.of({{"dp", AxisLayout::partial()}}), {1, 1}), (Box{{0, 8, 8}, {0, 7, 7}}));
  EXPECT_EQ(mask_of(all.table[all.of({{"dp", batch}, {"tp", AxisLayout::partial()}})],
                    AxisLayout::partial(), all.mesh),
            2);
  EXPECT_EQ(axes_of(all.table[all.of({{"tp", batch}, {"dp", batch}})], batch, all.mesh),
            (AxisList{1, 0}));
}

TEST(Boxes, GiveTheExtentsOfLocalTypes) {
  Layouts all({{"dp", 3}, {"tp", 2}, {"cp", 2}});
  const tensor::Type type{tensor::DType::f32,
                          {{all.name("batch"), 7, true}, {all.name("dim"), 5, false}}};
  const AxisLayout batch = AxisLayout::sharded(all.name("batch")),
                   dim = AxisLayout::sharded(all.name("dim"));
  for (const LayoutId layout :
       {all.of({}), all.of({{"dp", batch}, {"tp", dim}, {"cp", AxisLayout::partial()}}),
        all.of({{"dp", batch}, {"cp", batch}}), all.of({{"tp", dim}, {"dp", dim}})}) {
    for (std::uint32_t r = 0; r < 12; ++r) {
      const std::vector<std::uint32_t> at = coordinates_of(all.mesh, r);
      const Box box = box_of(type, all.table[layout], all.mesh, at);
      const tensor::Type part = local(type, all.table[layout], all.mesh, at);
      for (std::size_t d = 0; d < box.size(); ++d) EXPECT_EQ(part.dims[d].extent, box[d].extent);
    }
  }
  EXPECT_EQ(
      sharding_axes(all.table[all.of({{"dp", batch}, {"cp", AxisLayout::partial()}})], all.mesh),
      1);
}

TEST(Boxes, CoverTheValueOnceOverAllDevices) {
  Layouts all({{"dp", 3}, {"tp", 2}});
  const tensor::Type type{tensor::DType::f32,
                          {{all.name("batch"), 7, true}, {all.name("dim"), 5, false}}};
  const AxisLayout batch = AxisLayout::sharded(all.name("batch")),
                   dim = AxisLayout::sharded(all.name("dim"));
  for (const LayoutId layout :
       {all.of({{"dp", batch}, {"tp", dim}}), all.of({{"dp", batch}, {"tp", batch}}),
        all.of({{"tp", dim}, {"dp", dim}})}) {
    std::vector<int> covered(35, 0);
    for (std::uint32_t r = 0; r < 6; ++r) {
      const Box box = box_of(type, all.table[layout], all.mesh, coordinates_of(all.mesh, r));
      for (std::int64_t b = 0; b < box[0].extent; ++b) {
        for (std::int64_t d = 0; d < box[1].extent; ++d)
          ++covered[static_cast<std::size_t>((box[0].first + b) * 5 + box[1].first + d)];
      }
    }
    EXPECT_EQ(covered, std::vector<int>(35, 1)) << all.text(layout);
  }
}

}  // namespace
}  // namespace piper::test
