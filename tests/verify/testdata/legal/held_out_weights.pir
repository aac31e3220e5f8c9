// Held-out data of which the last batch may be short: samples have weights, and the loss goes over those that are 1.
pir 2 planned forward_only
train t {
  steps 1
  dtype f32
  seed 0
  held_out synthetic(classes: 0, batch: 4)
}
mesh one(p: 1)
param w: f32[dim: 2] = ones(1)
input x: f32[batch: 4*, dim: 2]
input sample.weight: f32[batch: 4*]
loss loss.0: 8
chunk model of model F @model.F
bucket model.0 (w) on one[]
stream compute
body @model.F(%sample.weight: data f32[batch: 4*] input sample.weight,
    %x: data f32[batch: 4*, dim: 2] input x,
    %w: param f32[dim: 2] param w)
    -> (%sum: loss_sum f32[] loss loss.0) {
  %x = port f32[batch: 4*, dim: 2]
  %w = port f32[dim: 2]
  %mul = mul(%x, %w) : f32[batch: 4*, dim: 2] @F
  %sum.rows = sum(%mul) {dims: [dim]} : f32[batch: 4*] @F
  %sum.least = fill() {scalar: 0.5, shape: f32[]} : f32[] @F
  %sample.weight = port f32[batch: 4*]
  %sum.weighed = select_ge(%sample.weight, %sum.least, %sum.rows) : f32[batch: 4*] @F
  %sum = sum(%sum.weighed) {dims: [batch]} : f32[] @F
}
graph {
  load.sample.weight.one = load sample.weight on one[] stream compute
  load.x.one = load x on one[] stream compute
  F.model = F model @model.F (load.sample.weight.one, load.x.one, param _:0) on one[] stream compute
  report.loss.0 = report loss loss.0 (F.model) on one[] stream compute
}
role one at one[] arena 384 live 384 {
  buffer %parameters.model.0 = parameters bucket model.0 at 0 bytes 64
  buffer %gradients.model.0 = gradients bucket model.0 at 64 bytes 64
  buffer %scalars = scalars at 128 bytes 64
  buffer %load.sample.weight.one:0 = activations at 192 bytes 16
  buffer %load.x.one:0 = activations at 256 bytes 32
  buffer %F.model:0 = activations at 320 bytes 4
  load.sample.weight.one on compute writes (%load.sample.weight.one:0)
  load.x.one on compute writes (%load.x.one:0)
  F.model on compute reads (%load.sample.weight.one:0, %load.x.one:0, %parameters.model.0) writes (%F.model:0)
  report.loss.0 on compute reads (%F.model:0)
}
