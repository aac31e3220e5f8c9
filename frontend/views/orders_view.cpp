#include "frontend/views/orders_view.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <vector>

#include "frontend/pictures/cell_labels.h"
#include "frontend/pictures/layout.h"
#include "frontend/pictures/shade.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"
#include "passes/simulate/operations.h"

namespace piper::views {
namespace {

using Op = passes::OrdersTable::Op;
using Row = passes::OrdersTable::Row;

/// The operations of a table by name.
pictures::CellRows cells_of(const passes::OrdersTable& table) {
  pictures::CellRows rows;
  for (const Row& row : table.rows) {
    std::vector<pictures::Cell>& cells = rows.emplace_back();
    cells.reserve(row.ops.size());
    for (const Op& op : row.ops)
      cells.push_back({op.pass, op.region, op.part_of_stage ? std::nullopt : op.stage, op.mb,
                       op.slice, op.part});
  }
  return rows;
}

/// The names of a table's operations.
class Labels {
 public:
  explicit Labels(const passes::OrdersTable& table) : rows_(cells_of(table)), labels_(rows_) {}
  std::string of(std::size_t row, const Op& op) const {
    return labels_.of(row, {op.pass, op.region, op.part_of_stage ? std::nullopt : op.stage, op.mb,
                            op.slice, op.part});
  }
  /// With marks for values that wait on the host.
  std::string marked(std::size_t row, const Op& op) const {
    return (op.fetches ? "<" : "") + of(row, op) + (op.offloads ? ">" : "");
  }
  std::string legend() const { return labels_.legend(rows_); }

 private:
  const pictures::CellRows rows_;
  const pictures::CellLabels labels_;
};

/// The legend of the marks for copies to the host, if there are any.
std::string copies_legend(const passes::OrdersTable& table) {
  const bool any = std::any_of(table.rows.begin(), table.rows.end(), [](const Row& row) {
    return std::any_of(row.ops.begin(), row.ops.end(),
                       [](const Op& op) { return op.offloads || op.fetches; });
  });
  return any ? "> after an operation: values for its backward go to the memory of the host; < before one: it reads values that come back\n"
             : "";
}

}  // namespace

std::string orders_text(const passes::OrdersTable& table) {
  const Labels labels(table);
  std::string text;
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    text += "rank " + std::to_string(r) + ":";
    const Op* before = nullptr;
    for (const Op& op : table.rows[r].ops) {
      text += before && op.group && before->group == op.group ? "&" : " ";
      text += labels.marked(r, op);
      before = &op;
    }
    text += "\n";
  }
  return text + labels.legend() + copies_legend(table);
}

std::vector<std::vector<std::string>> order_labels(const passes::OrdersTable& table) {
  const Labels labels(table);
  std::vector<std::vector<std::string>> rows;
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    std::vector<std::string>& row = rows.emplace_back();
    for (const Op& op : table.rows[r].ops) row.push_back(labels.of(r, op));
  }
  return rows;
}

namespace {

void write_operation(llvm::json::OStream& out, const Op& op, const passes::OrdersTable& table,
                     const dag::Dag& dag) {
  out.object([&] {
    if (op.copy) out.attribute("copy", op.copy);
    if (table.placement.empty()) {
      out.attributeArray("devices", [&] {
        for (std::uint64_t rank = 0; rank < dag.mesh.devices(); ++rank) {
          if (dag.device_sets[op.devices].contains_device(coordinates_of(dag.mesh, rank)))
            out.value(static_cast<std::int64_t>(rank));
        }
      });
    }
    if (op.fetches) out.attribute("fetches", true);
    if (op.group) out.attribute("group", *op.group);
    out.attribute("mb", op.mb);
    if (op.offloads) out.attribute("offloads", true);
    out.attribute("op", llvm::StringRef(pass_name(op.pass)));
    if (op.part) out.attribute("part", *op.part);
    out.attribute("region", op.region);
    if (op.slice) out.attribute("slice", op.slice);
    if (!table.placement.empty()) out.attribute("stage", *op.stage);
  });
}

}  // namespace

