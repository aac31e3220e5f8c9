#pragma once
// Typed program to tensor graph and strategy: the entry of lowering.
//
//   auto lowered = lower::lower_train(program, program.find_train("small"), {{"corpus", "/data/web"}}, context, sink);
//   passes::prepare(lowered->model, lowered->strategy, sink);

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "frontend/lower/evaluate/observations.h"
#include "frontend/lower/evaluate/value.h"
#include "frontend/sema/program.h"
#include "ir/directive/directive.h"
#include "ir/machine.h"
#include "ir/tensor/graph.h"
#include "ir/weight_map.h"

namespace piper::lower {

/// `-D name=value`.
struct Override {
  std::string name;
  std::string value;
  friend bool operator==(const Override&, const Override&) = default;
};

/// A `names` item that a train mentions, for its model.
struct ResolvedNames {
  sema::NamesId names;
  WeightMap map;
};

struct Lowered {
  tensor::Graph model;  // forward only
  directive::Strategy strategy = {};
  std::vector<ModelArgument> arguments = {};  // of a train's model
  std::vector<ResolvedNames> names = {};      // in text order
};

/// A train: its model built with its data's extents, its directives evaluated. Overrides replace
/// values of the program's params. Nothing, and at least one error, when something does not fit.
/// The train must be `runnable`; if it is not `sound` the analysis has reported an error. `dtype`
/// replaces the train's own (a comparison runs in f64); `observations` receives the values of
/// expressions.
std::optional<Lowered> lower_train(const sema::Program& program, sema::TrainId train,
                                   std::span<const Override> overrides, Context& context,
                                   DiagnosticSink& sink, std::optional<tensor::DType> dtype = {},
                                   Observations* observations = nullptr);

/// A machine. Overrides replace values of the program's params: names that it has none of are
/// refused. Nothing, and at least one error, when something does not fit. The machine must be
/// `sound`.
std::optional<Machine> lower_machine(const sema::Program& program, sema::MachineId machine,
                                     std::span<const Override> overrides, Context& context,
                                     DiagnosticSink& sink);

/// Evaluates the sound params, meshes and machines of the entry file, for a program without a
/// train. False, and diagnostics, when one has no value.
bool lower_declarations(const sema::Program& program, std::span<const Override> overrides,
                        Context& context, DiagnosticSink& sink);

/// A param of the entry file: its value, and with `in` its different choices, as `-D` takes them,
/// and as the language writes them (`literal`, `literals`).
struct ParamChoices {
  std::string name;
  sema::Type type;
  std::string value, literal;
  std::vector<std::string> choices = {}, literals = {};
};

/// The params of the entry file in text order. Nothing, and diagnostics, when one has no value.
std::optional<std::vector<ParamChoices>> lower_choices(const sema::Program& program,
                                                       std::span<const Override> overrides,
                                                       Context& context, DiagnosticSink& sink);

/// A schedule by itself: a mesh of its axis parameters, and a model that is a chain of as many
/// equal links as its partition of the model has stages (1 without one), each with one weight; the
/// batch has one sample per part of its splits. Overrides give its parameters, axis sizes among
/// them. The schedule must be `runnable`, as a train.
std::optional<Lowered> lower_schedule(const sema::Program& program, sema::FunctionId schedule,
                                      std::span<const Override> overrides, Context& context,
                                      DiagnosticSink& sink, Observations* observations = nullptr);

}  // namespace piper::lower
