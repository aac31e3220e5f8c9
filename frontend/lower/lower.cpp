#include "frontend/lower/lower.h"

#include <algorithm>
#include <memory>
#include <set>

#include "frontend/lower/model/chain_model.h"
#include "frontend/lower/schedule/machine_builder.h"
#include "frontend/lower/model/model_builder.h"
#include "frontend/lower/names/resolve_names.h"
#include "frontend/lower/override_values.h"
#include "frontend/lower/schedule/schedule_builder.h"
#include "ir/diagnostics/counted.h"
#include "ir/diagnostics/suggestion.h"
#include "ir/tensor/index_bounds.h"

namespace piper::lower {
namespace {

/// A mesh of more devices is a typing mistake.
constexpr std::uint64_t kMaxDevices = 1u << 24;

class Lowering {
 public:
  Lowering(const sema::Program& program, std::span<const Override> overrides, Context& context,
           DiagnosticSink& sink, Observations* observations = nullptr)
      : program_(program),
        overrides_(overrides),
        sink_(sink),
        evaluator_(program, context, sink),
        lowered_{.model = tensor::Graph(context)},
        schedule_(evaluator_, lowered_.strategy),
        used_(overrides.size(), false) {
    evaluator_.mesh = &lowered_.strategy.mesh;
    evaluator_.device_sets = &lowered_.strategy.device_sets;
    evaluator_.schedule = &schedule_;
    evaluator_.observations = observations;
    evaluator_.observed_model = &lowered_.model;
  }

  std::optional<Lowered> train(const sema::Train& train, std::optional<tensor::DType> dtype) {
    evaluate_params();
    refuse_unused_overrides();
    const std::vector<Value> axes = make_mesh(train.mesh);
    directive::Settings& settings = lowered_.strategy.settings;
    settings.train = std::string(train.name());
    Frame frame;
    frame.slots.resize(train.frame_size);
    settings.loc = evaluator_.here(train.syntax->name.range, frame);
    std::copy(axes.begin(), axes.end(), frame.slots.begin());
    evaluator_.skips_statements = true;
    evaluator_.execute(*train.syntax->body, frame);
    schedule_.finish();
    require_settings(train, frame);
    require_held_out();
    warn_of_long_warmup();
    const tensor::DType own_dtype = settings.dtype;
    if (dtype) settings.dtype = *dtype;
    if (evaluator_.failed()) return nothing();
    const bool sound = train.sound && !evaluator_.broken();
    // The model is checked beside the directives; its shapes are meaningless without an element
    // type.
    const bool looked_at = train.model.valid() && (!schedule_.setting_failed("dtype") || dtype);
    if (looked_at && build_model(train, frame, own_dtype) && sound && !evaluator_.broken() &&
        resolve_all_names(train))
      return std::move(lowered_);
    return nothing();
  }

  std::optional<Machine> machine(const sema::Machine& declared) {
    evaluate_params();
    refuse_unused_overrides();
    std::optional<Machine> made = machine_of(declared);
    if (evaluator_.broken()) nothing();
    return evaluator_.broken() ? std::nullopt : std::move(made);
  }

  /// False, and diagnostics, when a param, a mesh or a machine of the entry file has no value.
  bool declarations() {
    evaluate_params();
    refuse_unused_overrides();
    for (std::size_t i = 0; i < program_.meshes.size(); ++i) {
      mesh() = Mesh();
      if (program_.meshes[i].module.index() == 0 && program_.meshes[i].sound)
        make_mesh(sema::MeshId::at(i));
    }
    for (const sema::Machine& machine : program_.machines) {
      if (machine.module.index() == 0 && machine.sound) machine_of(machine);
    }
    const bool good = !evaluator_.broken();
    if (!good) evaluator_.finish_reports();
    return good;
  }

