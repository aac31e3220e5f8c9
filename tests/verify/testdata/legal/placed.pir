// Devices; values cross them without messages.
pir 2 placed
train two loc("two.pipe":10:1-10:10) {
  steps 3
  dtype f32
  seed 7
  data synthetic(classes: 0, batch: 8) loc("two.pipe":11:5-11:20)
  optim sgd(lr: constant(0.1, warmup: 0, floor: 0), momentum: 0, weight_decay: 0) loc("two.pipe":12:5-12:20)
}
mesh line(pp: 2) loc("two.pipe":9:1-9:16)
split batch into mb: 2 loc("two.pipe":14:5-14:24)
param net.first: f32[dim: 16, hidden: 16] = normal(0.02) loc("two.pipe":3:5-3:20)
param net.second: f32[hidden: 16, out: 16] = normal(0.02) loc("two.pipe":6:5-6:20)
input x: f32[batch: 8*, dim: 16] loc("two.pipe":2:11-2:12)
input y: f32[batch: 8*, out: 16] loc("two.pipe":2:14-2:15)
loss net.loss.0: 128 loc("two.pipe":7:5-7:20)
chunk stage0 of stage[0] F @stage0.F B @stage0.B loc("two.pipe":13:5-13:30)
chunk stage1 of stage[1] F @stage1.F B @stage1.B loc("two.pipe":13:5-13:30)
bucket stage0.0 (net.first) on line[pp: 0] loc("two.pipe":3:5-3:20)
bucket stage1.0 (net.second) on line[pp: 1] loc("two.pipe":6:5-6:20)
body @stage0.F(%x: data f32[batch: 4*, dim: 16] input x,
    %first: param f32[dim: 16, hidden: 16] param net.first)
    -> (%h: data f32[batch: 4*, hidden: 16],
    %kept: saved f32[batch: 4*, dim: 16])
body @stage1.F(%h: data f32[batch: 4*, hidden: 16],
    %second: param f32[hidden: 16, out: 16] param net.second,
    %y: data f32[batch: 4*, out: 16] input y)
    -> (%loss: loss_sum f32[] loss net.loss.0,
    %residual: saved f32[batch: 4*, out: 16],
    %h.kept: saved f32[batch: 4*, hidden: 16])
body @stage1.B(%residual: saved f32[batch: 4*, out: 16],
    %h.kept: saved f32[batch: 4*, hidden: 16],
    %second: param f32[hidden: 16, out: 16] param net.second)
    -> (%dh: data f32[batch: 4*, hidden: 16],
    %dsecond: grad f32[hidden: 16, out: 16] param net.second as second)
body @stage0.B(%dh: data f32[batch: 4*, hidden: 16],
    %kept: saved f32[batch: 4*, dim: 16])
    -> (%dfirst: grad f32[dim: 16, hidden: 16] param net.first as first)
graph {
  load.x.mb0.pp0 = load x [mb: 0] on line[pp: 0] loc("two.pipe":2:11-2:12)
  F.stage0.mb0 = F stage0 [mb: 0] @stage0.F (load.x.mb0.pp0, param update.stage0.0) on line[pp: 0] loc("two.pipe":13:5-13:30)
  load.x.mb1.pp0 = load x [mb: 1] on line[pp: 0] loc("two.pipe":2:11-2:12)
  F.stage0.mb1 = F stage0 [mb: 1] @stage0.F (load.x.mb1.pp0, param update.stage0.0) on line[pp: 0] loc("two.pipe":13:5-13:30)
  load.y.mb0.pp1 = load y [mb: 0] on line[pp: 1] loc("two.pipe":2:14-2:15)
  F.stage1.mb0 = F stage1 [mb: 0] @stage1.F (F.stage0.mb0, param update.stage1.0, load.y.mb0.pp1) on line[pp: 1] loc("two.pipe":13:5-13:30)
  B.stage1.mb0 = B stage1 [mb: 0] @stage1.B (F.stage1.mb0:1, F.stage1.mb0:2, param update.stage1.0) on line[pp: 1] loc("two.pipe":13:5-13:30)
  B.stage0.mb0 = B stage0 [mb: 0] @stage0.B (B.stage1.mb0, F.stage0.mb0:1) on line[pp: 0] loc("two.pipe":13:5-13:30)
  load.y.mb1.pp1 = load y [mb: 1] on line[pp: 1] loc("two.pipe":2:14-2:15)
  F.stage1.mb1 = F stage1 [mb: 1] @stage1.F (F.stage0.mb1, param update.stage1.0, load.y.mb1.pp1) on line[pp: 1] loc("two.pipe":13:5-13:30)
  B.stage1.mb1 = B stage1 [mb: 1] @stage1.B (F.stage1.mb1:1, F.stage1.mb1:2, param update.stage1.0) on line[pp: 1] loc("two.pipe":13:5-13:30)
  B.stage0.mb1 = B stage0 [mb: 1] @stage0.B (B.stage1.mb1, F.stage0.mb1:1) on line[pp: 0] loc("two.pipe":13:5-13:30)
  report.net.loss.0 = report loss net.loss.0 (F.stage1.mb0, F.stage1.mb1) on line[pp: 1] loc("two.pipe":7:5-7:20)
  accumulate.stage1.0 = accumulate bucket stage1.0 (grad B.stage1.mb0:1 + B.stage1.mb1:1) on line[pp: 1] loc("two.pipe":6:5-6:20)
  update.stage1.0 = update bucket stage1.0 (accumulate.stage1.0) on line[pp: 1] loc("two.pipe":12:5-12:20)
  accumulate.stage0.0 = accumulate bucket stage0.0 (grad B.stage0.mb0 + B.stage0.mb1) on line[pp: 0] loc("two.pipe":3:5-3:20)
  update.stage0.0 = update bucket stage0.0 (accumulate.stage0.0) on line[pp: 0] loc("two.pipe":12:5-12:20)
}
