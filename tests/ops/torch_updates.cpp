#include "tests/ops/torch_updates.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace piper::test {

namespace {

at::Tensor tensor_of(const std::vector<double>& values) {
  return at::tensor(values, at::kDouble).clone();
}
std::vector<double> values_of(const at::Tensor& tensor) {
  return {tensor.const_data_ptr<double>(), tensor.const_data_ptr<double>() + tensor.numel()};
}

/// The state of one parameter group.
struct Group {
  at::Tensor parameter, average, first, second, step;
};

/// The factor of `clip_grad_norm_`.
double clip_factor(double norm, double clip) { return std::min(1.0, clip / (norm + 1e-6)); }

void update(const directive::Optimizer& optimizer, const TorchGroup& group, double rate,
            bool first_step, const at::Tensor& gradient, Group& state) {
  const double lr = rate * group.rate, decay = optimizer.weight_decay * group.decay;
  if (optimizer.kind == directive::Optimizer::Kind::adamw) {
    at::_fused_adamw_({state.parameter}, {gradient}, {state.first}, {state.second}, {},
                      {state.step}, lr, optimizer.beta1, optimizer.beta2, decay, optimizer.eps,
                      /*amsgrad=*/false, /*maximize=*/false);
    return;
  }
  std::vector<at::Tensor> momentum;
  if (optimizer.momentum != 0) momentum.push_back(state.first);
  at::_fused_sgd_({state.parameter}, {gradient}, momentum, decay, optimizer.momentum, lr,
                  /*dampening=*/0, /*nesterov=*/false, /*maximize=*/false, first_step);
}

}  // namespace

TorchUpdates torch_updates(const directive::Optimizer& optimizer, const std::vector<double>& rates,
                           std::optional<double> ema, std::optional<double> skip_above,
                           const std::vector<TorchGroup>& groups) {
  std::vector<Group> states;
  for (const TorchGroup& group : groups) {
    const at::Tensor initial = tensor_of(group.initial);
    states.push_back({initial, initial.clone(), at::zeros_like(initial), at::zeros_like(initial),
                      at::zeros({}, at::kFloat)});
  }
  TorchUpdates result;
  result.parameters.resize(groups.size());
  result.averages.resize(groups.size());
  bool first_step = true;
  for (std::size_t step = 0; step < rates.size(); ++step) {
    std::vector<at::Tensor> norms;
    for (const TorchGroup& group : groups)
      norms.push_back(at::linalg_vector_norm(tensor_of(group.gradients[step])));
    const double norm = at::linalg_vector_norm(at::stack(norms)).item<double>();
    const bool skips = skip_above && !(norm <= *skip_above);
    for (std::size_t g = 0; g < groups.size(); ++g) {
      states[g].step.add_(1);
      if (!skips) {
        at::Tensor gradient = tensor_of(groups[g].gradients[step]);
        if (optimizer.clip) gradient.mul_(clip_factor(norm, *optimizer.clip));
        update(optimizer, groups[g], rates[step], first_step, gradient, states[g]);
        if (ema) states[g].average.lerp_(states[g].parameter, 1 - *ema);
      }
      result.parameters[g].push_back(values_of(states[g].parameter));
      result.averages[g].push_back(values_of(states[g].average));
    }
    first_step = first_step && skips;
  }
  return result;
}

}  // namespace piper::test
