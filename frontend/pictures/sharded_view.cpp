#include "frontend/pictures/sharded_view.h"

#include <cstdio>
#include <vector>

#include "frontend/pictures/text_table.h"
#include "ir/byte_text.h"
#include "passes/plan/sharded_table.h"

namespace piper::pictures {
namespace {

/// `zero: 3 over dp`, `zero: 0`, `zero: 3 over dp, frozen`, `frozen`.
template <typename LayoutKind>
std::string cut_text(const dag::Dag& dag, const LayoutKind& share) {
  if (share.frozen && share.flat == 0) return "frozen";
  std::string text = "zero: " + std::to_string(share.zero), axes;
  for (std::size_t a = 0; a < dag.mesh.axes.size(); ++a) {
    if ((share.flat >> a & 1) != 0)
      axes +=
          (axes.empty() ? " over " : ", ") + std::string(dag.context->text(dag.mesh.axes[a].name));
  }
  return text + axes + (share.frozen ? ", frozen" : "");
}

/// `3`, `2.5`.
std::string times(double count) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", count);
  return text;
}

}  // namespace

std::string sharded_state_text(const dag::Dag& dag) {
  const std::vector<passes::ShardedState> shares = passes::sharded_state(dag);
  if (shares.empty()) return "";
  std::vector<std::vector<std::string>> table = {{"role", "cut", "k", "psi", "parameters",
                                                  "planned", "gradients", "planned", "optimizer",
                                                  "planned"}};
  for (const passes::ShardedState& share : shares) {
    std::vector<std::string>& line = table.emplace_back();
    line = {share.role, cut_text(dag, share), std::to_string(share.members),
            bytes_text(share.parameters)};
    for (std::size_t part = 0; part < share.formula.size(); ++part) {
      line.push_back(bytes_text(share.formula[part]));
      line.push_back(bytes_text(share.planned[part]));
    }
  }
  return "\nstate by formula, psi bytes of parameters or a k-th of them; planned state has padding\n" +
         text_table(table, {true, true});
}

std::string sharded_traffic_text(const dag::Dag& dag) {
  const std::vector<passes::ShardedTraffic> shares = passes::sharded_traffic(dag);
  if (shares.empty()) return "";
  std::vector<std::vector<std::string>> table = {
      {"cut", "k", "rings", "psi", "reduced", "sums", "planned", "gathered", "gathers", "planned"}};
  for (const passes::ShardedTraffic& share : shares) {
    table.push_back({cut_text(dag, share),
                     std::to_string(dag.extent(share.flat != 0 ? share.flat : share.reduce)),
                     std::to_string(share.rings), bytes_text(share.parameters),
                     times(share.sums) + " x", bytes_text(share.formula[0]),
                     bytes_text(share.planned[0]), times(share.gathers) + " x",
                     bytes_text(share.formula[1]), bytes_text(share.planned[1])});
  }
  return "\nbuckets by formula: a ring of k sends psi (k - 1) to scatter a sum or to gather, twice that to add; sums of blocks over other axes are added; planned bytes have padding\n" +
         text_table(table, {true});
}

}  // namespace piper::pictures
