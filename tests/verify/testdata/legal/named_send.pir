pir 2 planned
train "" #1 {
  steps 0
  dtype f32
  seed 0
}
mesh mesh(p: 2) #1
split batch into mb: 2 #2
param link.0.w: f32[width: 1] = ones(1) #1
param link.1.w: f32[width: 1] = ones(1) #1
input x: f32[batch: 2*, width: 1] #1
loss chain.loss.0: 2 #1
chunk stage0 of stage[0] F @stage0.F B @stage0.B #1
chunk stage1 of stage[1] F @stage1.F B @stage1.B #1
bucket stage0.0 (link.0.w) on mesh[p: 0] #1
bucket stage1.0 (link.1.w) on mesh[p: 1] #1
stream compute
stream act.p0.to.p1
stream grad.p1.to.p0
stream gather.p0
claim mesh[p: 0] #3
claim mesh[p: 1] #3
body @stage0.F(%x: data f32[batch: 1*, width: 1] input x,
    %link.0.w: param f32[width: 1] param link.0.w)
    -> (%link.0.mul: data f32[batch: 1*, width: 1]) {
  %x = port f32[batch: 1*, width: 1]
  %link.0.w = port f32[width: 1]
  %link.0.mul = mul(%x, %link.0.w) : f32[batch: 1*, width: 1] @F #1
}
body @stage0.B(%x: data f32[batch: 1*, width: 1] input x,
    %d.link.0.mul.mul: data f32[batch: 1*, width: 1])
    -> (%d.link.0.w.sum: grad f32[width: 1] param link.0.w as link.0.w) {
  %x = port f32[batch: 1*, width: 1]
  %d.link.0.mul.mul = port f32[batch: 1*, width: 1]
  %d.link.0.w.mul = mul(%d.link.0.mul.mul, %x) : f32[batch: 1*, width: 1] @BW #1
  %d.link.0.w.sum = sum(%d.link.0.w.mul) {dims: [batch]} : f32[width: 1] @BW #1
}
body @stage1.F(%link.0.mul: data f32[batch: 1*, width: 1],
    %link.1.w: param f32[width: 1] param link.1.w)
    -> (%link.1.sum: loss_sum f32[] loss chain.loss.0) {
  %link.0.mul = port f32[batch: 1*, width: 1]
  %link.1.w = port f32[width: 1]
  %link.1.mul = mul(%link.0.mul, %link.1.w) : f32[batch: 1*, width: 1] @F #1
  %link.1.sum = sum(%link.1.mul) {dims: [batch, width]} : f32[] @F #1
}
body @stage1.B(%link.0.mul: saved f32[batch: 1*, width: 1],
    %link.1.w: param f32[width: 1] param link.1.w)
    -> (%d.link.0.mul.mul: data f32[batch: 1*, width: 1],
    %d.link.1.w.sum: grad f32[width: 1] param link.1.w as link.1.w) {
  %link.0.mul = port f32[batch: 1*, width: 1]
  %link.1.w = port f32[width: 1]
  %d.link.1.mul.fill = fill() {scalar: 0.5, shape: f32[batch: 1*, width: 1]} : f32[batch: 1*, width: 1] @BI #1
  %d.link.0.mul.mul = mul(%d.link.1.mul.fill, %link.1.w) : f32[batch: 1*, width: 1] @BI #1
  %d.link.1.w.mul = mul(%d.link.1.mul.fill, %link.0.mul) : f32[batch: 1*, width: 1] @BW #1
  %d.link.1.w.sum = sum(%d.link.1.w.mul) {dims: [batch]} : f32[width: 1] @BW #1
}
graph {
  load.x.mb0.p0 = load x [mb: 0] on mesh[p: 0] stream compute #1
  F.stage0.mb0 = F stage0 [mb: 0] @stage0.F (load.x.mb0.p0, param update.stage0.0) on mesh[p: 0] stream compute #4
  send.F.stage0.mb0.p1 = send F stage0 [mb: 0] (F.stage0.mb0) to recv.F.stage0.mb0.p1 on mesh[p: 0] stream act.p0.to.p1 #1
  recv.F.stage0.mb0.p1 = recv F stage1 [mb: 0] from send.F.stage0.mb0.p1 on mesh[p: 1] stream act.p0.to.p1 #1
  load.x.mb1.p0 = load x [mb: 1] on mesh[p: 0] stream compute #1
  F.stage0.mb1 = F stage0 [mb: 1] @stage0.F (load.x.mb1.p0, param update.stage0.0) on mesh[p: 0] stream compute after F.stage0.mb0 #5
  F.stage1.mb0 = F stage1 [mb: 0] @stage1.F (recv.F.stage0.mb0.p1, param update.stage1.0) on mesh[p: 1] stream compute #6
  B.stage1.mb0 = B stage1 [mb: 0] @stage1.B (recv.F.stage0.mb0.p1, param update.stage1.0) on mesh[p: 1] stream compute after F.stage1.mb0 #7
  send.B.stage1.mb0.p0 = send B stage1 [mb: 0] (B.stage1.mb0) to recv.B.stage1.mb0.p0 on mesh[p: 1] stream grad.p1.to.p0 #1
  recv.B.stage1.mb0.p0 = recv B stage0 [mb: 0] from send.B.stage1.mb0.p0 on mesh[p: 0] stream grad.p1.to.p0 #1
  B.stage0.mb0 = B stage0 [mb: 0] @stage0.B (load.x.mb0.p0, recv.B.stage1.mb0.p0) on mesh[p: 0] stream compute after F.stage0.mb1 #8
  send.F.stage0.mb1.p1 = send F stage0 [mb: 1] (F.stage0.mb1) to recv.F.stage0.mb1.p1 at #1 on mesh[p: 0] stream act.p0.to.p1 after B.stage0.mb0 #9
  recv.F.stage0.mb1.p1 = recv F stage1 [mb: 1] from send.F.stage0.mb1.p1 on mesh[p: 1] stream act.p0.to.p1 #1
  F.stage1.mb1 = F stage1 [mb: 1] @stage1.F (recv.F.stage0.mb1.p1, param update.stage1.0) on mesh[p: 1] stream compute after B.stage1.mb0 #6
  B.stage1.mb1 = B stage1 [mb: 1] @stage1.B (recv.F.stage0.mb1.p1, param update.stage1.0) on mesh[p: 1] stream compute after F.stage1.mb1 #7
  accumulate.stage1.0 = accumulate bucket stage1.0 (grad B.stage1.mb0:1 + B.stage1.mb1:1) on mesh[p: 1] #1
  send.B.stage1.mb1.p0 = send B stage1 [mb: 1] (B.stage1.mb1) to recv.B.stage1.mb1.p0 on mesh[p: 1] stream grad.p1.to.p0 #1
  recv.B.stage1.mb1.p0 = recv B stage0 [mb: 1] from send.B.stage1.mb1.p0 on mesh[p: 0] stream grad.p1.to.p0 #1
  sum_squares.stage1.0 = sum_squares bucket stage1.0 (accumulate.stage1.0) on mesh[p: 1] stream compute #1
  update.stage1.0 = update bucket stage1.0 (accumulate.stage1.0) on mesh[p: 1] stream compute #1
  report.chain.loss.0 = report loss chain.loss.0 (F.stage1.mb0, F.stage1.mb1) on mesh[p: 1] stream compute #1
  B.stage0.mb1 = B stage0 [mb: 1] @stage0.B (load.x.mb1.p0, recv.B.stage1.mb1.p0) on mesh[p: 0] stream compute after B.stage0.mb0 #10
  accumulate.stage0.0 = accumulate bucket stage0.0 (grad B.stage0.mb0 + B.stage0.mb1) on mesh[p: 0] #1
  sum_squares.stage0.0 = sum_squares bucket stage0.0 (accumulate.stage0.0) on mesh[p: 0] stream compute #1
  update.stage0.0 = update bucket stage0.0 (accumulate.stage0.0) on mesh[p: 0] stream compute #1
  all_gather_v.norm.p0 = all_gather_v (sum_squares.stage0.0) over () with (all_gather_v.norm.p0, all_gather_v.norm.p1) on mesh[p: 0] stream gather.p0
  all_gather_v.norm.p1 = all_gather_v (sum_squares.stage1.0) over () with (all_gather_v.norm.p0, all_gather_v.norm.p1) on mesh[p: 1] stream gather.p0
  norm.p0 = norm (all_gather_v.norm.p0, all_gather_v.norm.p0:1) on mesh[p: 0] stream compute
  norm.p1 = norm (all_gather_v.norm.p1, all_gather_v.norm.p1:1) on mesh[p: 1] stream compute
  report.norm = report norm (norm.p0) on mesh[p: 0] stream compute
}
communicator p0.to.p1 pair (mesh[p: 0], mesh[p: 1]) stream act.p0.to.p1 window 2 min 1 #1 {
  send.F.stage0.mb0.p1
  send.F.stage0.mb1.p1
}
communicator p1.to.p0 pair (mesh[p: 1], mesh[p: 0]) stream grad.p1.to.p0 window 2 min 1 #1 {
  send.B.stage1.mb0.p0
  send.B.stage1.mb1.p0
}
communicator group.p0.p1 group (mesh[p: 0], mesh[p: 1]) stream gather.p0 {
  all_gather_v.norm.p0
}
role p0 at mesh[p: 0] arena 448 live 448 {
  buffer %parameters.stage0.0 = parameters bucket stage0.0 at 0 bytes 64
  buffer %gradients.stage0.0 = gradients bucket stage0.0 at 64 bytes 64
  buffer %scalars = scalars at 128 bytes 64
  buffer %load.x.mb0.p0:0 = activations at 192 bytes 4
  buffer %F.stage0.mb0:0 = activations at 256 bytes 4
  buffer %load.x.mb1.p0:0 = activations at 256 bytes 4
  buffer %F.stage0.mb1:0 = activations at 320 bytes 4
  buffer %recv.B.stage1.mb0.p0:0 = communication at 384 bytes 4
  buffer %recv.B.stage1.mb1.p0:0 = communication at 192 bytes 4
  buffer %sum_squares.stage0.0:0 = activations at 192 bytes 8
  buffer %all_gather_v.norm.p0:0 = communication at 256 bytes 8
  buffer %all_gather_v.norm.p0:1 = communication at 320 bytes 8
  buffer %norm.p0:0 = activations at 192 bytes 16
  load.x.mb0.p0 on compute writes (%load.x.mb0.p0:0)
  F.stage0.mb0 on compute reads (%load.x.mb0.p0:0, %parameters.stage0.0) writes (%F.stage0.mb0:0)
  send.F.stage0.mb0.p1 on act.p0.to.p1 via p0.to.p1 after F.stage0.mb0 reads (%F.stage0.mb0:0)
  load.x.mb1.p0 on compute after send.F.stage0.mb0.p1 writes (%load.x.mb1.p0:0)
  F.stage0.mb1 on compute reads (%load.x.mb1.p0:0, %parameters.stage0.0) writes (%F.stage0.mb1:0)
  recv.B.stage1.mb0.p0 on grad.p1.to.p0 via p1.to.p0 writes (%recv.B.stage1.mb0.p0:0)
  B.stage0.mb0 on compute after recv.B.stage1.mb0.p0 reads (%load.x.mb0.p0:0, %recv.B.stage1.mb0.p0:0) writes (%gradients.stage0.0)
  send.F.stage0.mb1.p1 on act.p0.to.p1 via p0.to.p1 after B.stage0.mb0 reads (%F.stage0.mb1:0)
  recv.B.stage1.mb1.p0 on grad.p1.to.p0 via p1.to.p0 after B.stage0.mb0 writes (%recv.B.stage1.mb1.p0:0)
  B.stage0.mb1 on compute after recv.B.stage1.mb1.p0 reads (%load.x.mb1.p0:0, %recv.B.stage1.mb1.p0:0) writes (+%gradients.stage0.0)
  sum_squares.stage0.0 on compute reads (%gradients.stage0.0) writes (%sum_squares.stage0.0:0)
  update.stage0.0 on compute reads (%gradients.stage0.0) writes (%parameters.stage0.0)
  all_gather_v.norm.p0 on gather.p0 via group.p0.p1 after sum_squares.stage0.0, send.F.stage0.mb1.p1 reads (%sum_squares.stage0.0:0) writes (%all_gather_v.norm.p0:0, %all_gather_v.norm.p0:1)
  norm.p0 on compute after all_gather_v.norm.p0 reads (%all_gather_v.norm.p0:0, %all_gather_v.norm.p0:1) writes (%norm.p0:0)
  report.norm on compute reads (%norm.p0:0)
}
role p1 at mesh[p: 1] arena 448 live 448 {
  buffer %parameters.stage1.0 = parameters bucket stage1.0 at 0 bytes 64
  buffer %gradients.stage1.0 = gradients bucket stage1.0 at 64 bytes 64
  buffer %scalars = scalars at 128 bytes 64
  buffer %recv.F.stage0.mb0.p1:0 = communication at 192 bytes 4
  buffer %F.stage1.mb0:0 = activations at 256 bytes 4
  buffer %B.stage1.mb0:0 = activations at 320 bytes 4
  buffer %recv.F.stage0.mb1.p1:0 = communication at 192 bytes 4
  buffer %F.stage1.mb1:0 = activations at 320 bytes 4
  buffer %B.stage1.mb1:0 = activations at 384 bytes 4
  buffer %sum_squares.stage1.0:0 = activations at 192 bytes 8
  buffer %all_gather_v.norm.p1:0 = communication at 256 bytes 8
  buffer %all_gather_v.norm.p1:1 = communication at 320 bytes 8
  buffer %norm.p1:0 = activations at 192 bytes 16
  recv.F.stage0.mb0.p1 on act.p0.to.p1 via p0.to.p1 after previous norm.p1 writes (%recv.F.stage0.mb0.p1:0)
  F.stage1.mb0 on compute after recv.F.stage0.mb0.p1 reads (%recv.F.stage0.mb0.p1:0, %parameters.stage1.0) writes (%F.stage1.mb0:0)
  B.stage1.mb0 on compute reads (%recv.F.stage0.mb0.p1:0, %parameters.stage1.0) writes (%B.stage1.mb0:0, %gradients.stage1.0)
  send.B.stage1.mb0.p0 on grad.p1.to.p0 via p1.to.p0 after B.stage1.mb0 reads (%B.stage1.mb0:0)
  recv.F.stage0.mb1.p1 on act.p0.to.p1 via p0.to.p1 after B.stage1.mb0 writes (%recv.F.stage0.mb1.p1:0)
  F.stage1.mb1 on compute after recv.F.stage0.mb1.p1, send.B.stage1.mb0.p0 reads (%recv.F.stage0.mb1.p1:0, %parameters.stage1.0) writes (%F.stage1.mb1:0)
  B.stage1.mb1 on compute reads (%recv.F.stage0.mb1.p1:0, %parameters.stage1.0) writes (%B.stage1.mb1:0, +%gradients.stage1.0)
  send.B.stage1.mb1.p0 on grad.p1.to.p0 via p1.to.p0 after B.stage1.mb1 reads (%B.stage1.mb1:0)
  sum_squares.stage1.0 on compute reads (%gradients.stage1.0) writes (%sum_squares.stage1.0:0)
  update.stage1.0 on compute reads (%gradients.stage1.0) writes (%parameters.stage1.0)
  report.chain.loss.0 on compute reads (%F.stage1.mb0:0, %F.stage1.mb1:0)
  all_gather_v.norm.p1 on gather.p0 via group.p0.p1 after report.chain.loss.0 reads (%sum_squares.stage1.0:0) writes (%all_gather_v.norm.p1:0, %all_gather_v.norm.p1:1)
  norm.p1 on compute after all_gather_v.norm.p1 reads (%all_gather_v.norm.p1:0, %all_gather_v.norm.p1:1) writes (%norm.p1:0)
}
locations {
  1 "wait.pipe":6:10-6:14
  2 "wait.pipe":3:5-3:27 from "wait.pipe":7:5-7:15
  3 "wait.pipe":9:9-9:20
  4 "wait.pipe":11:17-11:33
  5 "wait.pipe":11:35-11:51
  6 "wait.pipe":14:33-14:49
  7 "wait.pipe":14:51-14:67
  8 "wait.pipe":12:17-12:33
  9 "wait.pipe":12:35-12:56
  10 "wait.pipe":12:58-12:74
}
