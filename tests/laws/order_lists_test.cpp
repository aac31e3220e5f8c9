// The orders of a plan, as an explicit list in a program, give the same plan: library schedules and
// random orders.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "frontend/lower/lower.h"
#include "frontend/repl/changed_order.h"
#include "frontend/views/order_list.h"
#include "frontend/views/orders_view.h"
#include "ir/dag/print.h"
#include "passes/order/orders_table.h"
#include "tests/support/compile.h"
#include "tests/support/random_cases.h"
#include "tests/support/random_programs.h"
#include "tests/support/text_edit.h"

namespace piper::test {
namespace {

/// A plan, with everything that it refers to.
struct Planned {
  Context context;
  DiagnosticSink sink{context.locations};
  std::optional<dag::Dag> dag;

  explicit Planned(const std::string& source) {
    source::MemoryFileSystem files;
    const FileId file = context.locations.files().add("listed.pipe", source);
    const sema::Program program = sema::analyse(file, files, context, sink);
    if (!program.ok) return;
    auto lowered = lower::lower_train(program, sema::TrainId(0), {}, context, sink);
    if (lowered) dag = compile(lowered->model, lowered->strategy, sink);
  }
  std::string report() const { return render_text(sink.sorted(), context.locations.files()); }
  std::string orders() const { return views::orders_text(passes::orders_table(*dag)); }
  /// The order as text; empty if no list names its operations.
  std::string list() const {
    DeviceSetTable device_sets = dag->device_sets;
    const auto order = repl::order_of(passes::orders_table(*dag), *dag, device_sets);
    std::vector<Symbol> dims;
    for (const auto& dim : dag->dims) dims.push_back(dim.name);
    return order ? views::order_list(*order, dims, device_sets, dag->mesh, context.symbols) : "";
  }
  /// The actions of all roles, without source locations.
  std::string plan() const { return without_locations(dag::print(*dag)); }
};

std::string train(std::string_view schedule, std::string_view call, const std::string& order) {
  return "use std.models.mlp\nuse std.schedules." + std::string(schedule) +
         "\nmesh line(pp: 2)\n"
         "train net = mlp(layers: 6, features: 8, hidden: 8, classes: 4) on line {\n"
         "    data: synthetic(batch: 8, classes: 4)\n    optim: sgd(lr: 0.1)\n    steps: 1\n    " +
         std::string(call) + "\n" + order + "}\n";
}

TEST(OrderLists, LibrarySchedules) {
  constexpr const char* kCalls[][2] = {{"gpipe", "gpipe(pp, 4)"},
                                       {"one_f_one_b", "one_f_one_b(pp, 4)"},
                                       {"zb_h1", "zb_h1(pp, 4)"},
                                       {"interleaved", "interleaved(pp, 4)"},
                                       {"zbv", "zbv(pp, 4)"},
                                       {"dual_pipe", "dual_pipe(pp, 4)"},
                                       {"dual_pipe_v", "dual_pipe_v(pp, 4)"}};
  for (const auto& [schedule, call] : kCalls) {
    SCOPED_TRACE(call);
    const Planned written(train(schedule, call, ""));
    ASSERT_TRUE(written.dag) << written.report();
    const std::string list = written.list();
    ASSERT_FALSE(list.empty());
    const Planned listed(train(schedule, call, list));
    ASSERT_TRUE(listed.dag) << listed.report() << list;
    EXPECT_EQ(written.orders(), listed.orders()) << list;
    EXPECT_EQ(written.plan(), listed.plan()) << list;
  }
}

/// The program without its order.
std::string without_order(std::string source) {
  const std::size_t begin = source.find("\n    order ");
  if (begin == std::string::npos) return source;
  const bool block = source.compare(begin, 13, "\n    order {\n") == 0;
  const std::size_t end =
      block ? source.find("\n    }\n", begin) + 6 : source.find('\n', begin + 1);
  return source.erase(begin, end - begin);
}

TEST(OrderLists, RandomOrders) {
  for_each_case(40, [](Random& random) {
    Context context;
    const RandomProgram program = random_program(context, random, {.max_devices = 4});
    // `show orders` refuses a list of named gathers.
    if (program.source.find(".gather") != std::string::npos) return;
    SCOPED_TRACE(program.source);
    const Planned written(program.source);
    ASSERT_TRUE(written.dag) << written.report();
    const std::string list = written.list();
    if (list.empty()) return;
    const Planned listed(with_line(without_order(program.source), list));
    ASSERT_TRUE(listed.dag) << listed.report() << list;
    // An order of all devices is listed for each replica.
    if (list.find(" in dp {") == std::string::npos) {
      EXPECT_EQ(written.orders(), listed.orders()) << list;
    }
  });
}

}  // namespace
}  // namespace piper::test
