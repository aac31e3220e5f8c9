// Streams and a global order; no plan.
pir 2 ordered
train two #1 {
  steps 3
  dtype f32
  seed 7
  data synthetic(classes: 0, batch: 8) #2
  optim sgd(lr: constant(0.1, warmup: 0, floor: 0), momentum: 0, weight_decay: 0) #3
}
mesh line(pp: 2) #4
split batch into mb: 2 #5
param net.first: f32[dim: 16, hidden: 16] = normal(0.02) #6
param net.second: f32[hidden: 16, out: 16] = normal(0.02) #7
input x: f32[batch: 8*, dim: 16] #8
input y: f32[batch: 8*, out: 16] #9
loss net.loss.0: 128 #10
chunk stage0 of stage[0] F @stage0.F B @stage0.B #11
chunk stage1 of stage[1] F @stage1.F B @stage1.B #11
bucket stage0.0 (net.first) on line[pp: 0] #6
bucket stage1.0 (net.second) on line[pp: 1] #7
stream compute
stream act
stream grad
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
  load.x.mb0.pp0 = load x [mb: 0] on line[pp: 0] stream compute #8
  F.stage0.mb0 = F stage0 [mb: 0] @stage0.F (load.x.mb0.pp0, param update.stage0.0) on line[pp: 0] stream compute #11
  send.F.stage0.mb0.pp1 = send F stage0 [mb: 0] (F.stage0.mb0) to recv.F.stage0.mb0.pp1 on line[pp: 0] stream act #12
  load.x.mb1.pp0 = load x [mb: 1] on line[pp: 0] stream compute #8
  F.stage0.mb1 = F stage0 [mb: 1] @stage0.F (load.x.mb1.pp0, param update.stage0.0) on line[pp: 0] stream compute #11
  send.F.stage0.mb1.pp1 = send F stage0 [mb: 1] (F.stage0.mb1) to recv.F.stage0.mb1.pp1 on line[pp: 0] stream act #12
  recv.F.stage0.mb0.pp1 = recv F stage1 [mb: 0] from send.F.stage0.mb0.pp1 on line[pp: 1] stream act #12
  load.y.mb0.pp1 = load y [mb: 0] on line[pp: 1] stream compute #9
  F.stage1.mb0 = F stage1 [mb: 0] @stage1.F (recv.F.stage0.mb0.pp1, param update.stage1.0, load.y.mb0.pp1) on line[pp: 1] stream compute #11
  recv.F.stage0.mb1.pp1 = recv F stage1 [mb: 1] from send.F.stage0.mb1.pp1 on line[pp: 1] stream act #12
  B.stage1.mb0 = B stage1 [mb: 0] @stage1.B (F.stage1.mb0:1, F.stage1.mb0:2, param update.stage1.0) on line[pp: 1] stream compute #11
  send.B.stage1.mb0.pp0 = send B stage1 [mb: 0] (B.stage1.mb0) to recv.B.stage1.mb0.pp0 on line[pp: 1] stream grad #12
  recv.B.stage1.mb0.pp0 = recv B stage0 [mb: 0] from send.B.stage1.mb0.pp0 on line[pp: 0] stream grad #12
  B.stage0.mb0 = B stage0 [mb: 0] @stage0.B (recv.B.stage1.mb0.pp0, F.stage0.mb0:1) on line[pp: 0] stream compute #11
  load.y.mb1.pp1 = load y [mb: 1] on line[pp: 1] stream compute #9
  F.stage1.mb1 = F stage1 [mb: 1] @stage1.F (recv.F.stage0.mb1.pp1, param update.stage1.0, load.y.mb1.pp1) on line[pp: 1] stream compute #11
  B.stage1.mb1 = B stage1 [mb: 1] @stage1.B (F.stage1.mb1:1, F.stage1.mb1:2, param update.stage1.0) on line[pp: 1] stream compute #11
  accumulate.stage1.0 = accumulate bucket stage1.0 (grad B.stage1.mb0:1 + B.stage1.mb1:1) on line[pp: 1] #7
  send.B.stage1.mb1.pp0 = send B stage1 [mb: 1] (B.stage1.mb1) to recv.B.stage1.mb1.pp0 on line[pp: 1] stream grad #12
  recv.B.stage1.mb1.pp0 = recv B stage0 [mb: 1] from send.B.stage1.mb1.pp0 on line[pp: 0] stream grad #12
  B.stage0.mb1 = B stage0 [mb: 1] @stage0.B (recv.B.stage1.mb1.pp0, F.stage0.mb1:1) on line[pp: 0] stream compute #11
  accumulate.stage0.0 = accumulate bucket stage0.0 (grad B.stage0.mb0 + B.stage0.mb1) on line[pp: 0] #6
  report.net.loss.0 = report loss net.loss.0 (F.stage1.mb0, F.stage1.mb1) on line[pp: 1] stream compute #10
  update.stage1.0 = update bucket stage1.0 (accumulate.stage1.0) on line[pp: 1] stream compute #3
  update.stage0.0 = update bucket stage0.0 (accumulate.stage0.0) on line[pp: 0] stream compute #3
}
locations {
  1 "two.pipe":10:1-10:10
  2 "two.pipe":11:5-11:20
  3 "two.pipe":12:5-12:20
  4 "two.pipe":9:1-9:16
  5 "two.pipe":14:5-14:24
  6 "two.pipe":3:5-3:20
  7 "two.pipe":6:5-6:20
  8 "two.pipe":2:11-2:12
  9 "two.pipe":2:14-2:15
  10 "two.pipe":7:5-7:20
  11 "two.pipe":13:5-13:30
  12 "two.pipe":16:5-16:30
}
