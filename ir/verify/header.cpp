#include <algorithm>
#include <cmath>
#include <limits>

#include "ir/dag/sample_weight.h"
#include "ir/verify/facts.h"

namespace piper::verify {

namespace {

using tensor::Op;

/// Checks that a run can follow the settings of the train, and that elements, samples and masks of
/// the header are those of the bodies.
class Header {
 public:
  explicit Header(Facts& facts) : facts_(facts), dag_(facts.dag), settings_(dag_.settings) {}

  void check() {
    if (!settings_.train.empty()) complete();  // a schedule alone has no settings
    if (settings_.optimizer) optimizer(*settings_.optimizer);
    for (const auto& [name, data] :
         {std::pair{"data", &settings_.data}, {"held_out", &settings_.held_out}}) {
      if (*data) this->data(name, **data);
    }
    if (settings_.data && settings_.held_out &&
        settings_.data->batch != settings_.held_out->batch) {
      wrong(settings_.held_out->loc,
            "`held_out` has a batch of `{}`, and `data` one of `{}`: the program is the same",
            settings_.held_out->batch, settings_.data->batch);
    }
    if (settings_.held_out && settings_.held_out->sampling != directive::Sampling::epoch)
      wrong(settings_.held_out->loc,
            "`held_out` has an order of samples, and it is read once, in order");
    intervals();
    if (settings_.init && settings_.init->path.empty())
      wrong(settings_.init->loc, "`init` names no file of weights");
    average_and_limit();
    starts();
    factors();
    elements();
    masks();
    weights();
  }

 private:
  template <typename... Args>
  void wrong(LocId loc, MessagePattern<std::type_identity_t<Args>...> pattern,
             const Args&... args) {
    facts_.sink.report(Code::wrong_setting, loc.valid() ? loc : settings_.loc, pattern, args...);
  }
  std::string show(const tensor::Type& type) const { return print(type, dag_.context->symbols); }

  // ---- settings
  // ----------------------------------------------------------------------------------------------------------

  void complete() {
    if (settings_.steps_given && settings_.steps < 1)
      wrong({}, "train `{}` runs no step: `steps` is at least 1", settings_.train);
    const bool reads = !dag_.inputs.empty();
    if (!dag_.forward_only && !settings_.optimizer)
      wrong({}, "train `{}` has no `optim`", settings_.train);
    if (reads && !dag_.forward_only && !settings_.data)
      wrong({}, "train `{}` reads inputs but has no `data`", settings_.train);
    if (reads && dag_.forward_only && !settings_.held_out && !settings_.data)
      wrong({}, "train `{}` reads inputs but has no `held_out`", settings_.train);
  }

  /// `checkpoint` and `evaluate`.
  void intervals() {
    for (const auto& [name, every] :
         {std::pair{"checkpoint", &settings_.checkpoint}, {"evaluate", &settings_.evaluate}}) {
      if (*every && (*every)->steps < 1)
        wrong((*every)->loc, "`{}` runs every `{}` steps; it must be at least 1", name,
              (*every)->steps);
    }
    if (settings_.checkpoint && settings_.checkpoint->best && !settings_.held_out)
      wrong(settings_.checkpoint->loc, "`checkpoint` keeps the best and has no `held_out`");
    if (!settings_.evaluate) return;
    if (settings_.evaluate->best)
      wrong(settings_.evaluate->loc, "`evaluate` keeps the best checkpoint and writes none");
    if (!settings_.held_out)
      wrong(settings_.evaluate->loc, "`evaluate` has no `held_out` to run on");
    if (settings_.evaluate->keep > 0)
      wrong(settings_.evaluate->loc, "`evaluate` keeps `{}` checkpoints and writes none",
            settings_.evaluate->keep);
  }

  void average_and_limit() {
    const double largest = std::numeric_limits<double>::max();
    if (settings_.ema && !(*settings_.ema >= 0 && *settings_.ema < 1))
      wrong(settings_.ema_loc, "`ema` is `{}`; it must be at least 0 and below 1", *settings_.ema);
    if (settings_.skip_above && !(*settings_.skip_above > 0 && *settings_.skip_above <= largest))
      wrong(settings_.skip_loc, "the norm of `skip_step` is `{}`; it must be positive and finite",
            *settings_.skip_above);
  }