  std::optional<std::vector<ParamChoices>> choices() {
    evaluate_params();
    std::vector<ParamChoices> all;
    for (std::size_t i = 0; i < program_.params.size(); ++i) {
      const sema::Param& param = program_.params[i];
      if (param.module.index() != 0 || !param.sound || !evaluator_.params[i]) continue;
      const Value& value = *evaluator_.params[i];
      ParamChoices& added = all.emplace_back(std::string(param.syntax->name.name), param.type,
                                             override_text(value), literal_text(value));
      if (!param.syntax->has_choices) continue;
      std::set<std::string> seen;
      for (const Value& one : evaluator_.values_of_param(i)) {
        if (!seen.insert(override_text(one)).second) continue;
        added.choices.push_back(override_text(one));
        added.literals.push_back(literal_text(one));
      }
    }
    if (!evaluator_.broken()) return all;
    evaluator_.finish_reports();
    return std::nullopt;
  }

  std::optional<Lowered> schedule(const sema::Function& function) {
    evaluate_params();
    Frame frame;
    frame.slots.resize(function.frame_size);
    frame.caller = {};
    const bool bound = bind_parameters(function, frame);
    refuse_unused_overrides(&function);
    if (!bound || !evaluator_.resume()) return nothing();
    lowered_.strategy.settings.loc = evaluator_.here(function.syntax->name.range, frame);
    evaluator_.run(function, frame);
    if (const ast::Stmt* last = evaluator_.failed() ? evaluator_.failed_requirement() : nullptr) {
      for (const ast::Stmt* stmt : function.syntax->body->statements) {
        if (stmt->range.end >= last->range.end) schedule_.note_missing(*stmt);
      }
    }
    schedule_.finish();
    if (evaluator_.broken() || !function.sound) return nothing();
    build_chain_model(lowered_.model, lowered_.strategy);
    return std::move(lowered_);
  }

 private:
  Machine machine_of(const sema::Machine& declared) {
    mesh() = Mesh();
    const std::vector<Value> axes = make_mesh(declared.mesh);
    Frame frame;
    frame.slots.resize(declared.frame_size);
    std::copy(axes.begin(), axes.end(), frame.slots.begin());
    MachineBuilder builder(evaluator_, std::string(declared.name()), mesh());
    evaluator_.machine = &builder;
    evaluator_.skips_statements = true;
    evaluator_.execute(*declared.syntax->body, frame);
    evaluator_.machine = nullptr;
    evaluator_.resume();
    return builder.finish();
  }

  bool build_model(const sema::Train& train, Frame& frame, tensor::DType own_dtype) {
    const directive::Settings& settings = lowered_.strategy.settings;
    evaluator_.begin_independent();
    lowered_.model.name = std::string(program_.functions[train.model.index()].name());
    ModelBuilder model(evaluator_, lowered_.model, settings, own_dtype,
                       schedule_.setting_failed("data"));
    evaluator_.model = &model;
    if (!model.build(llvm::cast<ast::CallExpr>(*train.syntax->model), frame)) return false;
    lowered_.arguments = model.arguments();
    for (const auto* data : {&settings.data, &settings.held_out}) {
      if (!*data) continue;
      refuse_unused_extents(**data);
      refuse_more_classes(**data);
    }
    return model.data_fits();
  }

  /// The `names` that the train mentions, for its model. False, and diagnostics, if one does not
  /// fit.
  bool resolve_all_names(const sema::Train& train) {
    bool fit = true;
    for (const sema::NamesUse& use : train.names) {
      std::optional<WeightMap> map = resolve_names(
          program_.names[use.names.index()], lowered_.model, lowered_.arguments, use.range, sink_);
      fit = fit && map.has_value();
      if (map) lowered_.names.push_back({use.names, std::move(*map)});
    }
    attach_names();
    return fit;
  }

  /// The map of `init`. The train mentions its item, since no function takes or returns one.
  void attach_names() {
    const std::optional<NamesValue>& names = schedule_.names_of_init();
    if (!names) return;
    for (const ResolvedNames& resolved : lowered_.names) {
      if (resolved.names.index() == names->item)
        lowered_.strategy.settings.init->map = std::make_shared<const WeightMap>(resolved.map);
    }
  }

  std::optional<Lowered> nothing() {
    evaluator_.finish_reports();
    return std::nullopt;
  }
  Mesh& mesh() { return lowered_.strategy.mesh; }

