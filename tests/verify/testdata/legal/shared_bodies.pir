// Two chunks run the same bodies, whose ports are called after the values of the first.
pir 2 planned
train "" {
  steps 0
  dtype f32
  seed 0
}
mesh mesh(p: 2)
split batch into mb: 2
param link.0.w: f32[width: 1] = ones(1)
param link.1.w: f32[width: 1] = ones(1)
param link.2.w: f32[width: 1] = ones(1)
param link.3.w: f32[width: 1] = ones(1)
input x: f32[batch: 2*, width: 1]
loss chain.loss.0: 2
chunk stage0 of stage[0] F @stage0.F BI @stage0.BI BW @stage0.BW
chunk stage1 of stage[1] F @stage1.F BI @stage1.BI BW @stage1.BW
chunk stage2 of stage[2] F @stage1.F BI @stage1.BI BW @stage1.BW
chunk stage3 of stage[3] F @stage3.F BI @stage3.BI BW @stage3.BW
bucket stage0.0 (link.0.w) on mesh[p: 0]
bucket stage1.0 (link.1.w) on mesh[p: 1]
bucket stage2.0 (link.2.w) on mesh[p: 1]
bucket stage3.0 (link.3.w) on mesh[p: 0]
stream compute
stream act.p0.to.p1
stream grad.p0.to.p1
stream act.p1.to.p0
stream grad.p1.to.p0
stream gather.p0
claim mesh[p: 0]
claim mesh[p: 1]
body @stage0.F(%x: data f32[batch: 1*, width: 1] input x,
    %link.0.w: param f32[width: 1] param link.0.w)
    -> (%link.0.mul: data f32[batch: 1*, width: 1]) {
  %x = port f32[batch: 1*, width: 1]
  %link.0.w = port f32[width: 1]
  %link.0.mul = mul(%x, %link.0.w) : f32[batch: 1*, width: 1] @F
}
body @stage0.BI()
    -> ()
