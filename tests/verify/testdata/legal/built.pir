// One node per chunk and pass; no microbatches.
pir 2 built
train two #1 {
  steps 3
  dtype f32
  seed 7
  data synthetic(classes: 0, batch: 8) #2
  optim sgd(lr: constant(0.1, warmup: 0, floor: 0), momentum: 0, weight_decay: 0) #3
}
mesh line(pp: 2) #4
param net.first: f32[dim: 16, hidden: 16] = normal(0.02) #5
param net.second: f32[hidden: 16, out: 16] = normal(0.02) #6
input x: f32[batch: 8*, dim: 16] #7
input y: f32[batch: 8*, out: 16] #8
loss net.loss.0: 128 #9
chunk stage0 of stage[0] F @stage0.F B @stage0.B #10
chunk stage1 of stage[1] F @stage1.F B @stage1.B #10
bucket stage0.0 (net.first) #5
bucket stage1.0 (net.second) #6
body @stage0.F(%x: data f32[batch: 8*, dim: 16] input x,
    %first: param f32[dim: 16, hidden: 16] param net.first)
    -> (%h: data f32[batch: 8*, hidden: 16],
    %kept: saved f32[batch: 8*, dim: 16])
body @stage1.F(%h: data f32[batch: 8*, hidden: 16],
    %second: param f32[hidden: 16, out: 16] param net.second,
    %y: data f32[batch: 8*, out: 16] input y)
    -> (%loss: loss_sum f32[] loss net.loss.0,
    %residual: saved f32[batch: 8*, out: 16],
    %h.kept: saved f32[batch: 8*, hidden: 16])
body @stage1.B(%residual: saved f32[batch: 8*, out: 16],
    %h.kept: saved f32[batch: 8*, hidden: 16],
    %second: param f32[hidden: 16, out: 16] param net.second)
    -> (%dh: data f32[batch: 8*, hidden: 16],
    %dsecond: grad f32[hidden: 16, out: 16] param net.second as second)
body @stage0.B(%dh: data f32[batch: 8*, hidden: 16],
    %kept: saved f32[batch: 8*, dim: 16])
    -> (%dfirst: grad f32[dim: 16, hidden: 16] param net.first as first)
graph {
  load.x = load x #7
  F.stage0 = F stage0 @stage0.F (load.x, param update.stage0.0) #10
  load.y = load y #8
  F.stage1 = F stage1 @stage1.F (F.stage0, param update.stage1.0, load.y) #10
  B.stage1 = B stage1 @stage1.B (F.stage1:1, F.stage1:2, param update.stage1.0) #10
  B.stage0 = B stage0 @stage0.B (B.stage1, F.stage0:1) #10
  report.net.loss.0 = report loss net.loss.0 (F.stage1) #9
  accumulate.stage1.0 = accumulate bucket stage1.0 (grad B.stage1:1) #6
  update.stage1.0 = update bucket stage1.0 (accumulate.stage1.0) #3
  accumulate.stage0.0 = accumulate bucket stage0.0 (grad B.stage0) #5
  update.stage0.0 = update bucket stage0.0 (accumulate.stage0.0) #3
}
locations {
  1 "two.pipe":10:1-10:10
  2 "two.pipe":11:5-11:20
  3 "two.pipe":12:5-12:20
  4 "two.pipe":9:1-9:16
  5 "two.pipe":3:5-3:20
  6 "two.pipe":6:5-6:20
  7 "two.pipe":2:11-2:12
  8 "two.pipe":2:14-2:15
  9 "two.pipe":7:5-7:20
  10 "two.pipe":13:5-13:30
}