  /// A train says how its parameters are updated and how often; `data` is checked where the model
  /// reads inputs.
  void require_settings(const sema::Train& train, const Frame& frame) {
    const directive::Settings& settings = lowered_.strategy.settings;
    const bool optim = settings.optimizer || schedule_.setting_failed("optim");
    const bool steps = settings.steps_given || schedule_.setting_failed("steps");
    if (optim && steps) return;
    evaluator_
        .fail(Code::setting_missing, train.syntax->name.range, frame, "the train `{}` has no {}",
              train.name(),
              optim   ? "`steps`"
              : steps ? "`optim`"
                      : "`optim` and no `steps`")
        .hint("add {}", optim   ? "`steps: 100`"
                        : steps ? "`optim: adamw(lr: 1e-3)`"
                                : "`optim: adamw(lr: 1e-3)` and `steps: 100`");
    evaluator_.resume();
  }

  /// `evaluate` needs data to evaluate.
  void require_held_out() {
    const directive::Settings& settings = lowered_.strategy.settings;
    const bool best = settings.checkpoint && settings.checkpoint->best;
    if (!(settings.evaluate || best) || settings.held_out || schedule_.setting_failed("held_out"))
      return;
    evaluator_
        .fail_at(Code::setting_missing,
                 settings.evaluate ? settings.evaluate->loc : settings.checkpoint->best_loc,
                 "{} held-out data, and the train `{}` has no `held_out`",
                 settings.evaluate ? "`evaluate` runs on"
                                   : "the best checkpoint is that of the lowest loss on",
                 settings.train)
        .hint("add `held_out: bytes(\"held_out.txt\", batch: 32, seq: 128)`, or leave `{}` out",
              settings.evaluate ? "evaluate" : "best");
    evaluator_.resume();
  }

  /// A warm-up that ends with the train or later: the rate that the program names is that of one
  /// step, or of none.
  void warn_of_long_warmup() {
    const directive::Settings& settings = lowered_.strategy.settings;
    if (!settings.optimizer || !settings.steps_given) return;
    const directive::LearningRate& rate = settings.optimizer->lr;
    if (rate.warmup < settings.steps || rate.warmup == 0) return;
    if (rate.warmup == settings.steps) {
      sink_
          .report(Code::warmup_as_long_as_train, rate.warmup_loc,
                  "the warm-up takes all of the {}: the rate reaches `base` in the last one alone",
                  counted(settings.steps, "step"))
          .hint("write a `warmup` that is smaller than `steps`");
      return;
    }
    const double reached =
        rate.base * static_cast<double>(settings.steps) / static_cast<double>(rate.warmup);
    sink_
        .report(
            Code::warmup_as_long_as_train, rate.warmup_loc,
            "the warm-up takes {}, and the train has {}: the rate ends at `{}` and never reaches `base`, which is `{}`",
            counted(rate.warmup, "step"), settings.steps, reached, rate.base)
        .hint("write a `warmup` that is smaller than `steps`");
  }

  /// Synthetic numbers of an input that exceed the range of its readers: rows of a table, classes
  /// of a loss.
  void refuse_more_classes(const directive::Data& data) {
    const tensor::Graph& model = lowered_.model;
    for (const tensor::IndexBound& read : tensor::index_bounds(model)) {
      const bool last_ignored = read.ignore == read.bound;
      if (data.classes <= read.bound + (last_ignored ? 1 : 0)) continue;
      const tensor::Node& reader = model.node(read.reader);
      evaluator_
          .fail_at(
              Code::more_classes_than_known, data.classes_loc,
              "`{}` is drawn from {} classes, but {} has {}",
              evaluator_.context().text(model.inputs[read.input.index()].name), data.classes,
              reader.op == tensor::Op::lookup ? "the table that is looked up" : "`cross_entropy`",
              read.bound)
          .related(reader.loc, "it is read here")
          .hint("write `classes: {}`", read.bound);
      evaluator_.resume();
    }
  }

