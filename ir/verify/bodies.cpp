#include <algorithm>
#include <array>
#include <set>

#include "ir/tensor/graph_text.h"
#include "ir/verify/facts.h"

namespace piper::verify {

namespace {

/// Checks the bodies that chunks name against each other, whether nodes run them yet or not: at a
/// later level any of them may run.
class Bodies {
 public:
  explicit Bodies(Facts& facts)
      : facts_(facts), dag_(facts.dag), user_(dag_.bodies.size(), kNone) {}

  void check() {
    for (std::uint32_t c = 0; c < dag_.chunks.size(); ++c) {
      for_each_body(dag_.chunks[c], [&](Pass, dag::BodyId body) {
        if (user_[body.index()] == kNone) user_[body.index()] = c;
      });
    }
    std::vector<std::array<bool, kPasses>> seen(dag_.bodies.size());
    for (const dag::Chunk& chunk : dag_.chunks) {
      for_each_body(chunk, [&](Pass pass, dag::BodyId body) {
        bool& known = seen[body.index()][static_cast<std::size_t>(pass)];
        if (!std::exchange(known, true) && !facts_.enough())
          one(chunk, pass, dag_.bodies[body.index()]);
      });
      recomputed_forward(chunk);
    }
    if (!facts_.ok()) return;
    find_makers();
    for (std::uint32_t c = 0; c < dag_.chunks.size() && !facts_.enough(); ++c) {
      gradients(dag_.chunks[c]);
      alike(dag_.chunks[c]);
      connect(c);
    }
  }

 private:
  /// A body that outputs a value for others.
  struct Made {
    tensor::ValueId value;
    std::uint32_t chunk;
    Pass pass;
    const dag::Body* body;
    const dag::BodyPort* port;
  };

  /// A lean forward counts as a forward.
  template <typename Visit>
  static void for_each_body(const dag::Chunk& chunk, Visit visit) {
    for (const Pass pass : kAllPasses) {
      if (const dag::BodyId body = chunk.bodies[static_cast<std::size_t>(pass)]; body.valid())
        visit(pass, body);
    }
    if (chunk.recomputed_forward.valid()) visit(Pass::F, chunk.recomputed_forward);
  }

  const dag::Body* body_of(dag::BodyId id) const {
    return id.valid() ? &dag_.bodies[id.index()] : nullptr;
  }
  const dag::Body* body_of(const dag::Chunk& chunk, Pass pass) const {
    return body_of(chunk.bodies[static_cast<std::size_t>(pass)]);
  }
  std::string_view name(const dag::Body& body, const dag::BodyPort& port) const {
    return facts_.text(body.graph.value(port.value).name);
  }
  std::string_view param(tensor::ParamId id) const {
    return facts_.text(dag_.params[id.index()].name);
  }

  template <typename... Args>
  void wrong(Code code, LocId loc, MessagePattern<std::type_identity_t<Args>...> pattern,
             const Args&... args) {
    facts_.sink.report(code, loc, pattern, args...);
  }

  // ---- a body and the pass that it stands for

  void one(const dag::Chunk& chunk, Pass pass, const dag::Body& body) {
    for (const tensor::Node& node : body.graph.nodes()) {
      if (belongs(node.pass, pass)) continue;
      return wrong(
          Code::header_differs, chunk.loc,
          "the header says that chunk `{}` runs `{}` as `{}`, and `%{}` in it is an operation of `{}`",
          facts_.text(chunk.name), facts_.text(body.name), pass_name(pass),
          facts_.text(body.graph.value(body.graph.result(node)).name), pass_name(node.pass));
    }
    for (const dag::BodyPort& port : body.inputs)
      this->port(chunk, pass, body, port, takes(pass, port.kind), "input");
    for (const dag::BodyPort& port : body.outputs)
      this->port(chunk, pass, body, port, gives(pass, port.kind), "output");
  }

  static bool belongs(Pass operation, Pass pass) {
    if (pass == Pass::B) return operation == Pass::BI || operation == Pass::BW;
    return operation == (pass == Pass::R ? Pass::F : pass);
  }
  static bool takes(Pass pass, PortKind kind) {
    switch (kind) {
      case PortKind::data:
      case PortKind::param: return true;
      case PortKind::saved: return pass != Pass::F;
      case PortKind::count: return is_backward(pass);
      case PortKind::grad:
      case PortKind::loss_sum: return false;
    }
    return false;
  }
  static bool gives(Pass pass, PortKind kind) {
    switch (kind) {
      case PortKind::data: return true;
      case PortKind::saved: return pass != Pass::B && pass != Pass::BW;
      case PortKind::grad: return is_backward(pass);
      case PortKind::loss_sum: return pass == Pass::F;
      case PortKind::param:
      case PortKind::count: return false;
    }
    return false;
  }

