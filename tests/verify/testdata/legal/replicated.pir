// Two replicas, a split backward, gradients reduced and clipped.
pir 2 planned
train replicas {
  steps 10
  dtype f32
  seed 0
  data synthetic(classes: 0, batch: 8)
  optim adamw(lr: cosine(0.001, warmup: 2, floor: 0), beta1: 0.9, beta2: 0.999, eps: 1e-08, weight_decay: 0.1, clip: 1)
}
mesh line(dp: 2)
split batch into mb: 2
param net.w: f32[dim: 16, out: 16] = normal(0.02)
param net.b: f32[out: 16] = zeros(0)
input x: f32[batch: 8*, dim: 16]
input y: f32[batch: 8*, out: 16]
loss net.loss.0: 128
chunk net0 of net[0] F @net.F BI @net.BI BW @net.BW
bucket net.0 (net.w, net.b) on line[] unreduced <dp: +>
stream compute
stream grads high_priority
stream losses
require peak_memory < 8589934592 else "the plan must fit"
claim line[]
body @net.F(%x: data f32[batch: 4*, dim: 16]<dp: batch> input x,
    %w: param f32[dim: 16, out: 16] param net.w,
    %b: param f32[out: 16] param net.b,
    %y: data f32[batch: 4*, out: 16]<dp: batch> input y)
    -> (%loss: loss_sum f32[]<dp: +> loss net.loss.0,
    %residual: saved f32[batch: 4*, out: 16]<dp: batch>,
    %x.kept: saved f32[batch: 4*, dim: 16]<dp: batch>)
body @net.BI(%residual: saved f32[batch: 4*, out: 16]<dp: batch>)
    -> (%dy: saved f32[batch: 4*, out: 16]<dp: batch>)
body @net.BW(%x.kept: saved f32[batch: 4*, dim: 16]<dp: batch>,
    %dy: saved f32[batch: 4*, out: 16]<dp: batch>)
    -> (%dw: grad f32[dim: 16, out: 16]<dp: +> param net.w as w,
    %db: grad f32[out: 16]<dp: +> param net.b as b)