  /// Extents by name that no input has.
  void refuse_unused_extents(const directive::Data& data) {
    std::vector<std::string_view> names;
    bool reads_classes = false;
    const tensor::Graph& model = lowered_.model;
    for (const tensor::Input& input : model.inputs) {
      for (const tensor::Dim& dim : model.type(input.value).dims)
        names.push_back(evaluator_.context().text(dim.name));
      reads_classes = reads_classes || model.type(input.value).dtype == tensor::DType::i64;
    }
    for (std::size_t i = 0; i < data.extent_locs.size(); ++i) {
      const std::string_view name = evaluator_.context().text(data.extents[i].first);
      if (std::find(names.begin(), names.end(), name) != names.end()) continue;
      // Reported at their reader.
      if (data.kind == directive::Data::Kind::synthetic && reads_classes && data.classes == 0 &&
          means_classes(name))
        continue;
      const std::string_view best = nearest_name(name, names);
      auto&& report = evaluator_.fail_at(Code::input_extent, data.extent_locs[i],
                                         "no input of the model has a dimension `{}`", name);
      if (best.empty()) {
        report.hint("leave it out");
      } else {
        report.did_you_mean(best, name);
      }
      evaluator_.resume();
    }
  }

  const Override* find_override(std::string_view name) {
    const Override* found = nullptr;
    for (std::size_t i = 0; i < overrides_.size(); ++i) {
      if (overrides_[i].name != name) continue;
      used_[i] = true;
      found = &overrides_[i];  // the last one wins
    }
    return found;
  }

  /// `needed_by`: the schedule that is shown by itself and has no default for it; null: there is
  /// one.
  std::optional<Value> override_value(const Override& override, sema::Type type,
                                      const ast::Identifier& declared,
                                      const sema::Function* needed_by = nullptr) {
    if (!has_overrides(type)) {
      evaluator_.set_failed();
      auto report = sink_.report(Code::override_bad_value, SourceRange(),
                                 "`-D` cannot give `{}: {}`", override.name, sema::type_name(type));
      report.related(declared.range, "`{}` is declared here", override.name);
      if (needed_by == nullptr) {
        report.hint("leave `-D {}=...` out: `{}` has a value without it", override.name,
                    override.name);
      } else {
        report.hint("{}", instead_of_showing(*needed_by, override.name));
      }
      return std::nullopt;
    }
    std::optional<Value> value = parse_override(override.value, type);
    if (!value) {
      evaluator_.set_failed();
      sink_
          .report(Code::override_bad_value, SourceRange(),
                  "`-D {}={}` gives `{}`, which is no `{}`", override.name, override.value,
                  override.value,
                  sema::type_name(type.is(sema::TypeKind::axis)
                                      ? sema::Type{sema::TypeKind::integer, false}
                                      : type))
          .related(declared.range, "`{}` is declared here", override.name)
          .hint("write it like `-D {}={}`", override.name, override_example(type));
      return std::nullopt;
    }
    if (const std::string* text = value->shared<std::string>()) {
      evaluator_.override_strings.insert(text);
      overridden_.push_back(*value);
    }
    return value;
  }

  static std::string instead_of_showing(const sema::Function& schedule,
                                        std::string_view parameter) {
    return "show a train or a schedule that calls `" + std::string(schedule.name()) +
           "`, or give `" + std::string(parameter) + "` a default";
  }

  void evaluate_params() {
    evaluator_.params.resize(program_.params.size());
    for (std::size_t i = 0; i < program_.params.size(); ++i) {
      const sema::Param& param = program_.params[i];
      // The command line names params of the entry file.
      const Override* override =
          param.module.index() == 0 ? find_override(param.syntax->name.name) : nullptr;
      if (!override || !param.sound) continue;
      evaluator_.params[i] =
          override_value(*override, param.type, param.syntax->name).value_or(Value());
      if (param.syntax->has_choices && !evaluator_.failed()) require_choice(*override, i);
      evaluator_.resume();
    }
    for (std::size_t i = 0; i < program_.params.size() && !evaluator_.failed(); ++i) {
      if (program_.params[i].sound) evaluator_.param(i);
      evaluator_.resume();
    }
  }

  void require_choice(const Override& override, std::size_t param) {
    const Values choices = evaluator_.values_of_param(param);
    const Value& chosen = *evaluator_.params[param];
    if (evaluator_.failed() || std::any_of(choices.begin(), choices.end(),
                                           [&](const Value& one) { return is_same(one, chosen); }))
      return;
    constexpr std::size_t kShown = 8;
    std::string known;
    for (std::size_t i = 0; i < std::min(choices.size(), kShown); ++i)
      known += (i == 0 ? "`" : ", `") + override_text(choices[i]) + "`";
    if (choices.size() > kShown) known += ", ...";
    evaluator_.set_failed();
    sink_
        .report(Code::override_bad_value, SourceRange(),
                "`-D {}={}` gives `{}`, which is no choice of `{}`", override.name, override.value,
                override.value, override.name)
        .related(program_.params[param].syntax->name.range, "`{}` is declared here", override.name)
        .hint("the choices are {}", known);
  }