  void port(const dag::Chunk& chunk, Pass pass, const dag::Body& body, const dag::BodyPort& port,
            bool fits, std::string_view side) {
    if (!fits) {
      return wrong(Code::wrong_edge, chunk.loc,
                   "{} `%{}` of body `{}` is a `{}` port, which no `{}` has", side,
                   name(body, port), facts_.text(body.name), port_kind_name(port.kind),
                   pass_name(pass));
    }
    const bool of_param = port.kind == PortKind::param || port.kind == PortKind::grad,
               of_loss = port.kind == PortKind::loss_sum || port.kind == PortKind::count;
    if (port.param.valid() != of_param || port.loss.valid() != of_loss ||
        (port.input.valid() && (port.kind != PortKind::data || side != "input"))) {
      return wrong(
          Code::wrong_edge, chunk.loc,
          "{} `%{}` of body `{}` is a `{}` port, and says that it is a parameter, loss or input of the model",
          side, name(body, port), facts_.text(body.name), port_kind_name(port.kind));
    }
    const tensor::Type& type = body.graph.type(port.value);
    if (of_param) {
      const tensor::Type& whole = dag_.param_types[port.param.index()];
      const tensor::Type wanted =
          port.kind == PortKind::grad ? tensor::gradient_type(whole) : whole;
      if (port.kind == PortKind::grad
              ? type.dtype != wanted.dtype || type.elements() != wanted.elements()
              : type != wanted)
        differ(chunk, body, port, wanted);
    } else if (port.input.valid() && dag_.level == Level::built &&
               type != dag_.input_types[port.input.index()]) {
      differ(chunk, body, port, dag_.input_types[port.input.index()]);
    }
  }

  void differ(const dag::Chunk& chunk, const dag::Body& body, const dag::BodyPort& port,
              const tensor::Type& wanted) {
    const SymbolTable& symbols = dag_.context->symbols;
    wrong(Code::port_types_differ, chunk.loc,
          "`%{}` of body `{}` is `{}`, and what it carries is `{}`", name(body, port),
          facts_.text(body.name), print(body.graph.type(port.value), symbols),
          print(wanted, symbols));
  }

  /// A lean forward omits the saved values that an `R` recomputes; a forward-only program saves
  /// nothing.
  void recomputed_forward(const dag::Chunk& chunk) {
    if (dag_.forward_only || !chunk.recomputed_forward.valid() ||
        body_of(chunk, Pass::R) != nullptr)
      return;
    wrong(
        Code::wrong_recompute, chunk.loc,
        "chunk `{}` has the recomputed forward `{}`, and no `R` that makes again what it leaves out",
        facts_.text(chunk.name), facts_.text(dag_.bodies[chunk.recomputed_forward.index()].name));
  }

  // ---- gradients

  /// `instances.cpp` checks the parameters of chunks that share bodies, node by node.
  bool named_alike(const dag::Chunk& chunk) const {
    std::uint32_t user = kNone;
    bool same = true;
    for_each_body(chunk, [&](Pass, dag::BodyId body) {
      same = same && (user == kNone || user == user_[body.index()]);
      user = user_[body.index()];
    });
    return same;
  }

  /// Each trained parameter that the forward reads has one gradient in the backward: in the whole
  /// one, and in one of the halves.
  void gradients(const dag::Chunk& chunk) {
    if (dag_.forward_only || !named_alike(chunk)) return;
    std::set<tensor::ParamId> read;
    for_each_body(chunk, [&](Pass pass, dag::BodyId body) {
      for (const dag::BodyPort& port : dag_.bodies[body.index()].inputs) {
        if (pass == Pass::F && port.kind == PortKind::param &&
            !dag_.params[port.param.index()].frozen)
          read.insert(port.param);
      }
    });
    const dag::Body *const whole = body_of(chunk, Pass::B),
                           *const inputs = body_of(chunk, Pass::BI),
                           *const weights = body_of(chunk, Pass::BW);
    if (whole != nullptr || (inputs == nullptr && weights == nullptr))
      gradients(chunk, read, {whole});
    if (inputs != nullptr || weights != nullptr) gradients(chunk, read, {inputs, weights});
  }

