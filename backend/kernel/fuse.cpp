#include "backend/kernel/fuse.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <set>

#include "backend/kernel/fuse_items.h"

namespace piper::backend {

using tensor::NodeId;
using tensor::ValueId;

namespace {

// Beyond these a nest gains nothing and costs registers and compile time.
constexpr std::size_t kMaxItems = 96;
constexpr std::size_t kMaxReads = 24;
/// Maximum number of groups searched for a path around a merge: groups farther apart are not
/// merged, so that the time stays linear in the graph.
constexpr std::size_t kMaxBetween = 1024;
/// Between the positions of groups that are opened one after the other.
constexpr std::uint64_t kGap = std::uint64_t{1} << 40;

/// Groups of items; merging keeps the graph of groups acyclic.
class Groups {
 public:
  Groups(const dag::Body& body, const Axes& axes, Fusion& out)
      : body_(body), axes_(axes), out_(out) {}
  void run();

 private:
  struct Group {
    int call = -1;
    std::vector<int> items;
    std::vector<int> deps;         // direct, before merging
    std::uint64_t position = 0;    // ascending along dependences
    int previous = -1, next = -1;  // its neighbours by position
    std::uint64_t search = 0;      // the last search that reached it
    Space rows, columns;
    bool fixed = false;
    bool alive = true;
  };
  struct Form {
    Space space, rows, columns;
    bool fixed = false;
  };

  int find(int group) {
    while (parent_[static_cast<std::size_t>(group)] != group)
      group = parent_[static_cast<std::size_t>(group)];
    return group;
  }
  int open(std::vector<int> deps);
  bool try_merge(int a, int b, bool sharing);
  bool form(const std::vector<int>& items, Form& form) const;
  bool fits(const std::vector<int>& items, const Form& form) const;
  /// The groups between `low` and `high` by position that `high` needs, ascending. Nothing if one
  /// of them needs `low`, or if there are too many.
  std::optional<std::vector<int>> between(int low, int high);
  void move_before(const std::vector<int>& moved, int group);
  void unlink(int group);
  void link_before(int group, int next);
  void place_item(int item);
  void order();