  void refuse_unused_overrides(const sema::Function* schedule = nullptr) {
    for (std::size_t i = 0; i < overrides_.size(); ++i) {
      if (used_[i]) continue;
      std::string known;
      std::vector<std::string_view> names;
      const auto add = [&](std::string_view name) {
        known += (known.empty() ? "`" : ", `") + std::string(name) + "`";
        names.push_back(name);
      };
      for (const sema::Param& param : program_.params) {
        if (param.module.index() == 0) add(param.syntax->name.name);
      }
      if (schedule) {
        for (const ast::Param& param : schedule->syntax->params) add(param.name.name);
      }
      evaluator_.set_failed();
      auto&& builder = sink_.report(Code::override_unknown, SourceRange(),
                                    "`-D {}={}` names no param of the program", overrides_[i].name,
                                    overrides_[i].value);
      const std::string_view best = nearest_name(overrides_[i].name, names);
      if (known.empty()) {
        builder.hint("the program declares no `param`");
      } else if (!best.empty()) {
        builder.hint("did you mean `{}`?", best);
      } else {
        builder.hint("known are {}", known);
      }
      evaluator_.resume();
    }
  }

  /// Adds an axis; false, and a diagnostic, when its size makes no mesh.
  bool add_axis(std::string_view name, std::int64_t size, SourceRange range, const Frame& frame) {
    if (size < 1 || static_cast<std::uint64_t>(size) > kMaxDevices ||
        mesh().devices() * static_cast<std::uint64_t>(size) > kMaxDevices) {
      evaluator_.fail(Code::bad_mesh, range, frame,
                      "the axis `{}` has size `{}`; a mesh has 1 to {} devices", name, size,
                      kMaxDevices);
      return false;
    }
    if (mesh().axes.size() == kMaxAxes) {
      evaluator_.fail(Code::bad_mesh, range, frame, "a mesh has at most {} axes", kMaxAxes);
      return false;
    }
    mesh().axes.push_back({evaluator_.context().symbol(name), static_cast<std::uint32_t>(size)});
    return true;
  }

  /// The axes as values. An axis that failed has none, and gets size 1 in the mesh.
  std::vector<Value> make_mesh(sema::MeshId id) {
    const sema::Mesh& declared = program_.meshes[id.index()];
    std::vector<Value> axes;
    std::optional<std::uint64_t> devices;  // those of the mesh that this one factors again
    if (declared.base.valid()) {
      const std::vector<Value> base = make_mesh(declared.base);
      if (std::none_of(base.begin(), base.end(), [](const Value& axis) { return axis.none(); }))
        devices = mesh().devices();
      mesh().axes.clear();
    }
    Frame frame;
    frame.slots.resize(declared.frame_size);
    mesh().name = evaluator_.context().symbol(declared.syntax->name.name);
    mesh().loc = evaluator_.here(declared.syntax->range, frame);
    for (const ast::Pair& pair : declared.syntax->axes) {
      if (!declared.sound) evaluator_.set_failed();
      const std::int64_t size = declared.sound ? evaluator_.eval_int(*pair.value, frame) : 0;
      axes.push_back(!evaluator_.failed() &&
                             add_axis(pair.name.name, size, pair.value->range, frame)
                         ? last_axis()
                         : Value());
      if (axes.back().none())
        mesh().axes.resize(axes.size(), {evaluator_.context().symbol(pair.name.name), 1});
      if (!evaluator_.resume()) break;
    }
    const bool whole =
        std::none_of(axes.begin(), axes.end(), [](const Value& axis) { return axis.none(); });
    if (devices && whole && *devices != mesh().devices()) {
      const std::span<const ast::Pair> pairs = declared.syntax->axes;
      evaluator_
          .fail(Code::bad_mesh, cover(pairs.front().range, pairs.back().range), frame,
                "these axes make `{}` devices, and `{}` has `{}`", mesh().devices(),
                declared.syntax->base.name, *devices)
          .related(program_.meshes[declared.base.index()].syntax->name.range,
                   "`{}` is declared here", declared.syntax->base.name)
          .hint("a view has the same devices: the product of its sizes is `{}`", *devices);
      evaluator_.resume();
    }
    return axes;
  }