std::string orders_json(const passes::OrdersTable& table, const dag::Dag& dag) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  llvm::json::OStream out(stream);
  out.object([&] {
    out.attribute("microbatches", table.microbatches);
    out.attributeArray("orders", [&] {
      for (const Row& row : table.rows) {
        out.array([&] {
          for (const Op& op : row.ops) write_operation(out, op, table, dag);
        });
      }
    });
    if (!table.placement.empty()) {
      out.attributeArray("placement", [&] {
        for (const auto& copy : table.placement) out.value(llvm::json::Array(copy));
      });
    }
    out.attribute("ranks", static_cast<std::int64_t>(table.rows.size()));
    out.attribute("schema", 1);
    if (table.stages) out.attribute("stages", table.stages);
  });
  return text + "\n";
}

namespace {

std::vector<pictures::GridRow> grid_rows(const passes::OrdersTable& table,
                                         const passes::Timeline& columns) {
  const Labels labels(table);
  std::vector<pictures::GridRow> rows;
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    std::map<dag::NodeId, const Op*> ops;
    for (const Op& op : table.rows[r].ops) ops.emplace(op.first, &op);
    pictures::GridRow& row = rows.emplace_back();
    row.name = "rank " + std::to_string(r);
    std::map<std::string_view, std::size_t> regions;  // in the order in which the rank meets them
    const passes::Timeline::Lane& lane = columns.lanes[columns.ranks[r].first_lane];
    for (std::uint32_t entry = lane.first; entry < lane.end; ++entry) {
      const Op& op = *ops.at(columns.operation_of(entry).first);
      const bool joined = entry > lane.first && op.group && columns.group[entry - 1] == *op.group;
      row.cells.push_back({static_cast<std::uint32_t>(columns.start[entry]),
                           static_cast<std::uint32_t>(columns.finish[entry]), labels.marked(r, op),
                           joined});
      const std::size_t region = regions.emplace(op.region, regions.size()).first->second;
      const pictures::ShadeRow& shade = pictures::row_of(pictures::shade_of(op.pass));
      row.colours.push_back(region % 2 == 0 ? shade.terminal : shade.terminal_other);
    }
  }
  return rows;
}

/// The time of each column; nothing if they take different times.
std::optional<double> time_of_column(const passes::Timeline& columns,
                                     const passes::Timeline& times) {
  if (columns.makespan <= 0 || columns.size() != times.size()) return std::nullopt;
  const double column = times.makespan / columns.makespan;
  const auto same = [&](double time, double at) {
    return std::abs(time - at * column) <= 1e-9 * std::max(1.0, times.makespan);
  };
  for (std::uint32_t entry = 0; entry < columns.size(); ++entry) {
    if (!same(times.start[entry], columns.start[entry]) ||
        !same(times.finish[entry], columns.finish[entry]))
      return std::nullopt;
  }
  return column;
}

}  // namespace

std::string grid_text(const passes::OrdersTable& table, const dag::Dag& dag,
                      const pictures::Screen& screen, const SimulationCosts& costs) {
  DiagnosticSink unread(dag.context->locations);
  const passes::Timeline columns = passes::simulate_columns(dag);
  const std::optional<passes::Timeline> times =
      costs.of_plan() ? std::nullopt : passes::simulate_operations(dag, costs.operations, unread);
  const std::optional<double> column = times ? time_of_column(columns, *times) : std::nullopt;
  std::string text = pictures::grid_text(grid_rows(table, columns), screen, column) +
                     Labels(table).legend() + copies_legend(table);
  if (!times || (column && std::abs(*column - 1) < 1e-9)) return text;
  const std::string what = column ? "a column takes " + pictures::time_text(*column, times->unit)
                                  : "columns count operations, which take different times";
  return text + what + ": " + pictures::figures_text(*times) + "\n";
}

}  // namespace piper::views