  /// Factors of learning rates and weight decays.
  void factors() {
    const double largest = std::numeric_limits<double>::max();
    for (const tensor::Param& param : dag_.params) {
      for (const auto& [word, factor] : {std::pair{"rate", param.rate}, {"decay", param.decay}}) {
        if (!(factor >= 0 && factor <= largest)) {
          wrong(param.loc,
                "parameter `{}` has a factor `{}` of `{}`; it must be at least 0 and finite",
                facts_.text(param.name), word, factor);
        } else if (param.frozen && factor != 1) {
          wrong(param.loc, "parameter `{}` is frozen and has a factor `{}`",
                facts_.text(param.name), word);
        }
      }
    }
  }

  /// Initial values of parameters.
  void starts() {
    for (const tensor::Param& param : dag_.params) {
      // Initializations with a fixed value store that value as their number.
      const bool zeros = param.init.kind == tensor::Init::Kind::zeros,
                 ones = param.init.kind == tensor::Init::Kind::ones;
      if ((zeros || ones) && param.init.scale != (ones ? 1 : 0)) {
        wrong(param.loc, "parameter `{}` begins with `{}` that are `{}`", facts_.text(param.name),
              ones ? "ones" : "zeros", param.init.scale);
        continue;
      }
      if (std::isfinite(param.init.scale) &&
          (param.init.scale >= 0 || param.init.kind == tensor::Init::Kind::constant))
        continue;
      wrong(
          param.loc,
          "parameter `{}` begins with `{}`; that must be finite, and of `normal` and `uniform` at least 0",
          facts_.text(param.name), param.init.scale);
    }
  }

  /// Whether `value` lies in [low, high]; NaN lies nowhere.
  void within(const directive::Optimizer& optimizer, const char* name, double value, double low,
              double high, const char* rule) {
    if (!(value >= low && value <= high))
      wrong(optimizer.loc, "`{}` of the optimizer is `{}`; it must be {}", name, value, rule);
  }

  void optimizer(const directive::Optimizer& optimizer) {
    const double largest = std::numeric_limits<double>::max(), below_one = std::nextafter(1.0, 0.0);
    const directive::LearningRate& rate = optimizer.lr;
    within(optimizer, "lr", rate.base, 0, largest, "at least 0 and finite");
    if (rate.kind == directive::LearningRate::Kind::constant) {
      within(optimizer, "floor", rate.floor, 0, 0, "0 where the rate is constant");
    } else {
      within(optimizer, "floor", rate.floor, 0, rate.base, "between 0 and the base");
    }
    within(optimizer, "momentum", optimizer.momentum, 0, below_one, "at least 0 and below 1");
    within(optimizer, "beta1", optimizer.beta1, 0, below_one, "at least 0 and below 1");
    within(optimizer, "beta2", optimizer.beta2, 0, below_one, "at least 0 and below 1");
    within(optimizer, "eps", optimizer.eps, 0, largest, "at least 0 and finite");
    within(optimizer, "weight_decay", optimizer.weight_decay, 0, largest, "at least 0 and finite");
    if (optimizer.clip)
      within(optimizer, "clip", *optimizer.clip, std::numeric_limits<double>::min(), largest,
             "positive and finite");
  }

