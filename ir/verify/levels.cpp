#include "ir/verify/facts.h"

namespace piper::verify {

namespace {

/// Facts that exist only from some level on; for claims and groups see claims.cpp. The passes that
/// reach the level compute them anew and would silently drop earlier ones.
template <typename Of>
struct Attribute {
  const char* what;
  Level first;
  bool (*said)(const Of& of);
};

using dag::Instance;

constexpr Attribute<Node> kOfNodes[] = {
    {"an instance", Level::split, [](const Node& node) { return node.instance != Instance(); }},
    {"its devices", Level::placed, [](const Node& node) { return node.devices.valid(); }},
    {"a layout", Level::placed, [](const Node& node) { return !node.layout.replicated(); }},
    {"a communication", Level::communicating,
     [](const Node& node) { return is_communication(node.kind); }},
    {"a part of the norm", Level::communicating,
     [](const Node& node) {
       return node.kind == NodeKind::sum_squares || node.kind == NodeKind::norm;
     }},
    {"a copy to or from the host", Level::ordered,
     [](const Node& node) { return copies_to_or_from_host(node.kind); }},
    {"a round of work", Level::ordered,
     [](const Node& node) {
       return (is_collective(node.kind) || adds_in_place(node.kind)) && node.chunk.valid();
     }},
    {"a stream", Level::ordered, [](const Node& node) { return node.stream.valid(); }},
};

constexpr Attribute<dag::Bucket> kOfBuckets[] = {
    {"devices", Level::placed, [](const dag::Bucket& bucket) { return !bucket.owners.empty(); }},
    {"how its gradients are made", Level::placed,
     [](const dag::Bucket& bucket) { return !bucket.unreduced.replicated(); }},
    {"what of it is cut", Level::placed,
     [](const dag::Bucket& bucket) { return bucket.sharded() || bucket.gathered_per_use(); }},
    {"how far it is gathered ahead", Level::placed,
     [](const dag::Bucket& bucket) { return bucket.prefetch > 0; }},
    {"that its state lies on the host", Level::ordered,
     [](const dag::Bucket& bucket) { return bucket.state_on_host; }},
};

class Levels {
 public:
  explicit Levels(Facts& facts) : facts_(facts), dag_(facts.dag) {}

  void check() {
    if (dag_.level < Level::split && !dag_.dims.empty())
      early(dag_.dims.front().loc, "the header", "a split dimension", Level::split);
    for (const dag::Bucket& bucket : dag_.buckets)
      one(kOfBuckets, bucket, bucket.loc,
          [&] { return "bucket `" + std::string(facts_.text(bucket.name)) + "`"; });
    for (std::size_t i = 0; i < dag_.nodes.size() && !facts_.enough(); ++i)
      one(kOfNodes, dag_.nodes[i], dag_.nodes[i].loc, [&] { return node(NodeId::at(i)); });
    if (!dag_.streams.empty())
      early(dag_.streams.front().loc, "the header", "a stream", Level::ordered);
    for (const auto& [before, after] : dag_.temporal) {
      if (facts_.enough()) return;
      early(facts_.loc(after), node(after), "what it comes after", Level::ordered);
    }
  }

 private:
  std::string node(NodeId id) const { return "`" + facts_.name(id) + "`"; }

  template <typename Of, std::size_t kCount, typename Name>
  void one(const Attribute<Of> (&attributes)[kCount], const Of& of, LocId loc, Name name) {
    for (const Attribute<Of>& each : attributes) {
      if (dag_.level < each.first && each.said(of))
        return early(loc, name(), each.what, each.first);
    }
  }

  void early(LocId loc, const std::string& who, std::string_view what, Level first) {
    facts_.sink.report(Code::broken_dag, loc,
                       "{} says {} at level `{}`, and that is said from level `{}` on", who, what,
                       dag::level_name(dag_.level), dag::level_name(first));
  }

  Facts& facts_;
  const Dag& dag_;
};

}  // namespace

void check_levels(Facts& facts) {
  if (facts.dag.level < Level::ordered) Levels(facts).check();
}

}  // namespace piper::verify
