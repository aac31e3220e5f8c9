#pragma once
// LibTorch's optimizers as an oracle: parameters, and their moving averages, after steps with given
// gradients. No LibTorch type leaves torch_updates.cpp.

#include <optional>
#include <vector>

#include "ir/directive/directive.h"

namespace piper::test {

/// A parameter group of one parameter, in f64.
struct TorchGroup {
  std::vector<double> initial;
  std::vector<std::vector<double>> gradients;  // per step, before clipping
  double rate = 1, decay = 1;                  // factors of `lr` and `weight_decay` of the group
};

struct TorchUpdates {
  // per group and step
  std::vector<std::vector<std::vector<double>>> parameters, averages;
};

/// `clip_grad_norm_`, then the fused step of AdamW or SGD for each group, then, with `ema`,
/// `swa_utils.get_ema_multi_avg_fn`, which has seen the initial values. `rates`: of the steps. A step
/// whose total norm is above `skip_above`, or not finite, is left out; the step number of AdamW counts
/// it.
TorchUpdates torch_updates(const directive::Optimizer& optimizer, const std::vector<double>& rates,
                           std::optional<double> ema, std::optional<double> skip_above,
                           const std::vector<TorchGroup>& groups);

}  // namespace piper::test
