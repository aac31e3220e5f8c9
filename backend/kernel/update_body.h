#pragma once
// The optimizer as tensor graphs: bodies of Update, SumSquares and Norm nodes, for the same
// kernels, evaluator and printer as chunks.
//
// Gradients and parameters of a bucket are flat. Scalars are 0-dimensional f64 inputs that the
// caller points at PiperScalars and at the norm.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "backend/kernel/kernel.h"
#include "ir/dag/body.h"
#include "ir/dag/dag.h"
#include "ir/directive/directive.h"

namespace piper::backend {

/// The optimizer of an update, and its further work.
struct UpdateRule {
  UpdateRule(const directive::Optimizer& optimizer) : optimizer(optimizer) {}
  UpdateRule(const directive::Settings& settings);

  directive::Optimizer optimizer;
  std::optional<double> ema;  // the decay of a moving average of the parameter
  bool skips = false;         // with a factor below 0 parameter and state stay
  // Factors of the elements' learning rates and weight decays, if parameters of the program differ in
  // them. They do not depend on the bucket, so that layouts agree in every bit.
  std::optional<tensor::Pieces> rates = {}, decays = {};
};
/// The rule of the updates of a bucket.
UpdateRule update_rule(const dag::Dag& dag, const dag::Bucket& bucket);
/// The rule of a parameter by itself.
UpdateRule update_rule(const dag::Dag& dag, tensor::ParamId param);

struct UpdateBody {
  dag::Body body;
  std::vector<int> in_place;  // for build_kernels: output -> input whose memory it takes over
  bool skips = false;         // a factor below 0 leaves all operands as they are
};

/// Operands of an update over `elements` values of a parameter of `dtype`; all other values have
/// its wide type. inputs: parameter, gradient, learning_rate, factor (the clip factor; 1 without
/// clipping), then
///   sgd with momentum: momentum;  adamw: moment1, moment2;  with `ema`: average;  of a narrow parameter: master;
///   adamw: bias1, bias2.
/// outputs: parameter, then the state in the same order, each in place of its input. With master
/// weights, p and p' are these, and the parameter is p' rounded.
///   sgd:   g' = factor g + weight_decay p;  m' = momentum m + g';  p' = p - lr m'   (without momentum: p' = p - lr g')
///   adamw: m' = beta1 m + (1 - beta1) g';  v' = beta2 v + (1 - beta2) g'^2;
///          p' = (1 - lr weight_decay) p - lr (m' / bias1) / (sqrt(v' / bias2) + eps)
///   average' = average + (1 - ema) (p' - average)
/// With `rates` and `decays` an element's lr and weight_decay are multiplied by its factors. Its
/// kernels are those of `update_kernels`.
UpdateBody update_body(Context& context, const UpdateRule& rule, tensor::DType dtype,
                       std::int64_t elements);

/// The kernels of an update.
KernelBody update_kernels(const UpdateBody& update, Target target = Target::cpu);

/// inputs: one gradient of `dtype` per parameter (`elements` of each); outputs: its sum of squares,
/// f64 scalars in the same order.
dag::Body sum_squares_body(Context& context, tensor::DType dtype,
                           std::span<const std::int64_t> elements);

/// inputs: `count` f64 scalars, the sums of squares in parameter order; outputs: norm = sqrt(their
/// sum in order), and factor = min(1, clip / (norm + 1e-6)), or 1 without `clip`; -1 if the norm is
/// above `skip_above` or is not a number.
dag::Body norm_body(Context& context, std::size_t count, std::optional<double> clip,
                    std::optional<double> skip_above = {});
/// The norm of a program with these settings.
dag::Body norm_body(Context& context, std::size_t count, const directive::Settings& settings);

}  // namespace piper::backend