  void gradients(const dag::Chunk& chunk, const std::set<tensor::ParamId>& read,
                 std::initializer_list<const dag::Body*> backward) {
    std::set<tensor::ParamId> made;
    for (const dag::Body* body : backward) {
      for (const dag::BodyPort& port : body != nullptr
                                           ? std::span<const dag::BodyPort>(body->outputs)
                                           : std::span<const dag::BodyPort>()) {
        if (port.kind != PortKind::grad) continue;
        if (!made.insert(port.param).second)
          return wrong(Code::wrong_gradient, chunk.loc,
                       "a backward of chunk `{}` makes two gradients of `{}`",
                       facts_.text(chunk.name), param(port.param));
        if (!read.contains(port.param))
          return wrong(
              Code::wrong_gradient, chunk.loc,
              "body `{}` makes a gradient of `{}`, which the forward of chunk `{}` does not read",
              facts_.text(body->name), param(port.param), facts_.text(chunk.name));
      }
    }
    for (const tensor::ParamId each : read) {
      if (!made.contains(each))
        return wrong(Code::wrong_gradient, chunk.loc,
                     "the forward of chunk `{}` reads `{}`, and {} makes no gradient of it",
                     facts_.text(chunk.name), param(each),
                     backward.size() == 1 ? "its backward" : "neither half of its backward");
    }
  }

  // ---- bodies that replace each other

  /// The outputs of a chunk for other chunks do not depend on how its instances run.
  void alike(const dag::Chunk& chunk) {
    const dag::Body *const forward = body_of(chunk, Pass::F),
                           *const whole = body_of(chunk, Pass::B),
                           *const inputs = body_of(chunk, Pass::BI),
                           *const weights = body_of(chunk, Pass::BW);
    if (chunk.recomputed_forward.valid() && forward != nullptr)
      same_results(chunk, {forward}, {body_of(chunk.recomputed_forward)});
    if (whole != nullptr && (inputs != nullptr || weights != nullptr))
      same_results(chunk, {whole}, {inputs, weights});
  }

  using Results = std::vector<std::pair<const dag::Body*, const dag::BodyPort*>>;

  static Results results(std::initializer_list<const dag::Body*> bodies) {
    Results found;
    for (const dag::Body* body : bodies) {
      if (body == nullptr) continue;
      for (const dag::BodyPort& port : body->outputs) {
        if (port.kind == PortKind::data || port.kind == PortKind::loss_sum)
          found.emplace_back(body, &port);
      }
    }
    std::sort(found.begin(), found.end(),
              [](const auto& a, const auto& b) { return key(*a.second) < key(*b.second); });
    return found;
  }
  static std::tuple<PortKind, tensor::ValueId, tensor::LossId> key(const dag::BodyPort& port) {
    return {port.kind, port.kind == PortKind::data ? port.global_value : tensor::ValueId(),
            port.loss};
  }

  void same_results(const dag::Chunk& chunk, std::initializer_list<const dag::Body*> one,
                    std::initializer_list<const dag::Body*> other) {
    const Results a = results(one), b = results(other);
    for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
      const bool first = i < a.size() && (i == b.size() || key(*a[i].second) < key(*b[i].second));
      if (first || i == a.size() || key(*b[i].second) < key(*a[i].second)) {
        const auto& [body, port] = first ? a[i] : b[i];
        return wrong(Code::wrong_edge, chunk.loc,
                     "body `{}` gives `%{}`, and what runs in its place in chunk `{}` does not",
                     facts_.text(body->name), name(*body, *port), facts_.text(chunk.name));
      }
      if (!same(chunk, *a[i].first, *a[i].second, *b[i].first, *b[i].second)) return;
    }
  }

  /// Two ports of one value in one chunk. False after a report.
  bool same(const dag::Chunk& chunk, const dag::Body& body, const dag::BodyPort& port,
            const dag::Body& other, const dag::BodyPort& twin) {
    if (!same_type(chunk, body, port, other, twin)) return false;
    if (body.graph.value(port.value).layout == other.graph.value(twin.value).layout) return true;
    wrong(
        Code::wrong_layout, chunk.loc,
        "`%{}` of body `{}` is held as something else than `%{}` of body `{}`, which is the same value",
        name(body, port), facts_.text(body.name), name(other, twin), facts_.text(other.name));
    return false;
  }

  bool same_type(const dag::Chunk& chunk, const dag::Body& body, const dag::BodyPort& port,
                 const dag::Body& other, const dag::BodyPort& twin) {
    const tensor::Type &a = body.graph.type(port.value), &b = other.graph.type(twin.value);
    if (a == b) return true;
    const SymbolTable& symbols = dag_.context->symbols;
    wrong(Code::port_types_differ, chunk.loc,
          "`%{}` of body `{}` is `{}`, and `%{}` of body `{}` is `{}`", name(body, port),
          facts_.text(body.name), print(a, symbols), name(other, twin), facts_.text(other.name),
          print(b, symbols));
    return false;
  }

  // ---- values from one body to another

  void find_makers() {
    for (std::uint32_t c = 0; c < dag_.chunks.size(); ++c) {
      for_each_body(dag_.chunks[c], [&](Pass pass, dag::BodyId id) {
        const dag::Body& body = dag_.bodies[id.index()];
        for (const dag::BodyPort& port : body.outputs) {
          if (port.kind == PortKind::data)
            makers_.push_back({port.global_value, c, pass, &body, &port});
        }
      });
    }
    std::stable_sort(makers_.begin(), makers_.end(),
                     [](const Made& a, const Made& b) { return a.value < b.value; });
  }