  /// Every extent is that of the inputs' dimensions of that name, and some input has the dimension.
  void data(const char* which, const directive::Data& data) {
    for (const auto& [name, extent] : data.extents) {
      bool found = false;
      for (std::size_t i = 0; i < dag_.inputs.size(); ++i) {
        for (const tensor::Dim& dim : dag_.input_types[i].dims) {
          if (dim.name != name) continue;
          found = true;
          if (dim.extent == extent) continue;
          wrong(data.loc, "`{}` says that `{}` is `{}`, and the input `{}` is `{}`", which,
                facts_.text(name), extent, facts_.text(dag_.inputs[i].name),
                show(dag_.input_types[i]));
        }
      }
      if (!found)
        wrong(data.loc, "`{}` says how large `{}` is, and no input has such a dimension", which,
              facts_.text(name));
    }
    for (std::size_t i = 0; i < dag_.inputs.size() && data.gives_windows(); ++i) {
      if (is_weight(tensor::InputId::at(i))) continue;
      const std::string_view name = facts_.text(dag_.inputs[i].name);
      if (name != "tokens" && name != "targets")
        wrong(data.loc, "`{}` reads text, which gives `tokens` and `targets`, and no `{}`", which,
              name);
    }
    for (std::size_t i = 0; i < dag_.inputs.size() && data.kind == directive::Data::Kind::synthetic;
         ++i) {
      if (dag_.input_types[i].dtype != tensor::DType::i64 || data.classes > 0) continue;
      wrong(data.loc, "`{}` draws the integers of `{}` from no classes", which,
            facts_.text(dag_.inputs[i].name));
    }
  }

  // ---- results of the bodies
  // -------------------------------------------------------------------------------------------

  /// Parameters, floating inputs and sums of losses have the element type of the train.
  void elements() {
    const auto differs = [&](tensor::DType dtype) {
      return is_floating(dtype) && dtype != settings_.dtype;
    };
    const auto sum_differs = [&](tensor::DType dtype) {
      return is_floating(dtype) && dtype != tensor::wide(settings_.dtype);
    };
    const auto report_type = [&](LocId loc, std::string_view what, Symbol name,
                                 const tensor::Type& type) {
      facts_.sink.report(Code::header_differs, loc,
                         "the train computes in `{}`, and {} `{}` is `{}`",
                         tensor::dtype_name(settings_.dtype), what, facts_.text(name), show(type));
    };
    for (std::size_t p = 0; p < dag_.params.size() && !facts_.enough(); ++p) {
      if (differs(dag_.param_types[p].dtype))
        report_type(dag_.params[p].loc, "parameter", dag_.params[p].name, dag_.param_types[p]);
    }
    for (std::size_t i = 0; i < dag_.inputs.size() && !facts_.enough(); ++i) {
      const bool wrong_type = is_weight(tensor::InputId::at(i))
                                  ? sum_differs(dag_.input_types[i].dtype)
                                  : differs(dag_.input_types[i].dtype);
      if (wrong_type)
        report_type(dag_.inputs[i].loc, "input", dag_.inputs[i].name, dag_.input_types[i]);
    }
    for (const dag::Body& body : dag_.bodies) {
      for (const dag::BodyPort& port : body.outputs) {
        if (facts_.enough()) return;
        if (port.kind != PortKind::loss_sum || !sum_differs(body.graph.type(port.value).dtype))
          continue;
        report_type(dag_.losses[port.loss.index()].loc, "the sum of loss",
                    dag_.losses[port.loss.index()].name, body.graph.type(port.value));
      }
    }
  }

  /// The mask of a loss sum, found in its body.
  struct Masked {
    const tensor::Node* by = nullptr;  // the `cross_entropy` that ignores a target
    bool whole = true;                 // no operation of it is in another body
  };

  static tensor::NodeId maker(const tensor::Graph& graph, tensor::ValueId value) {
    return graph.value(value).def;
  }

  /// Walks back from a sum through operations that keep ignored elements 0.
  void find_mask(const tensor::Graph& graph, tensor::ValueId value, Masked& found) const {
    const tensor::NodeId def = maker(graph, value);
    if (!def.valid()) {
      found.whole = found.whole && graph.type(value).dims.empty();
      return;
    }
    const tensor::Node& node = graph.node(def);
    switch (node.op) {
      case Op::cross_entropy:
        if (node.attrs.ignore) found.by = &node;
        return;
      case Op::select_ge: return find_mask(graph, graph.operands(node)[2], found);
      case Op::mul: find_mask(graph, graph.operands(node)[1], found); [[fallthrough]];
      case Op::sum:
      case Op::div:
      case Op::scale:
      case Op::neg:
      case Op::cast:
      case Op::rename:
      case Op::broadcast:
      case Op::permute: return find_mask(graph, graph.operands(node)[0], found);
      default: return;
    }
  }

