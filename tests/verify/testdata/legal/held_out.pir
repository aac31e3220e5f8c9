// Forward alone, for held-out data: nothing is saved, parameters are state.
pir 2 planned forward_only
train small {
  steps 10
  dtype f32
  seed 0
  held_out arrays("a folder/of numbers", batch: 8, dim: 16, batches: 3)
  checkpoint every 100 keep 3
  evaluate every 50
  ema 0.75
  init weights("a folder/of weights")
}
mesh "one device"(all: 1)
split batch into mb: 2
param net.w: f32[dim: 16, out: 16] = normal(0.02)
param net.b: f32[out: 16] = constant(-1.5e-07)
input x: f32[batch: 8*, dim: 16]
loss net.loss.0: 128
chunk net0 of net[0] F @net.F
bucket net.0 (net.w, net.b) on "one device"[]
stream compute
body @net.F(%x: data f32[batch: 4*, dim: 16] input x,
    %w: param f32[dim: 16, out: 16] param net.w,
    %b: param f32[out: 16] param net.b)
    -> (%loss: loss_sum f32[] loss net.loss.0) {
  %x = port f32[batch: 4*, dim: 16]
  %w = port f32[dim: 16, out: 16]
  %b = port f32[out: 16]
  %y = contract(%x, %w) {dims: [dim]} : f32[batch: 4*, out: 16] @F
  %z = add(%y, %b) : f32[batch: 4*, out: 16] @F #1
  %loss = sum(%z) {dims: [batch, out]} : f32[] @F
}
graph {
  "load.x.mb0.one device" = load x [mb: 0] on "one device"[] stream compute
  F.net0.mb0 = F net0 [mb: 0] @net.F ("load.x.mb0.one device", param _:0, param _:1) on "one device"[] stream compute
  "load.x.mb1.one device" = load x [mb: 1] on "one device"[] stream compute
  F.net0.mb1 = F net0 [mb: 1] @net.F ("load.x.mb1.one device", param _:0, param _:1) on "one device"[] stream compute
  report.net.loss.0 = report loss net.loss.0 (F.net0.mb0, F.net0.mb1) on "one device"[] stream compute
}
role "one device" at "one device"[] arena 1472 live 1472 {
  buffer %parameters.net.0 = parameters bucket net.0 at 0 bytes 1088
  buffer %"load.x.mb0.one device":0 = activations at 1088 bytes 256
  buffer %"load.x.mb1.one device":0 = activations at 1088 bytes 256
  buffer %F.net0.mb0:0 = activations at 1344 bytes 4
  buffer %F.net0.mb1:0 = activations at 1408 bytes 4
  "load.x.mb0.one device" on compute writes (%"load.x.mb0.one device":0)
  F.net0.mb0 on compute reads (%"load.x.mb0.one device":0, %parameters.net.0, %parameters.net.0 + 1024) writes (%F.net0.mb0:0)
  "load.x.mb1.one device" on compute writes (%"load.x.mb1.one device":0)
  F.net0.mb1 on compute reads (%"load.x.mb1.one device":0, %parameters.net.0, %parameters.net.0 + 1024) writes (%F.net0.mb1:0)
  report.net.loss.0 on compute reads (%F.net0.mb0:0, %F.net0.mb1:0)
}
locations {
  1 "net.pipe":7:5-7:20
}