  /// Saved values of a chunk come from its own earlier passes, all other values from other chunks.
  /// Ports of a shared body name the values of one of its chunks.
  void connect(std::uint32_t c) {
    const dag::Chunk& chunk = dag_.chunks[c];
    bool any_shared = false;
    for_each_body(chunk, [&](Pass, dag::BodyId body) {
      any_shared = any_shared || facts_.shared_body[body.index()];
    });
    if (any_shared) return;
    const dag::Body *const forward = body_of(chunk, Pass::F),
                           *const again = body_of(chunk, Pass::R),
                           *const recomputed_forward = body_of(chunk.recomputed_forward),
                           *const inputs = body_of(chunk, Pass::BI);
    // The ways in which a forward and an `R` may leave values to a backward.
    std::vector<std::vector<const dag::Body*>> ways;
    if (again == nullptr || recomputed_forward != nullptr) ways.push_back({forward});
    if (again != nullptr) {
      const dag::Body* const kept = recomputed_forward != nullptr ? recomputed_forward : forward;
      ways.push_back({kept, again});
      connect(chunk, c, *again, Pass::R, {kept});
    }
    if (forward != nullptr) connect(chunk, c, *forward, Pass::F, {});
    if (recomputed_forward != nullptr) connect(chunk, c, *recomputed_forward, Pass::F, {});
    for (std::vector<const dag::Body*>& way : ways) {
      for (const Pass pass : {Pass::B, Pass::BI, Pass::BW}) {
        if (pass == Pass::BW && inputs != nullptr) way.push_back(inputs);
        if (const dag::Body* const body = body_of(chunk, pass)) connect(chunk, c, *body, pass, way);
      }
    }
  }

  void connect(const dag::Chunk& chunk, std::uint32_t c, const dag::Body& body, Pass pass,
               const std::vector<const dag::Body*>& earlier) {
    std::vector<Made> kept;  // values that earlier passes made or received
    for (const dag::Body* from : earlier) {
      if (from == nullptr) continue;
      for (const dag::BodyPort& port : from->outputs) {
        if (is_value(port)) kept.push_back({port.global_value, c, pass, from, &port});
      }
      for (const dag::BodyPort& port : from->inputs) {
        if (is_value(port) && !port.input.valid())
          kept.push_back({port.global_value, c, pass, from, &port});
      }
    }
    const auto before = [](const Made& a, const Made& b) { return a.value < b.value; };
    std::stable_sort(kept.begin(), kept.end(), before);
    for (const dag::BodyPort& port : body.inputs) {
      if (!is_value(port) || port.input.valid() || facts_.enough()) continue;
      const Made wanted{port.global_value, c, pass, &body, &port};
      const auto own = std::lower_bound(kept.begin(), kept.end(), wanted, before);
      const bool here = own != kept.end() && own->value == port.global_value;
      if (here != (port.kind == PortKind::saved)) {
        return wrong(
            Code::wrong_edge, chunk.loc,
            "input `%{}` of body `{}` is a `{}` port, and {} of its chunk made or received the value",
            name(body, port), facts_.text(body.name), port_kind_name(port.kind),
            here ? "an earlier pass" : "no earlier pass");
      }
      if (here) {
        if (!same(chunk, body, port, *own->body, *own->port)) return;
        continue;
      }
      const auto [first, last] = std::equal_range(makers_.begin(), makers_.end(), wanted, before);
      bool found = false;
      for (auto maker = first; maker != last; ++maker) {
        if (maker->chunk == c || (pass == Pass::F && maker->pass != Pass::F)) continue;
        found = true;
        if (dag_.level == Level::built && !same_type(chunk, body, port, *maker->body, *maker->port))
          return;
      }
      if (!found && std::find(facts_.shared_body.begin(), facts_.shared_body.end(), true) ==
                        facts_.shared_body.end()) {
        return wrong(Code::wrong_edge, chunk.loc,
                     "input `%{}` of body `{}` is a value that no other chunk gives",
                     name(body, port), facts_.text(body.name));
      }
    }
  }

  static bool is_value(const dag::BodyPort& port) {
    return port.kind == PortKind::data || port.kind == PortKind::saved;
  }

  Facts& facts_;
  const Dag& dag_;
  std::vector<std::uint32_t> user_;  // per body: the first chunk that names it
  std::vector<Made> makers_;         // outputs that other chunks may read, by value
};

}  // namespace

void check_bodies(Facts& facts) { Bodies(facts).check(); }

}  // namespace piper::verify