  /// The target that a loss ignores is the one that its bodies ignore.
  void masks() {
    std::vector<bool> reported(dag_.losses.size(), false);
    for (std::size_t b = 0; b < dag_.bodies.size(); ++b) {
      const dag::Body& body = dag_.bodies[b];
      if (body.graph.nodes().empty()) continue;  // a signature only
      for (const dag::BodyPort& port : body.outputs) {
        if (port.kind != PortKind::loss_sum || reported[port.loss.index()]) continue;
        Masked found;
        find_mask(body.graph, port.value, found);
        reported[port.loss.index()] =
            !agrees(body, dag_.losses[port.loss.index()], found, facts_.shared_body[b]);
      }
    }
  }

  bool is_weight(tensor::InputId input) const {
    return input.valid() && input == dag::sample_weight(dag_);
  }

  /// If samples have weights, each loss sum uses them.
  void weights() {
    const tensor::InputId weight = dag::sample_weight(dag_);
    if (!weight.valid()) return;
    const tensor::Type& type = dag_.input_types[weight.index()];
    if (type.dims.size() != 1 || !type.dims.front().sampled) {
      facts_.sink.report(Code::header_differs, dag_.inputs[weight.index()].loc,
                         "the header has the input `{}` of type `{}`, and a sample has one weight",
                         dag::kSampleWeight, print(type, dag_.context->symbols));
      return;
    }
    for (const dag::Body& body : dag_.bodies) {
      if (facts_.enough()) return;
      const bool weighed =
          std::any_of(body.inputs.begin(), body.inputs.end(),
                      [&](const dag::BodyPort& port) { return is_weight(port.input); });
      const auto sum =
          std::find_if(body.outputs.begin(), body.outputs.end(),
                       [](const dag::BodyPort& port) { return port.kind == PortKind::loss_sum; });
      if (weighed || sum == body.outputs.end()) continue;
      const tensor::Loss& loss = dag_.losses[sum->loss.index()];
      facts_.sink.report(Code::header_differs, loss.loc,
                         "the header has the input `{}`, and body `{}` sums loss `{}` without it",
                         dag::kSampleWeight, facts_.text(body.name), facts_.text(loss.name));
    }
  }

  bool agrees(const dag::Body& body, const tensor::Loss& loss, const Masked& found, bool shared) {
    const auto differ = [&](std::string_view header, std::string_view text) {
      facts_.sink.report(Code::header_differs, loss.loc,
                         "the header says that loss `{}` ignores {}, and body `{}` ignores {}",
                         facts_.text(loss.name), header, facts_.text(body.name), text);
      return false;
    };
    const auto target = [&](std::int32_t number, std::string_view of) {
      return "target `" + std::to_string(number) + "` of `" + std::string(of) + "`";
    };
    if (found.by == nullptr) {
      if (!loss.mask || !found.whole) return true;
      return differ(
          target(loss.mask->ignore, facts_.text(dag_.inputs[loss.mask->targets.index()].name)),
          "none");
    }
    tensor::ValueId targets = body.graph.operands(*found.by)[1];
    // Integers are only renamed.
    while (maker(body.graph, targets).valid())
      targets = body.graph.operands(body.graph.node(maker(body.graph, targets)))[0];
    tensor::InputId input;
    for (const dag::BodyPort& port : body.inputs) {
      if (port.value == targets) input = port.input;
    }
    const std::string body_target =
        target(*found.by->attrs.ignore,
               input.valid() ? facts_.text(dag_.inputs[input.index()].name) : "a value of its own");
    if (!loss.mask) return differ("none", body_target);
    // Ports of a shared body are named by the inputs of one of its chunks.
    if (*found.by->attrs.ignore == loss.mask->ignore && (shared || input == loss.mask->targets))
      return true;
    return differ(
        target(loss.mask->ignore, facts_.text(dag_.inputs[loss.mask->targets.index()].name)),
        body_target);
  }

  Facts& facts_;
  const Dag& dag_;
  const directive::Settings& settings_;
};

}  // namespace

void check_header(Facts& facts) { Header(facts).check(); }

}  // namespace piper::verify