body @stage0.BW(%x: data f32[batch: 1*, width: 1] input x,
    %d.link.0.mul.mul: data f32[batch: 1*, width: 1])
    -> (%d.link.0.w.sum: grad f32[width: 1] param link.0.w as link.0.w) {
  %x = port f32[batch: 1*, width: 1]
  %d.link.0.mul.mul = port f32[batch: 1*, width: 1]
  %d.link.0.w.mul = mul(%d.link.0.mul.mul, %x) : f32[batch: 1*, width: 1] @BW
  %d.link.0.w.sum = sum(%d.link.0.w.mul) {dims: [batch]} : f32[width: 1] @BW
}
body @stage1.F(%link.0.mul: data f32[batch: 1*, width: 1],
    %link.1.w: param f32[width: 1] param link.1.w)
    -> (%link.1.mul: data f32[batch: 1*, width: 1]) {
  %link.0.mul = port f32[batch: 1*, width: 1]
  %link.1.w = port f32[width: 1]
  %link.1.mul = mul(%link.0.mul, %link.1.w) : f32[batch: 1*, width: 1] @F
}
body @stage1.BI(%d.link.1.mul.mul: data f32[batch: 1*, width: 1],
    %link.1.w: param f32[width: 1] param link.1.w)
    -> (%d.link.0.mul.mul: data f32[batch: 1*, width: 1]) {
  %d.link.1.mul.mul = port f32[batch: 1*, width: 1]
  %link.1.w = port f32[width: 1]
  %d.link.0.mul.mul = mul(%d.link.1.mul.mul, %link.1.w) : f32[batch: 1*, width: 1] @BI
}
body @stage1.BW(%link.0.mul: saved f32[batch: 1*, width: 1],
    %d.link.1.mul.mul: saved f32[batch: 1*, width: 1])
    -> (%d.link.1.w.sum: grad f32[width: 1] param link.1.w as link.1.w) {
  %link.0.mul = port f32[batch: 1*, width: 1]
  %d.link.1.mul.mul = port f32[batch: 1*, width: 1]
  %d.link.1.w.mul = mul(%d.link.1.mul.mul, %link.0.mul) : f32[batch: 1*, width: 1] @BW
  %d.link.1.w.sum = sum(%d.link.1.w.mul) {dims: [batch]} : f32[width: 1] @BW
}
body @stage3.F(%link.2.mul: data f32[batch: 1*, width: 1],
    %link.3.w: param f32[width: 1] param link.3.w)
    -> (%link.3.sum: loss_sum f32[] loss chain.loss.0) {
  %link.2.mul = port f32[batch: 1*, width: 1]
  %link.3.w = port f32[width: 1]
  %link.3.mul = mul(%link.2.mul, %link.3.w) : f32[batch: 1*, width: 1] @F
  %link.3.sum = sum(%link.3.mul) {dims: [batch, width]} : f32[] @F
}
body @stage3.BI(%link.3.w: param f32[width: 1] param link.3.w)
    -> (%d.link.3.mul.fill: saved f32[batch: 1*, width: 1],
    %d.link.2.mul.mul: data f32[batch: 1*, width: 1]) {
  %link.3.w = port f32[width: 1]
  %d.link.3.mul.fill = fill() {scalar: 0.5, shape: f32[batch: 1*, width: 1]} : f32[batch: 1*, width: 1] @BI
  %d.link.2.mul.mul = mul(%d.link.3.mul.fill, %link.3.w) : f32[batch: 1*, width: 1] @BI
}
body @stage3.BW(%link.2.mul: saved f32[batch: 1*, width: 1],
    %d.link.3.mul.fill: saved f32[batch: 1*, width: 1])
    -> (%d.link.3.w.sum: grad f32[width: 1] param link.3.w as link.3.w) {
  %link.2.mul = port f32[batch: 1*, width: 1]
  %d.link.3.mul.fill = port f32[batch: 1*, width: 1]
  %d.link.3.w.mul = mul(%d.link.3.mul.fill, %link.2.mul) : f32[batch: 1*, width: 1] @BW
  %d.link.3.w.sum = sum(%d.link.3.w.mul) {dims: [batch]} : f32[width: 1] @BW
}
graph {
  load.x.mb0.p0 = load x [mb: 0] on mesh[p: 0] stream compute
  F.stage0.mb0 = F stage0 [mb: 0] @stage0.F (load.x.mb0.p0, param update.stage0.0) on mesh[p: 0] stream compute
  send.F.stage0.mb0.p1 = send F stage0 [mb: 0] (F.stage0.mb0) to recv.F.stage0.mb0.p1 on mesh[p: 0] stream act.p0.to.p1
  recv.F.stage0.mb0.p1 = recv F stage1 [mb: 0] from send.F.stage0.mb0.p1 on mesh[p: 1] stream act.p0.to.p1
  load.x.mb1.p0 = load x [mb: 1] on mesh[p: 0] stream compute
  F.stage0.mb1 = F stage0 [mb: 1] @stage0.F (load.x.mb1.p0, param update.stage0.0) on mesh[p: 0] stream compute after F.stage0.mb0
  F.stage1.mb0 = F stage1 [mb: 0] @stage1.F (recv.F.stage0.mb0.p1, param update.stage1.0) on mesh[p: 1] stream compute
  send.F.stage0.mb1.p1 = send F stage0 [mb: 1] (F.stage0.mb1) to recv.F.stage0.mb1.p1 on mesh[p: 0] stream act.p0.to.p1
  recv.F.stage0.mb1.p1 = recv F stage1 [mb: 1] from send.F.stage0.mb1.p1 on mesh[p: 1] stream act.p0.to.p1
  F.stage2.mb0 = F stage2 [mb: 0] @stage1.F (F.stage1.mb0, param update.stage2.0) on mesh[p: 1] stream compute after F.stage1.mb0
  send.F.stage2.mb0.p0 = send F stage2 [mb: 0] (F.stage2.mb0) to recv.F.stage2.mb0.p0 on mesh[p: 1] stream act.p1.to.p0
  recv.F.stage2.mb0.p0 = recv F stage3 [mb: 0] from send.F.stage2.mb0.p0 on mesh[p: 0] stream act.p1.to.p0
  F.stage1.mb1 = F stage1 [mb: 1] @stage1.F (recv.F.stage0.mb1.p1, param update.stage1.0) on mesh[p: 1] stream compute after F.stage2.mb0
  F.stage3.mb0 = F stage3 [mb: 0] @stage3.F (recv.F.stage2.mb0.p0, param update.stage3.0) on mesh[p: 0] stream compute after F.stage0.mb1
  F.stage2.mb1 = F stage2 [mb: 1] @stage1.F (F.stage1.mb1, param update.stage2.0) on mesh[p: 1] stream compute after F.stage1.mb1
  BI.stage3.mb0 = BI stage3 [mb: 0] @stage3.BI (param update.stage3.0) on mesh[p: 0] stream compute after F.stage3.mb0
  send.F.stage2.mb1.p0 = send F stage2 [mb: 1] (F.stage2.mb1) to recv.F.stage2.mb1.p0 on mesh[p: 1] stream act.p1.to.p0
  recv.F.stage2.mb1.p0 = recv F stage3 [mb: 1] from send.F.stage2.mb1.p0 on mesh[p: 0] stream act.p1.to.p0
  send.BI.stage3.mb0.p1 = send BI stage3 [mb: 0] (BI.stage3.mb0:1) to recv.BI.stage3.mb0.p1 on mesh[p: 0] stream grad.p0.to.p1
  recv.BI.stage3.mb0.p1 = recv BI stage2 [mb: 0] from send.BI.stage3.mb0.p1 on mesh[p: 1] stream grad.p0.to.p1
  BW.stage3.mb0 = BW stage3 [mb: 0] @stage3.BW (recv.F.stage2.mb0.p0, BI.stage3.mb0) on mesh[p: 0] stream compute after BI.stage3.mb0
  BI.stage2.mb0 = BI stage2 [mb: 0] @stage1.BI (recv.BI.stage3.mb0.p1, param update.stage2.0) on mesh[p: 1] stream compute after F.stage2.mb1
  F.stage3.mb1 = F stage3 [mb: 1] @stage3.F (recv.F.stage2.mb1.p0, param update.stage3.0) on mesh[p: 0] stream compute after BW.stage3.mb0
  BW.stage2.mb0 = BW stage2 [mb: 0] @stage1.BW (F.stage1.mb0, recv.BI.stage3.mb0.p1) on mesh[p: 1] stream compute after BI.stage2.mb0
  BI.stage3.mb1 = BI stage3 [mb: 1] @stage3.BI (param update.stage3.0) on mesh[p: 0] stream compute after F.stage3.mb1
  BI.stage1.mb0 = BI stage1 [mb: 0] @stage1.BI (BI.stage2.mb0, param update.stage1.0) on mesh[p: 1] stream compute after BW.stage2.mb0
  send.BI.stage3.mb1.p1 = send BI stage3 [mb: 1] (BI.stage3.mb1:1) to recv.BI.stage3.mb1.p1 on mesh[p: 0] stream grad.p0.to.p1
  recv.BI.stage3.mb1.p1 = recv BI stage2 [mb: 1] from send.BI.stage3.mb1.p1 on mesh[p: 1] stream grad.p0.to.p1
  send.BI.stage1.mb0.p0 = send BI stage1 [mb: 0] (BI.stage1.mb0) to recv.BI.stage1.mb0.p0 on mesh[p: 1] stream grad.p1.to.p0
  recv.BI.stage1.mb0.p0 = recv BI stage0 [mb: 0] from send.BI.stage1.mb0.p0 on mesh[p: 0] stream grad.p1.to.p0
  BW.stage3.mb1 = BW stage3 [mb: 1] @stage3.BW (recv.F.stage2.mb1.p0, BI.stage3.mb1) on mesh[p: 0] stream compute after BI.stage3.mb1
  accumulate.stage3.0 = accumulate bucket stage3.0 (grad BW.stage3.mb0 + BW.stage3.mb1) on mesh[p: 0]
  BW.stage1.mb0 = BW stage1 [mb: 0] @stage1.BW (recv.F.stage0.mb0.p1, BI.stage2.mb0) on mesh[p: 1] stream compute after BI.stage1.mb0
  BI.stage0.mb0 = BI stage0 [mb: 0] @stage0.BI on mesh[p: 0] stream compute after BW.stage3.mb1
  BI.stage2.mb1 = BI stage2 [mb: 1] @stage1.BI (recv.BI.stage3.mb1.p1, param update.stage2.0) on mesh[p: 1] stream compute after BW.stage1.mb0
  BW.stage0.mb0 = BW stage0 [mb: 0] @stage0.BW (load.x.mb0.p0, recv.BI.stage1.mb0.p0) on mesh[p: 0] stream compute after BI.stage0.mb0
  BW.stage2.mb1 = BW stage2 [mb: 1] @stage1.BW (F.stage1.mb1, recv.BI.stage3.mb1.p1) on mesh[p: 1] stream compute after BI.stage2.mb1
  accumulate.stage2.0 = accumulate bucket stage2.0 (grad BW.stage2.mb0 + BW.stage2.mb1) on mesh[p: 1]
  BI.stage0.mb1 = BI stage0 [mb: 1] @stage0.BI on mesh[p: 0] stream compute after BW.stage0.mb0
  BI.stage1.mb1 = BI stage1 [mb: 1] @stage1.BI (BI.stage2.mb1, param update.stage1.0) on mesh[p: 1] stream compute after BW.stage2.mb1
  send.BI.stage1.mb1.p0 = send BI stage1 [mb: 1] (BI.stage1.mb1) to recv.BI.stage1.mb1.p0 on mesh[p: 1] stream grad.p1.to.p0
  recv.BI.stage1.mb1.p0 = recv BI stage0 [mb: 1] from send.BI.stage1.mb1.p0 on mesh[p: 0] stream grad.p1.to.p0
  BW.stage1.mb1 = BW stage1 [mb: 1] @stage1.BW (recv.F.stage0.mb1.p1, BI.stage2.mb1) on mesh[p: 1] stream compute after BI.stage1.mb1
  accumulate.stage1.0 = accumulate bucket stage1.0 (grad BW.stage1.mb0 + BW.stage1.mb1) on mesh[p: 1]
  BW.stage0.mb1 = BW stage0 [mb: 1] @stage0.BW (load.x.mb1.p0, recv.BI.stage1.mb1.p0) on mesh[p: 0] stream compute after BI.stage0.mb1
  accumulate.stage0.0 = accumulate bucket stage0.0 (grad BW.stage0.mb0 + BW.stage0.mb1) on mesh[p: 0]
  sum_squares.stage1.0 = sum_squares bucket stage1.0 (accumulate.stage1.0) on mesh[p: 1] stream compute
  sum_squares.stage2.0 = sum_squares bucket stage2.0 (accumulate.stage2.0) on mesh[p: 1] stream compute
  update.stage1.0 = update bucket stage1.0 (accumulate.stage1.0) on mesh[p: 1] stream compute
  update.stage2.0 = update bucket stage2.0 (accumulate.stage2.0) on mesh[p: 1] stream compute
  sum_squares.stage0.0 = sum_squares bucket stage0.0 (accumulate.stage0.0) on mesh[p: 0] stream compute
  sum_squares.stage3.0 = sum_squares bucket stage3.0 (accumulate.stage3.0) on mesh[p: 0] stream compute
  update.stage0.0 = update bucket stage0.0 (accumulate.stage0.0) on mesh[p: 0] stream compute
  update.stage3.0 = update bucket stage3.0 (accumulate.stage3.0) on mesh[p: 0] stream compute
  report.chain.loss.0 = report loss chain.loss.0 (F.stage3.mb0, F.stage3.mb1) on mesh[p: 0] stream compute
  all_gather_v.norm.p0 = all_gather_v (sum_squares.stage0.0, sum_squares.stage3.0) over () with (all_gather_v.norm.p0, all_gather_v.norm.p1) on mesh[p: 0] stream gather.p0
  all_gather_v.norm.p1 = all_gather_v (sum_squares.stage1.0, sum_squares.stage2.0) over () with (all_gather_v.norm.p0, all_gather_v.norm.p1) on mesh[p: 1] stream gather.p0
  norm.p0 = norm (all_gather_v.norm.p0, all_gather_v.norm.p0:2, all_gather_v.norm.p0:3, all_gather_v.norm.p0:1) on mesh[p: 0] stream compute
  norm.p1 = norm (all_gather_v.norm.p1, all_gather_v.norm.p1:2, all_gather_v.norm.p1:3, all_gather_v.norm.p1:1) on mesh[p: 1] stream compute
  report.norm = report norm (norm.p0) on mesh[p: 0] stream compute
}
communicator p0.to.p1 pair (mesh[p: 0], mesh[p: 1]) stream act.p0.to.p1 window 2 min 1 {
  send.F.stage0.mb0.p1
  send.F.stage0.mb1.p1
}
communicator p0.to.p1.no2 pair (mesh[p: 0], mesh[p: 1]) stream grad.p0.to.p1 window 2 min 1 {
  send.BI.stage3.mb0.p1
  send.BI.stage3.mb1.p1
}
communicator p1.to.p0 pair (mesh[p: 1], mesh[p: 0]) stream act.p1.to.p0 window 2 min 1 {
  send.F.stage2.mb0.p0
  send.F.stage2.mb1.p0
}
communicator p1.to.p0.no2 pair (mesh[p: 1], mesh[p: 0]) stream grad.p1.to.p0 window 2 min 1 {
  send.BI.stage1.mb0.p0
  send.BI.stage1.mb1.p0
}
communicator group.p0.p1 group (mesh[p: 0], mesh[p: 1]) stream gather.p0 {
  all_gather_v.norm.p0
}
role p0 at mesh[p: 0] arena 768 live 768 {
  buffer %parameters.stage0.0 = parameters bucket stage0.0 at 0 bytes 64
  buffer %gradients.stage0.0 = gradients bucket stage0.0 at 64 bytes 64
  buffer %parameters.stage3.0 = parameters bucket stage3.0 at 128 bytes 64
  buffer %gradients.stage3.0 = gradients bucket stage3.0 at 192 bytes 64
  buffer %scalars = scalars at 256 bytes 64
  buffer %load.x.mb0.p0:0 = activations at 320 bytes 4
  buffer %F.stage0.mb0:0 = activations at 384 bytes 4
  buffer %load.x.mb1.p0:0 = activations at 384 bytes 4
  buffer %F.stage0.mb1:0 = activations at 448 bytes 4
  buffer %recv.F.stage2.mb0.p0:0 = communication at 448 bytes 4
  buffer %F.stage3.mb0:0 = activations at 512 bytes 4
  buffer %BI.stage3.mb0:0 = activations at 576 bytes 4
  buffer %BI.stage3.mb0:1 = activations at 640 bytes 4
  buffer %recv.F.stage2.mb1.p0:0 = communication at 704 bytes 4
  buffer %F.stage3.mb1:0 = activations at 448 bytes 4
  buffer %BI.stage3.mb1:0 = activations at 576 bytes 4
  buffer %BI.stage3.mb1:1 = activations at 640 bytes 4
  buffer %recv.BI.stage1.mb0.p0:0 = communication at 640 bytes 4
  buffer %recv.BI.stage1.mb1.p0:0 = communication at 320 bytes 4
  buffer %sum_squares.stage0.0:0 = activations at 320 bytes 8
  buffer %sum_squares.stage3.0:0 = activations at 384 bytes 8
  buffer %all_gather_v.norm.p0:0 = communication at 448 bytes 8
  buffer %all_gather_v.norm.p0:1 = communication at 512 bytes 8
  buffer %all_gather_v.norm.p0:2 = communication at 576 bytes 8
  buffer %all_gather_v.norm.p0:3 = communication at 640 bytes 8
  buffer %norm.p0:0 = activations at 704 bytes 16
  load.x.mb0.p0 on compute writes (%load.x.mb0.p0:0)
  F.stage0.mb0 on compute reads (%load.x.mb0.p0:0, %parameters.stage0.0) writes (%F.stage0.mb0:0)
  send.F.stage0.mb0.p1 on act.p0.to.p1 via p0.to.p1 after F.stage0.mb0 reads (%F.stage0.mb0:0)
  load.x.mb1.p0 on compute after send.F.stage0.mb0.p1 writes (%load.x.mb1.p0:0)
  F.stage0.mb1 on compute reads (%load.x.mb1.p0:0, %parameters.stage0.0) writes (%F.stage0.mb1:0)
  send.F.stage0.mb1.p1 on act.p0.to.p1 via p0.to.p1 after F.stage0.mb1 reads (%F.stage0.mb1:0)
  recv.F.stage2.mb0.p0 on act.p1.to.p0 via p1.to.p0 after send.F.stage0.mb1.p1 writes (%recv.F.stage2.mb0.p0:0)
  F.stage3.mb0 on compute after recv.F.stage2.mb0.p0 reads (%recv.F.stage2.mb0.p0:0, %parameters.stage3.0) writes (%F.stage3.mb0:0)
  BI.stage3.mb0 on compute reads (%parameters.stage3.0) writes (%BI.stage3.mb0:0, %BI.stage3.mb0:1)
  recv.F.stage2.mb1.p0 on act.p1.to.p0 via p1.to.p0 writes (%recv.F.stage2.mb1.p0:0)
  send.BI.stage3.mb0.p1 on grad.p0.to.p1 via p0.to.p1.no2 after BI.stage3.mb0 reads (%BI.stage3.mb0:1)
  BW.stage3.mb0 on compute reads (%recv.F.stage2.mb0.p0:0, %BI.stage3.mb0:0) writes (%gradients.stage3.0)
  F.stage3.mb1 on compute after recv.F.stage2.mb1.p0 reads (%recv.F.stage2.mb1.p0:0, %parameters.stage3.0) writes (%F.stage3.mb1:0)
  BI.stage3.mb1 on compute after send.BI.stage3.mb0.p1 reads (%parameters.stage3.0) writes (%BI.stage3.mb1:0, %BI.stage3.mb1:1)
  send.BI.stage3.mb1.p1 on grad.p0.to.p1 via p0.to.p1.no2 after BI.stage3.mb1 reads (%BI.stage3.mb1:1)
  recv.BI.stage1.mb0.p0 on grad.p1.to.p0 via p1.to.p0.no2 after send.BI.stage3.mb1.p1 writes (%recv.BI.stage1.mb0.p0:0)
  BW.stage3.mb1 on compute reads (%recv.F.stage2.mb1.p0:0, %BI.stage3.mb1:0) writes (+%gradients.stage3.0)
  BI.stage0.mb0 on compute
  BW.stage0.mb0 on compute after recv.BI.stage1.mb0.p0 reads (%load.x.mb0.p0:0, %recv.BI.stage1.mb0.p0:0) writes (%gradients.stage0.0)
  BI.stage0.mb1 on compute
  recv.BI.stage1.mb1.p0 on grad.p1.to.p0 via p1.to.p0.no2 after BW.stage0.mb0 writes (%recv.BI.stage1.mb1.p0:0)
  BW.stage0.mb1 on compute after recv.BI.stage1.mb1.p0 reads (%load.x.mb1.p0:0, %recv.BI.stage1.mb1.p0:0) writes (+%gradients.stage0.0)
  sum_squares.stage0.0 on compute reads (%gradients.stage0.0) writes (%sum_squares.stage0.0:0)
  sum_squares.stage3.0 on compute reads (%gradients.stage3.0) writes (%sum_squares.stage3.0:0)
  update.stage0.0 on compute reads (%gradients.stage0.0) writes (%parameters.stage0.0)
  update.stage3.0 on compute reads (%gradients.stage3.0) writes (%parameters.stage3.0)
  report.chain.loss.0 on compute reads (%F.stage3.mb0:0, %F.stage3.mb1:0)
  all_gather_v.norm.p0 on gather.p0 via group.p0.p1 after report.chain.loss.0 reads (%sum_squares.stage0.0:0, %sum_squares.stage3.0:0) writes (%all_gather_v.norm.p0:0, %all_gather_v.norm.p0:1, %all_gather_v.norm.p0:2, %all_gather_v.norm.p0:3)
  norm.p0 on compute after all_gather_v.norm.p0 reads (%all_gather_v.norm.p0:0, %all_gather_v.norm.p0:2, %all_gather_v.norm.p0:3, %all_gather_v.norm.p0:1) writes (%norm.p0:0)
  report.norm on compute reads (%norm.p0:0)
}
role p1 at mesh[p: 1] arena 704 live 704 {
  buffer %parameters.stage1.0 = parameters bucket stage1.0 at 0 bytes 64
  buffer %gradients.stage1.0 = gradients bucket stage1.0 at 64 bytes 64
  buffer %parameters.stage2.0 = parameters bucket stage2.0 at 128 bytes 64
  buffer %gradients.stage2.0 = gradients bucket stage2.0 at 192 bytes 64
  buffer %scalars = scalars at 256 bytes 64
  buffer %recv.F.stage0.mb0.p1:0 = communication at 320 bytes 4
  buffer %F.stage1.mb0:0 = activations at 384 bytes 4
  buffer %recv.F.stage0.mb1.p1:0 = communication at 448 bytes 4
  buffer %F.stage2.mb0:0 = activations at 512 bytes 4
  buffer %F.stage1.mb1:0 = activations at 512 bytes 4
  buffer %F.stage2.mb1:0 = activations at 576 bytes 4
  buffer %recv.BI.stage3.mb0.p1:0 = communication at 576 bytes 4
  buffer %BI.stage2.mb0:0 = activations at 640 bytes 4
  buffer %BI.stage1.mb0:0 = activations at 384 bytes 4
  buffer %recv.BI.stage3.mb1.p1:0 = communication at 576 bytes 4
  buffer %BI.stage2.mb1:0 = activations at 640 bytes 4
  buffer %BI.stage1.mb1:0 = activations at 320 bytes 4
  buffer %sum_squares.stage1.0:0 = activations at 320 bytes 8
  buffer %sum_squares.stage2.0:0 = activations at 384 bytes 8
  buffer %all_gather_v.norm.p1:0 = communication at 448 bytes 8
  buffer %all_gather_v.norm.p1:1 = communication at 512 bytes 8
  buffer %all_gather_v.norm.p1:2 = communication at 576 bytes 8
  buffer %all_gather_v.norm.p1:3 = communication at 640 bytes 8
  buffer %norm.p1:0 = activations at 320 bytes 16
  recv.F.stage0.mb0.p1 on act.p0.to.p1 via p0.to.p1 after previous norm.p1 writes (%recv.F.stage0.mb0.p1:0)
  F.stage1.mb0 on compute after recv.F.stage0.mb0.p1 reads (%recv.F.stage0.mb0.p1:0, %parameters.stage1.0) writes (%F.stage1.mb0:0)
  recv.F.stage0.mb1.p1 on act.p0.to.p1 via p0.to.p1 writes (%recv.F.stage0.mb1.p1:0)
  F.stage2.mb0 on compute reads (%F.stage1.mb0:0, %parameters.stage2.0) writes (%F.stage2.mb0:0)
  send.F.stage2.mb0.p0 on act.p1.to.p0 via p1.to.p0 after F.stage2.mb0 reads (%F.stage2.mb0:0)
  F.stage1.mb1 on compute after send.F.stage2.mb0.p0, recv.F.stage0.mb1.p1 reads (%recv.F.stage0.mb1.p1:0, %parameters.stage1.0) writes (%F.stage1.mb1:0)
  F.stage2.mb1 on compute reads (%F.stage1.mb1:0, %parameters.stage2.0) writes (%F.stage2.mb1:0)
  send.F.stage2.mb1.p0 on act.p1.to.p0 via p1.to.p0 after F.stage2.mb1 reads (%F.stage2.mb1:0)
  recv.BI.stage3.mb0.p1 on grad.p0.to.p1 via p0.to.p1.no2 after send.F.stage2.mb1.p0 writes (%recv.BI.stage3.mb0.p1:0)
  BI.stage2.mb0 on compute after recv.BI.stage3.mb0.p1 reads (%recv.BI.stage3.mb0.p1:0, %parameters.stage2.0) writes (%BI.stage2.mb0:0)
  BW.stage2.mb0 on compute reads (%F.stage1.mb0:0, %recv.BI.stage3.mb0.p1:0) writes (%gradients.stage2.0)
  BI.stage1.mb0 on compute reads (%BI.stage2.mb0:0, %parameters.stage1.0) writes (%BI.stage1.mb0:0)
  recv.BI.stage3.mb1.p1 on grad.p0.to.p1 via p0.to.p1.no2 after BW.stage2.mb0 writes (%recv.BI.stage3.mb1.p1:0)
  send.BI.stage1.mb0.p0 on grad.p1.to.p0 via p1.to.p0.no2 after BI.stage1.mb0 reads (%BI.stage1.mb0:0)
  BW.stage1.mb0 on compute reads (%recv.F.stage0.mb0.p1:0, %BI.stage2.mb0:0) writes (%gradients.stage1.0)
  BI.stage2.mb1 on compute after recv.BI.stage3.mb1.p1 reads (%recv.BI.stage3.mb1.p1:0, %parameters.stage2.0) writes (%BI.stage2.mb1:0)
  BW.stage2.mb1 on compute reads (%F.stage1.mb1:0, %recv.BI.stage3.mb1.p1:0) writes (+%gradients.stage2.0)
  BI.stage1.mb1 on compute reads (%BI.stage2.mb1:0, %parameters.stage1.0) writes (%BI.stage1.mb1:0)
  send.BI.stage1.mb1.p0 on grad.p1.to.p0 via p1.to.p0.no2 after BI.stage1.mb1 reads (%BI.stage1.mb1:0)
  BW.stage1.mb1 on compute reads (%recv.F.stage0.mb1.p1:0, %BI.stage2.mb1:0) writes (+%gradients.stage1.0)
  sum_squares.stage1.0 on compute after send.BI.stage1.mb1.p0 reads (%gradients.stage1.0) writes (%sum_squares.stage1.0:0)
  sum_squares.stage2.0 on compute reads (%gradients.stage2.0) writes (%sum_squares.stage2.0:0)
  update.stage1.0 on compute reads (%gradients.stage1.0) writes (%parameters.stage1.0)
  update.stage2.0 on compute reads (%gradients.stage2.0) writes (%parameters.stage2.0)
  all_gather_v.norm.p1 on gather.p0 via group.p0.p1 after sum_squares.stage2.0 reads (%sum_squares.stage1.0:0, %sum_squares.stage2.0:0) writes (%all_gather_v.norm.p1:0, %all_gather_v.norm.p1:1, %all_gather_v.norm.p1:2, %all_gather_v.norm.p1:3)
  norm.p1 on compute after all_gather_v.norm.p1 reads (%all_gather_v.norm.p1:0, %all_gather_v.norm.p1:2, %all_gather_v.norm.p1:3, %all_gather_v.norm.p1:1) writes (%norm.p1:0)
}
