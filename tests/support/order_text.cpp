#include "tests/support/order_text.h"

#include <algorithm>

namespace piper::test {

namespace {

constexpr const char* kVariables[] = {"r", "d", "e"};

}  // namespace

/// One cursor's view of a rank: its list, and the queue of weight gradients that it shares with
/// all others.
struct OrderPrinter::Cursors {
  std::map<std::string, std::string> of_region;  // by region, or by "" for all: the cursor's name
  bool one = false;
  const std::string* find(const DrawnOperation& operation) const {
    const auto found = of_region.find(one ? "" : operation.region);
    return found == of_region.end() ? nullptr : &found->second;
  }
};

std::string OrderPrinter::order(const std::vector<RankClaim>& claims,
                                const std::vector<std::string>& bodies) {
  const bool all = std::all_of(claims.begin(), claims.end(),
                               [](const RankClaim& claim) { return claim.claimed; });
  return "    order {\n" +
         (all && random_.chance(0.8) ? one_rank_text(claims, bodies) : ranks_text(claims, bodies)) +
         "    }\n";
}

std::string OrderPrinter::axis_name(std::size_t axis) const {
  return std::string(context_.text(mesh_.axes[axis].name));
}

std::string OrderPrinter::one_rank_text(const std::vector<RankClaim>& claims,
                                        const std::vector<std::string>& bodies) const {
  std::string text = "        rank ";
  for (std::size_t i = 0; i < axes_.size(); ++i)
    text += (i == 0 ? "" : ", ") + std::string(kVariables[i]) + " in " + axis_name(axes_[i]);
  text += " {\n";
  for (std::size_t i = 0; i < claims.size(); ++i) {
    std::string condition;
    for (std::size_t k = 0; k < axes_.size(); ++k)
      condition += (k == 0 ? "" : " and ") + std::string(kVariables[k]) +
                   " == " + std::to_string(claims[i].at[k]);
    text += i == 0                  ? "            if " + condition + " {\n"
            : i + 1 < claims.size() ? " else if " + condition + " {\n"
                                    : " else {\n";
    text += bodies[i] + "            }";
  }
  return text + "\n        }\n";
}

std::string OrderPrinter::ranks_text(const std::vector<RankClaim>& claims,
                                     const std::vector<std::string>& bodies) {
  std::vector<std::string> ranks;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    if (!claims[i].claimed) continue;
    std::string text = "        rank ";
    for (std::size_t k = 0; k < axes_.size(); ++k) {
      const std::uint32_t at = claims[i].at[k];
      text += (k == 0 ? "" : ", ") + std::string(kVariables[k]) + " in " + axis_name(axes_[k]);
      if (mesh_.axes[axes_[k]].size > 1 || random_.chance(0.5))
        text += "[" + std::to_string(at) + ".." + std::to_string(at + 1) + "]";
    }
    ranks.push_back(text + " {\n" + bodies[i] + "        }\n");
  }
  random_.shuffle(ranks);
  std::string text;
  for (const std::string& rank : ranks) text += rank;
  return text;
}

std::string OrderPrinter::body(const std::vector<DrawnStep>& steps) {
  const std::string indent(16, ' ');
  const std::uint64_t form = random_.below(5);
  std::string text;
  std::vector<std::string> lines;
  Cursors cursors;
  if (form >= 3) text = cursor_text(steps, cursors, indent);
  Pending queue;
  for (const DrawnStep& step : steps) {
    std::string line;
    for (const std::vector<DrawnOperation>& member : step) {
      std::string inner;
      for (const DrawnOperation& operation : member)
        inner += (inner.empty() ? "" : "; ") + operation_text(operation, cursors, queue);
      line += (line.empty() ? "" : " & ") + (member.size() > 1 ? "{ " + inner + " }" : inner);
    }
    lines.push_back(line);
  }
  if (form == 2) {  // slots: where a line stands in the text means nothing
    std::uint64_t slot = random_.below(3);
    for (std::string& line : lines) {
      line = "at " + std::to_string(slot) + ": " + line;
      slot += 1 + random_.below(3);
    }
    random_.shuffle(lines);
  }
  for (std::size_t i = 0; i < lines.size();) {
    // The shortest repetition of the next operations.
    std::size_t period = 1, times = 1;
    for (std::size_t length = 1; length <= 3 && times == 1; ++length) {
      std::size_t next = 1;
      while (i + (next + 1) * length <= lines.size() &&
             std::equal(lines.begin() + static_cast<std::ptrdiff_t>(i),
                        lines.begin() + static_cast<std::ptrdiff_t>(i + length),
                        lines.begin() + static_cast<std::ptrdiff_t>(i + next * length))) {
        ++next;
      }
      if (next > 1) period = length, times = next;
    }
    std::string block;
    for (std::size_t k = 0; k < period; ++k) block += (k == 0 ? "" : "; ") + lines[i + k];
    text += indent +
            (times > 1 ? "repeat " + std::to_string(times) + " { " + block + " }" : block) + "\n";
    i += period * times;
  }
  return text;
}

std::string OrderPrinter::cursor_text(const std::vector<DrawnStep>& steps, Cursors& cursors,
                                      const std::string& indent) {
  cursors.one = random_.chance(0.4);
  struct Lists {
    std::vector<std::string> forward, backward;
  };
  std::map<std::string, Lists> lists;
  for (const DrawnStep& step : steps) {
    for (const std::vector<DrawnOperation>& member : step) {
      for (const DrawnOperation& operation : member) {
        if (operation.named) continue;
        Lists& of = lists[cursors.one ? "" : operation.region];
        if (operation.pass == Pass::F) of.forward.push_back(operation.work);
        if (operation.pass == Pass::B || operation.pass == Pass::BI)
          of.backward.push_back(operation.work);
      }
    }
  }
  std::string text;
  for (const auto& [region, of] : lists) {
    std::vector<std::string> f = of.forward, g = of.backward;
    std::sort(f.begin(), f.end());
    std::sort(g.begin(), g.end());
    if (f != g || f.front() == "model") continue;
    const std::string name = "c" + std::to_string(cursors.of_region.size());
    cursors.of_region[region] = name;
    const auto list = [](const std::vector<std::string>& works) {
      std::string joined;
      for (const std::string& work : works) joined += (joined.empty() ? "" : ", ") + work;
      return "[" + joined + "]";
    };
    text += indent + "cursor " + name + " = " + list(of.forward) +
            (of.forward == of.backward ? "" : " backward " + list(of.backward)) + "\n";
  }
  return text;
}

std::string OrderPrinter::operation_text(const DrawnOperation& operation, const Cursors& cursors,
                                         Pending& queue) {
  if (operation.named || operation.pass == Pass::R)
    return std::string(pass_name(operation.pass)) + " " + operation.work;
  const std::string* cursor = cursors.find(operation);
  const std::string pass = std::string(pass_name(operation.pass)) + " ";
  if (operation.pass == Pass::BI) queue.emplace_back(operation.work, cursor ? *cursor : "");
  if (operation.pass != Pass::BW) return pass + (cursor ? *cursor : operation.work);
  const auto own = std::find_if(queue.begin(), queue.end(),
                                [&](const auto& each) { return each.first == operation.work; });
  const bool oldest = own == queue.begin();
  const bool oldest_of_cursor = cursor && std::none_of(queue.begin(), own, [&](const auto& each) {
                                  return each.second == *cursor;
                                });
  queue.erase(own);
  if (oldest && cursor && random_.chance(0.5)) return "BW";
  return pass + (oldest_of_cursor ? *cursor : operation.work);
}

}  // namespace piper::test