  Value last_axis() {
    return Value(
        AxisValue{static_cast<std::uint32_t>(mesh().axes.size() - 1), mesh().axes.back().size});
  }

  /// False when values are missing.
  bool bind_parameters(const sema::Function& function, Frame& frame) {
    mesh().name = evaluator_.context().symbol("mesh");
    mesh().loc = evaluator_.here(function.syntax->name.range, frame);
    std::string missing;
    bool can_be_shown = true;
    const auto params = function.syntax->params;
    for (std::size_t i = 0; i < params.size(); ++i) {
      const std::string_view name = params[i].name.name;
      const sema::Type type = function.params[i];
      can_be_shown = can_be_shown && (has_overrides(type) || params[i].default_value);
      if (const Override* override = find_override(name)) {
        const Value value = override_value(*override, type, params[i].name,
                                           params[i].default_value ? nullptr : &function)
                                .value_or(Value());
        frame.slots[i] = value;
        if (type.is(sema::TypeKind::axis) && !value.none()) {
          frame.slots[i] = add_axis(name, *value.get<std::int64_t>(), params[i].range, frame)
                               ? last_axis()
                               : Value();
        }
      } else if (params[i].default_value) {
        const ast::Expr& written = *params[i].default_value;
        Value value =
            evaluator_.convert(evaluator_.eval(written, frame), type, written.range, frame);
        frame.slots[i] = std::move(value);
      } else if (!has_overrides(type)) {
        evaluator_
            .fail(Code::parameter_missing, params[i].name.range, frame,
                  "`{}` cannot be shown by itself: `-D` cannot give its parameter `{}: {}`",
                  function.name(), name, sema::type_name(type))
            .hint("{}", instead_of_showing(function, name));
      } else {
        missing += (missing.empty() ? "" : " ") + ("-D " + std::string(name) + "=...");
      }
      if (!evaluator_.resume()) return false;
    }
    if (!can_be_shown) return false;
    if (missing.empty()) return true;
    evaluator_
        .fail(Code::parameter_missing, function.syntax->name.range, frame,
              "`{}` is shown by itself and lacks values of its parameters", function.name())
        .hint("add `{}`", missing);
    evaluator_.resume();
    return false;
  }

  const sema::Program& program_;
  std::span<const Override> overrides_;
  DiagnosticSink& sink_;
  Evaluator evaluator_;
  Lowered lowered_;
  ScheduleBuilder schedule_;
  std::vector<bool> used_;
  std::vector<Value> overridden_;  // keeps the strings of override_strings alive
};

}  // namespace

std::optional<Lowered> lower_train(const sema::Program& program, sema::TrainId train,
                                   std::span<const Override> overrides, Context& context,
                                   DiagnosticSink& sink, std::optional<tensor::DType> dtype,
                                   Observations* observations) {
  return Lowering(program, overrides, context, sink, observations)
      .train(program.trains[train.index()], dtype);
}

std::optional<Machine> lower_machine(const sema::Program& program, sema::MachineId machine,
                                     std::span<const Override> overrides, Context& context,
                                     DiagnosticSink& sink) {
  return Lowering(program, overrides, context, sink).machine(program.machines[machine.index()]);
}

bool lower_declarations(const sema::Program& program, std::span<const Override> overrides,
                        Context& context, DiagnosticSink& sink) {
  return Lowering(program, overrides, context, sink).declarations();
}

std::optional<std::vector<ParamChoices>> lower_choices(const sema::Program& program,
                                                       std::span<const Override> overrides,
                                                       Context& context, DiagnosticSink& sink) {
  return Lowering(program, overrides, context, sink).choices();
}

std::optional<Lowered> lower_schedule(const sema::Program& program, sema::FunctionId schedule,
                                      std::span<const Override> overrides, Context& context,
                                      DiagnosticSink& sink, Observations* observations) {
  return Lowering(program, overrides, context, sink, observations)
      .schedule(program.functions[schedule.index()]);
}

}  // namespace piper::lower