graph {
  load.x.mb0.line = load x [mb: 0] on line[] <dp: batch> stream compute
  load.y.mb0.line = load y [mb: 0] on line[] <dp: batch> stream compute
  F.net0.mb0 = F net0 [mb: 0] @net.F (load.x.mb0.line, param update.net.0, param update.net.0:1, load.y.mb0.line) on line[] stream compute
  BI.net0.mb0 = BI net0 [mb: 0] @net.BI (F.net0.mb0:1) on line[] stream compute
  load.x.mb1.line = load x [mb: 1] on line[] <dp: batch> stream compute
  load.y.mb1.line = load y [mb: 1] on line[] <dp: batch> stream compute
  F.net0.mb1 = F net0 [mb: 1] @net.F (load.x.mb1.line, param update.net.0, param update.net.0:1, load.y.mb1.line) on line[] stream compute group 0 after BI.net0.mb0
  all_reduce.net.loss.0.line = all_reduce loss net.loss.0 (F.net0.mb0, F.net0.mb1) over dp on line[] stream losses
  report.net.loss.0 = report loss net.loss.0 (all_reduce.net.loss.0.line, all_reduce.net.loss.0.line:1) on line[] stream compute
  BW.net0.mb0 = BW net0 [mb: 0] @net.BW (F.net0.mb0:2, BI.net0.mb0) on line[] stream compute group 0
  BI.net0.mb1 = BI net0 [mb: 1] @net.BI (F.net0.mb1:1) on line[] stream compute
  BW.net0.mb1 = BW net0 [mb: 1] @net.BW (F.net0.mb1:2, BI.net0.mb1) on line[] stream compute
  accumulate.net.0 = accumulate bucket net.0 (grad BW.net0.mb0 + BW.net0.mb1, grad BW.net0.mb0:1 + BW.net0.mb1:1) on line[]
  all_reduce.net.0 = all_reduce bucket net.0 (accumulate.net.0, accumulate.net.0:1) over dp on line[] stream grads
  sum_squares.net.0 = sum_squares bucket net.0 (all_reduce.net.0, all_reduce.net.0:1) on line[] stream compute
  norm.line = norm (sum_squares.net.0) on line[] stream compute
  update.net.0 = update bucket net.0 (all_reduce.net.0, all_reduce.net.0:1, norm.line) on line[] stream compute
  report.norm = report norm (norm.line) on line[] stream compute
}
communicator group.line group (line[]) over dp stream losses {
  all_reduce.net.loss.0.line
}
communicator group.line.no2 group (line[]) over dp stream grads {
  all_reduce.net.0
}
role line at line[] arena 6016 live 5568 {
  buffer %parameters.net.0 = parameters bucket net.0 at 0 bytes 1088
  buffer %gradients.net.0 = gradients bucket net.0 at 1088 bytes 1088
  buffer %optimizer.net.0 = optimizer bucket net.0 at 2176 bytes 2176
  buffer %scalars = scalars at 4352 bytes 64
  buffer %load.x.mb0.line:0 = activations at 4416 bytes 128
  buffer %load.y.mb0.line:0 = activations at 4544 bytes 128
  buffer %load.x.mb1.line:0 = activations at 4416 bytes 128
  buffer %load.y.mb1.line:0 = activations at 4544 bytes 128
  buffer %F.net0.mb0:0 = activations at 4672 bytes 4
  buffer %F.net0.mb0:1 = activations at 4736 bytes 128
  buffer %F.net0.mb0:2 = activations at 4864 bytes 128
  buffer %F.net0.mb1:0 = activations at 4992 bytes 4
  buffer %F.net0.mb1:1 = activations at 5056 bytes 128
  buffer %F.net0.mb1:2 = activations at 5184 bytes 128
  buffer %BI.net0.mb0:0 = activations at 5312 bytes 128
  buffer %BI.net0.mb1:0 = activations at 5440 bytes 128
  buffer %all_reduce.net.loss.0.line:1 = communication at 5568 bytes 4
  buffer %sum_squares.net.0:0 = activations at 5632 bytes 16
  buffer %norm.line:0 = activations at 5696 bytes 16
  buffer %workspace = workspace at 5760 bytes 256
  load.x.mb0.line on compute writes (%load.x.mb0.line:0)
  load.y.mb0.line on compute writes (%load.y.mb0.line:0)
  F.net0.mb0 on compute reads (%load.x.mb0.line:0, %parameters.net.0, %parameters.net.0 + 1024, %load.y.mb0.line:0) writes (%F.net0.mb0:0, %F.net0.mb0:1, %F.net0.mb0:2) uses (%workspace)
  BI.net0.mb0 on compute reads (%F.net0.mb0:1) writes (%BI.net0.mb0:0)
  load.x.mb1.line on compute writes (%load.x.mb1.line:0)
  load.y.mb1.line on compute writes (%load.y.mb1.line:0)
  F.net0.mb1 on compute reads (%load.x.mb1.line:0, %parameters.net.0, %parameters.net.0 + 1024, %load.y.mb1.line:0) writes (%F.net0.mb1:0, %F.net0.mb1:1, %F.net0.mb1:2) uses (%workspace)
  all_reduce.net.loss.0.line on losses via group.line after F.net0.mb1 reads (%F.net0.mb0:0, %F.net0.mb1:0) writes (%F.net0.mb0:0, %all_reduce.net.loss.0.line:1)
  report.net.loss.0 on compute after all_reduce.net.loss.0.line reads (%F.net0.mb0:0, %all_reduce.net.loss.0.line:1)
  BW.net0.mb0 on compute reads (%F.net0.mb0:2, %BI.net0.mb0:0) writes (%gradients.net.0, %gradients.net.0 + 1024)
  BI.net0.mb1 on compute reads (%F.net0.mb1:1) writes (%BI.net0.mb1:0)
  BW.net0.mb1 on compute reads (%F.net0.mb1:2, %BI.net0.mb1:0) writes (+%gradients.net.0, +%gradients.net.0 + 1024)
  all_reduce.net.0 on grads via group.line.no2 after BW.net0.mb1 reads (%gradients.net.0, %gradients.net.0 + 1024) writes (%gradients.net.0, %gradients.net.0 + 1024)
  sum_squares.net.0 on compute after all_reduce.net.0 reads (%gradients.net.0, %gradients.net.0 + 1024) writes (%sum_squares.net.0:0)
  norm.line on compute reads (%sum_squares.net.0:0) writes (%norm.line:0)
  update.net.0 on compute reads (%gradients.net.0, %gradients.net.0 + 1024, %norm.line:0) writes (%parameters.net.0, %parameters.net.0 + 1024)
  report.norm on compute reads (%norm.line:0)
}