  const dag::Body& body_;
  const Axes& axes_;
  Fusion& out_;
  std::vector<Group> groups_;
  std::vector<int> parent_;
  int last_ = -1;  // by position
  std::uint64_t searches_ = 0;
  std::vector<int> group_of_item_, group_of_call_;
  std::map<ValueId, std::vector<int>> readers_;
};

int Groups::open(std::vector<int> deps) {
  Group group;
  for (int& dep : deps) dep = find(dep);
  group.deps = std::move(deps);
  const int number = static_cast<int>(groups_.size());
  group.previous = last_;
  if (last_ >= 0) {
    group.position = groups_[static_cast<std::size_t>(last_)].position + kGap;
    groups_[static_cast<std::size_t>(last_)].next = number;
  }
  last_ = number;
  groups_.push_back(std::move(group));
  parent_.push_back(number);
  return number;
}

/// The row and column axes that fit all items, if there are any.
bool Groups::form(const std::vector<int>& items, Form& form) const {
  form = {};
  for (int i : items) {
    const Item& item = out_.items[static_cast<std::size_t>(i)];
    if (item.space.size() > form.space.size()) form.space = item.space;
  }
  for (int i : items) {
    const Item& item = out_.items[static_cast<std::size_t>(i)];
    if (!is_subset(item.space, form.space)) return false;
    if (item.columns.empty()) continue;
    if (form.fixed && form.columns != item.columns) return false;
    form.fixed = true;
    form.columns = item.columns;
  }
  for (int i : items) {
    const Item& item = out_.items[static_cast<std::size_t>(i)];
    if (form.fixed || item.space == form.space) continue;
    form.fixed = true;
    form.columns = without(form.space, item.space);
  }
  if (!form.fixed) {
    // A sum over the innermost axes reduces rows; the first one decides.
    for (int i : items) {
      const Item& item = out_.items[static_cast<std::size_t>(i)];
      if (item.kind != Item::Kind::sum) continue;
      const auto operand = axes_.of(body_.graph.operands(body_.graph.node(item.node))[0]);
      Space trailing;
      for (std::size_t d = operand.size();
           d-- > 0 && std::binary_search(item.summed.begin(), item.summed.end(), operand[d]);)
        trailing.push_back(operand[d]);
      if (trailing.empty()) continue;
      std::sort(trailing.begin(), trailing.end());
      Form tried = form;
      tried.fixed = true;
      tried.columns = trailing;
      tried.rows = without(form.space, trailing);
      if (!fits(items, tried)) continue;
      form = tried;
      return true;
    }
  }
  form.rows = without(form.space, form.columns);
  return fits(items, form);
}

bool Groups::fits(const std::vector<int>& items, const Form& form) const {
  std::set<ValueId> reads;
  std::vector<Axis> scatter_order;
  const auto inside = [&](int item) {
    return std::find(items.begin(), items.end(), item) != items.end();
  };
  for (int i : items) {
    const Item& item = out_.items[static_cast<std::size_t>(i)];
    const bool whole = item.space == form.space;
    if (!whole && !(form.fixed && item.space == form.rows)) return false;
    if (!item.columns.empty() && !whole) return false;
    if (item.kind == Item::Kind::sum && whole && form.fixed) {
      const bool row = item.summed == form.columns;
      if (!row && !disjoint(item.summed, form.columns) && !is_subset(form.columns, item.summed))
        return false;
    }
    if (item.kind == Item::Kind::scatter) {
      // Contributions are added in ascending order of index position, so rows run in that order.
      const auto order = axes_.of(body_.graph.operands(body_.graph.node(item.node))[1]);
      if (!scatter_order.empty() &&
          !std::equal(order.begin(), order.end(), scatter_order.begin(), scatter_order.end()))
        return false;
      scatter_order.assign(order.begin(), order.end());
    }
    reads.insert(item.reads.begin(), item.reads.end());
    for (int maker : item.memory) {
      if (inside(maker)) return false;
    }
    for (int maker : item.registers) {
      const Item& made = out_.items[static_cast<std::size_t>(maker)];
      if (made.kind != Item::Kind::sum && made.kind != Item::Kind::scatter) continue;
      const bool in_row = made.kind == Item::Kind::sum && form.fixed && made.space == form.space &&
                          made.summed == form.columns;
      if (!in_row && inside(maker)) return false;
    }
  }
  for (int i : items) reads.erase(out_.items[static_cast<std::size_t>(i)].result);
  return reads.size() <= kMaxReads;
}

std::optional<std::vector<int>> Groups::between(int low, int high) {
  const std::uint64_t begin = groups_[static_cast<std::size_t>(low)].position;
  ++searches_;
  std::vector<int> found{high};
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (int dep : groups_[static_cast<std::size_t>(found[i])].deps) {
      dep = find(dep);
      Group& group = groups_[static_cast<std::size_t>(dep)];
      if (dep == low && i > 0) return std::nullopt;
      if (dep == high || group.position <= begin || group.search == searches_) continue;
      group.search = searches_;
      found.push_back(dep);
      if (found.size() > kMaxBetween) return std::nullopt;
    }
  }
  found.erase(found.begin());
  std::sort(found.begin(), found.end(), [&](int a, int b) {
    return groups_[static_cast<std::size_t>(a)].position <
           groups_[static_cast<std::size_t>(b)].position;
  });
  return found;
}

void Groups::unlink(int number) {
  const Group& group = groups_[static_cast<std::size_t>(number)];
  if (group.previous >= 0) groups_[static_cast<std::size_t>(group.previous)].next = group.next;
  if (group.next >= 0) {
    groups_[static_cast<std::size_t>(group.next)].previous = group.previous;
  } else {
    last_ = group.previous;
  }
}

void Groups::link_before(int number, int next) {
  Group& group = groups_[static_cast<std::size_t>(number)];
  Group& after = groups_[static_cast<std::size_t>(next)];
  group.previous = after.previous;
  group.next = next;
  if (after.previous >= 0) groups_[static_cast<std::size_t>(after.previous)].next = number;
  after.previous = number;
}

/// Puts them into the gap before the group, near its far end because more may follow; if the gap is
/// full, all positions are spread again.
void Groups::move_before(const std::vector<int>& moved, int group) {
  for (const int each : moved) {
    unlink(each);
    link_before(each, group);
    const int previous = groups_[static_cast<std::size_t>(each)].previous;
    const std::uint64_t low =
                            previous < 0 ? 0 : groups_[static_cast<std::size_t>(previous)].position,
                        high = groups_[static_cast<std::size_t>(group)].position;
    groups_[static_cast<std::size_t>(each)].position = low + (high - low) / 8;
    if (high - low >= 8) continue;
    std::uint64_t position = kGap * groups_.size();
    for (int g = last_; g >= 0; g = groups_[static_cast<std::size_t>(g)].previous)
      groups_[static_cast<std::size_t>(g)].position = position -= kGap;
  }
}

bool Groups::try_merge(int a, int b, bool sharing) {
  Group& first = groups_[static_cast<std::size_t>(a)];
  Group& second = groups_[static_cast<std::size_t>(b)];
  if (a == b || first.call >= 0 || second.call >= 0) return false;
  if (first.items.size() + second.items.size() > kMaxItems) return false;
  std::vector<int> items;
  std::merge(first.items.begin(), first.items.end(), second.items.begin(), second.items.end(),
             std::back_inserter(items));
  Form merged, own;
  if (sharing) {  // only useful for nests of one size
    if (!form(first.items, own)) return false;
    const Space space = own.space;
    if (!form(second.items, own) || own.space != space) return false;
  }
  if (!form(items, merged)) return false;
  const bool ascending = first.position < second.position;
  const std::optional<std::vector<int>> needed = ascending ? between(a, b) : between(b, a);
  if (!needed) return false;
  // The merged group takes the lower position, after the groups that the other one needs.
  move_before(*needed, ascending ? a : b);
  if (!ascending) {
    unlink(a);
    link_before(a, b);
    first.position = second.position;
  }
  unlink(b);
  first.items = std::move(items);
  first.deps.insert(first.deps.end(), second.deps.begin(), second.deps.end());
  first.rows = merged.rows;
  first.columns = merged.columns;
  first.fixed = merged.fixed;
  second.alive = false;
  parent_[static_cast<std::size_t>(b)] = a;
  return true;
}

void Groups::place_item(int number) {
  const Item& item = out_.items[static_cast<std::size_t>(number)];
  std::vector<int> deps, candidates;
  for (int maker : item.registers) {
    deps.push_back(group_of_item_[static_cast<std::size_t>(maker)]);
    candidates.push_back(deps.back());
  }
  for (int maker : item.memory) deps.push_back(group_of_item_[static_cast<std::size_t>(maker)]);
  for (int call : item.calls) deps.push_back(group_of_call_[static_cast<std::size_t>(call)]);

  int group = open(std::move(deps));
  groups_.back().items = {number};
  Form alone;
  form({number}, alone);
  groups_.back().rows = alone.rows;
  groups_.back().columns = alone.columns;
  groups_.back().fixed = alone.fixed;
  group_of_item_[static_cast<std::size_t>(number)] = group;
  for (int candidate : candidates) {
    candidate = find(candidate);
    if (try_merge(candidate, group, false)) group = candidate;
  }
  for (ValueId value : item.reads) {
    std::vector<int>& readers = readers_[value];
    constexpr std::size_t kMaxTried = 4;
    if (axes_.of(value).size() >= std::max<std::size_t>(1, item.space.size())) {
      for (std::size_t i = 0; i < std::min(readers.size(), kMaxTried); ++i) {
        const int other = find(readers[readers.size() - 1 - i]);
        if (try_merge(other, group, true)) group = other;
      }
    }
    readers.push_back(group);
  }
}

void Groups::order() {
  // Ready steps in graph order, by their first op.
  std::vector<int> place(groups_.size(), -1), missing(groups_.size(), 0), key(groups_.size(), 0);
  std::vector<std::vector<int>> users(groups_.size());
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    Group& group = groups_[g];
    if (!group.alive) continue;
    std::set<int> deps;
    for (int dep : group.deps) {
      if (find(dep) != static_cast<int>(g)) deps.insert(find(dep));
    }
    missing[g] = static_cast<int>(deps.size());
    for (int dep : deps) users[static_cast<std::size_t>(dep)].push_back(static_cast<int>(g));
    const int last = static_cast<int>(body_.graph.nodes().size());
    const auto position = [&](NodeId node) {
      return node.valid() ? static_cast<int>(node.index()) : last;
    };
    key[g] = group.call >= 0 ? position(out_.calls[static_cast<std::size_t>(group.call)].node)
                             : position(out_.items[static_cast<std::size_t>(group.items[0])].node);
  }
  using Entry = std::pair<int, int>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
  for (std::size_t g = 0; g < groups_.size(); ++g) {
    if (groups_[g].alive && missing[g] == 0) ready.emplace(key[g], static_cast<int>(g));
  }
  while (!ready.empty()) {
    const int g = ready.top().second;
    ready.pop();
    Group& group = groups_[static_cast<std::size_t>(g)];
    out_.steps.push_back({group.call, group.items, group.rows, group.columns, group.fixed});
    for (int user : users[static_cast<std::size_t>(g)]) {
      if (--missing[static_cast<std::size_t>(user)] == 0)
        ready.emplace(key[static_cast<std::size_t>(user)], user);
    }
  }
}

void Groups::run() {
  group_of_item_.assign(out_.items.size(), -1);
  group_of_call_.assign(out_.calls.size(), -1);
  // Items and calls interleave in graph order; copies to ports come last.
  std::size_t item = 0, call = 0;
  while (item < out_.items.size() || call < out_.calls.size()) {
    const bool take_call =
        call < out_.calls.size() && (item == out_.items.size() || !out_.items[item].node.valid() ||
                                     out_.calls[call].node < out_.items[item].node);
    if (!take_call) {
      place_item(static_cast<int>(item++));
      continue;
    }
    std::vector<int> deps;
    const LibraryNode& node = out_.calls[call];
    for (int maker : node.items) deps.push_back(group_of_item_[static_cast<std::size_t>(maker)]);
    for (int maker : node.calls) deps.push_back(group_of_call_[static_cast<std::size_t>(maker)]);
    const int group = open(std::move(deps));
    groups_.back().call = static_cast<int>(call);
    group_of_call_[call++] = group;
  }
  order();
}

}  // namespace

Fusion fuse(const dag::Body& body, const Axes& axes, Target target) {
  Fusion out;
  find_items(body, axes, target, out);
  Groups(body, axes, out).run();
  return out;
}

}  // namespace piper::backend
