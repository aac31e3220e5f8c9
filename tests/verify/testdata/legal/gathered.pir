// A norm over two stages: every device gathers the sums of squares of both.
pir 2 communicating
train clipped #1 {
  steps 2
  dtype f32
  seed 0
  data synthetic(classes: 0, batch: 2) #2
  optim sgd(lr: constant(0.01, warmup: 0, floor: 0), momentum: 0, weight_decay: 0, clip: 0.1) #3
}
mesh cluster(pp: 2) #4
split batch into mb: 1 #5
param first.0.w: f32[wide: 2, mid: 2] = normal(0.1) #6
param last.0.w: f32[mid: 2, out: 2] = normal(0.1) #7
input x: f32[batch: 2*, wide: 2] #8
loss loss.0: 4 #9
chunk stage0 of stage[0] F @stage0.F B @stage0.B #10
chunk stage1 of stage[1] F @stage1.F B @stage1.B #11
bucket stage0.0 (first.0.w) on cluster[pp: 0] #6
bucket stage1.0 (last.0.w) on cluster[pp: 1] #7
body @stage0.F(%x: data f32[batch: 2*, wide: 2] input x,
    %first.0.w: param f32[wide: 2, mid: 2] param first.0.w)
    -> (%first.0.contract: data f32[batch: 2*, mid: 2]) {
  %x = port f32[batch: 2*, wide: 2]
  %first.0.w = port f32[wide: 2, mid: 2]
  %first.0.contract = contract(%x, %first.0.w) {dims: [wide]} : f32[batch: 2*, mid: 2] @F #10
}
body @stage0.B(%x: data f32[batch: 2*, wide: 2] input x,
    %d.first.0.contract.contract: data f32[batch: 2*, mid: 2])
    -> (%d.first.0.w.contract: grad f32[wide: 2, mid: 2] param first.0.w as first.0.w) {
  %x = port f32[batch: 2*, wide: 2]
  %d.first.0.contract.contract = port f32[batch: 2*, mid: 2]
  %d.first.0.w.contract = contract(%x, %d.first.0.contract.contract) {dims: [batch]} : f32[wide: 2, mid: 2] @BW #10
}
body @stage1.F(%first.0.contract: data f32[batch: 2*, mid: 2],
    %last.0.w: param f32[mid: 2, out: 2] param last.0.w)
    -> (%last.0.contract: saved f32[batch: 2*, out: 2],
    %sum: loss_sum f32[] loss loss.0) {
  %first.0.contract = port f32[batch: 2*, mid: 2]
  %last.0.w = port f32[mid: 2, out: 2]
  %last.0.contract = contract(%first.0.contract, %last.0.w) {dims: [mid]} : f32[batch: 2*, out: 2] @F #11
  %squares.0.mul = mul(%last.0.contract, %last.0.contract) : f32[batch: 2*, out: 2] @F #12
  %sum = sum(%squares.0.mul) {dims: [batch, out]} : f32[] @F #9
}
body @stage1.B(%first.0.contract: saved f32[batch: 2*, mid: 2],
    %last.0.contract: saved f32[batch: 2*, out: 2],
    %last.0.w: param f32[mid: 2, out: 2] param last.0.w)
    -> (%d.first.0.contract.contract: data f32[batch: 2*, mid: 2],
    %d.last.0.w.contract: grad f32[mid: 2, out: 2] param last.0.w as last.0.w) {
  %first.0.contract = port f32[batch: 2*, mid: 2]
  %last.0.contract = port f32[batch: 2*, out: 2]
  %last.0.w = port f32[mid: 2, out: 2]
  %d.squares.0.mul.fill = fill() {scalar: 0.25, shape: f32[batch: 2*, out: 2]} : f32[batch: 2*, out: 2] @BI #9
  %d.last.0.contract.mul = mul(%d.squares.0.mul.fill, %last.0.contract) : f32[batch: 2*, out: 2] @BI #12
  %d.last.0.contract.mul.1 = mul(%d.squares.0.mul.fill, %last.0.contract) : f32[batch: 2*, out: 2] @BI #12
  %d.last.0.contract.add = add(%d.last.0.contract.mul, %d.last.0.contract.mul.1) : f32[batch: 2*, out: 2] @BI #11
  %d.first.0.contract.contract = contract(%d.last.0.contract.add, %last.0.w) {dims: [out]} : f32[batch: 2*, mid: 2] @BI #11
  %d.last.0.w.contract = contract(%first.0.contract, %d.last.0.contract.add) {dims: [batch]} : f32[mid: 2, out: 2] @BW #11
}
graph {
  F.stage0.mb0 = F stage0 [mb: 0] @stage0.F (load.x.mb0.pp0, param update.stage0.0) on cluster[pp: 0] #10
  B.stage0.mb0 = B stage0 [mb: 0] @stage0.B (load.x.mb0.pp0, recv.B.stage1.mb0.pp0) on cluster[pp: 0] #10
  F.stage1.mb0 = F stage1 [mb: 0] @stage1.F (recv.F.stage0.mb0.pp1, param update.stage1.0) on cluster[pp: 1] #11
  B.stage1.mb0 = B stage1 [mb: 0] @stage1.B (recv.F.stage0.mb0.pp1, F.stage1.mb0, param update.stage1.0) on cluster[pp: 1] #11
  send.F.stage0.mb0.pp1 = send F stage0 [mb: 0] (F.stage0.mb0) to recv.F.stage0.mb0.pp1 on cluster[pp: 0] #10
  recv.F.stage0.mb0.pp1 = recv F stage1 [mb: 0] from send.F.stage0.mb0.pp1 on cluster[pp: 1] #10
  send.B.stage1.mb0.pp0 = send B stage1 [mb: 0] (B.stage1.mb0) to recv.B.stage1.mb0.pp0 on cluster[pp: 1] #11
  recv.B.stage1.mb0.pp0 = recv B stage0 [mb: 0] from send.B.stage1.mb0.pp0 on cluster[pp: 0] #11
  load.x.mb0.pp0 = load x [mb: 0] on cluster[pp: 0] #8
  accumulate.stage0.0 = accumulate bucket stage0.0 (grad B.stage0.mb0) on cluster[pp: 0] #6
  sum_squares.stage0.0 = sum_squares bucket stage0.0 (accumulate.stage0.0) on cluster[pp: 0] #6
  accumulate.stage1.0 = accumulate bucket stage1.0 (grad B.stage1.mb0:1) on cluster[pp: 1] #7
  sum_squares.stage1.0 = sum_squares bucket stage1.0 (accumulate.stage1.0) on cluster[pp: 1] #7
  all_gather_v.norm.pp0 = all_gather_v (sum_squares.stage0.0) over () with (all_gather_v.norm.pp0, all_gather_v.norm.pp1) on cluster[pp: 0] #3
  norm.pp0 = norm (all_gather_v.norm.pp0, all_gather_v.norm.pp0:1) on cluster[pp: 0] #3
  all_gather_v.norm.pp1 = all_gather_v (sum_squares.stage1.0) over () with (all_gather_v.norm.pp0, all_gather_v.norm.pp1) on cluster[pp: 1] #3
  norm.pp1 = norm (all_gather_v.norm.pp1, all_gather_v.norm.pp1:1) on cluster[pp: 1] #3
  report.norm = report norm (norm.pp0) on cluster[pp: 0] #3
  update.stage0.0 = update bucket stage0.0 (accumulate.stage0.0, norm.pp0) on cluster[pp: 0] #6
  update.stage1.0 = update bucket stage1.0 (accumulate.stage1.0, norm.pp1) on cluster[pp: 1] #7
  report.loss.0 = report loss loss.0 (F.stage1.mb0:1) on cluster[pp: 1] #9
}
locations {
  1 "clipped.pipe":20:7-20:14
  2 "clipped.pipe":21:12-21:31
  3 "clipped.pipe":22:12-22:36
  4 "clipped.pipe":18:1-18:20
  5 "clipped.pipe":25:5-25:27
  6 "clipped.pipe":7:12-7:27
  7 "clipped.pipe":12:12-12:26
  8 "clipped.pipe":2:5-2:36
  9 "clipped.pipe":3:5-3:33
  10 "clipped.pipe":8:12-8:17
  11 "clipped.pipe":13:12-13:17
  12 "clipped.pipe":16:69-16:74
}
