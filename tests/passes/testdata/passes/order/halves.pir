pir 2 communicating
train "" #1 {
  steps 3
  dtype f64
  seed 0
  optim adamw(lr: constant(0.01, warmup: 0, floor: 0), beta1: 0.9, beta2: 0.999, eps: 1e-08, weight_decay: 0.1) #2
}
mesh cluster(pp: 2) #3
stages stage
split batch into mb: 2 #4
param layer.0.w: f64[in: 2, out: 2] = normal(0.3) #5
param layer.1.w: f64[out: 2, in: 2] = normal(0.3) #6
input x: f64[batch: 12*, in: 2] #7
input target: f64[batch: 12*, in: 2] #8
loss line.loss.0: 24 #8
chunk stage0 of stage[0] F @stage0.F BI @stage0.BI BW @stage0.BW #5
chunk stage1 of stage[1] F @stage1.F BI @stage1.BI BW @stage1.BW #6
bucket stage0.0 (layer.0.w) on cluster[pp: 0] #5
bucket stage1.0 (layer.1.w) on cluster[pp: 1] #6
directives {
  partition model into stage: 2 #9
  split batch into mb: 2 #4
  place stage[0] #10 on cluster[pp: 0] #10
  place stage[1] #11 on cluster[pp: 1] #11
  order {
    rank cluster[pp: 0] #12 {
      F stage[0] mb[0] #13
      F stage[0] mb[1] #14
      BI stage[0] mb[0] #15
      BW stage[0] mb[0] #16
      BI stage[0] mb[1] #17
      BW stage[0] mb[1] #18
    }
    rank cluster[pp: 1] #19 {
      F stage[1] mb[0] #20
      BI stage[1] mb[0] #21
      BW stage[1] mb[0] #22
      F stage[1] mb[1] #23
      BI stage[1] mb[1] #24
      BW stage[1] mb[1] #25
    }
  } #26
}
body @stage0.F(%x: data f64[batch: 6*, in: 2] input x,
    %layer.0.w: param f64[in: 2, out: 2] param layer.0.w)
    -> (%layer.0.contract: data f64[batch: 6*, out: 2]) {
  %x = port f64[batch: 6*, in: 2]
  %layer.0.w = port f64[in: 2, out: 2]
  %layer.0.contract = contract(%x, %layer.0.w) {dims: [in]} : f64[batch: 6*, out: 2] @F #5
}
body @stage0.BI()
    -> ()
body @stage0.BW(%x: data f64[batch: 6*, in: 2] input x,
    %d.layer.0.contract.contract: data f64[batch: 6*, out: 2])
    -> (%d.layer.0.w.contract: grad f64[in: 2, out: 2] param layer.0.w as layer.0.w) {
  %x = port f64[batch: 6*, in: 2]
  %d.layer.0.contract.contract = port f64[batch: 6*, out: 2]
  %d.layer.0.w.contract = contract(%x, %d.layer.0.contract.contract) {dims: [batch]} : f64[in: 2, out: 2] @BW #5
}
body @stage1.F(%target: data f64[batch: 6*, in: 2] input target,
    %layer.0.contract: data f64[batch: 6*, out: 2],
    %layer.1.w: param f64[out: 2, in: 2] param layer.1.w)
    -> (%sub: saved f64[batch: 6*, in: 2],
    %sum: loss_sum f64[] loss line.loss.0) {
  %target = port f64[batch: 6*, in: 2]
  %layer.0.contract = port f64[batch: 6*, out: 2]
  %layer.1.w = port f64[out: 2, in: 2]
  %layer.1.contract = contract(%layer.0.contract, %layer.1.w) {dims: [out]} : f64[batch: 6*, in: 2] @F #6
  %sub = sub(%layer.1.contract, %target) : f64[batch: 6*, in: 2] @F #8
  %square = square(%sub) : f64[batch: 6*, in: 2] @F #8
  %sum = sum(%square) {dims: [batch, in]} : f64[] @F #8
}
body @stage1.BI(%sub: saved f64[batch: 6*, in: 2],
    %layer.1.w: param f64[out: 2, in: 2] param layer.1.w)
    -> (%d.sub.mul: saved f64[batch: 6*, in: 2],
    %d.layer.0.contract.contract: data f64[batch: 6*, out: 2]) {
  %sub = port f64[batch: 6*, in: 2]
  %layer.1.w = port f64[out: 2, in: 2]
  %d.square.fill = fill() {scalar: 0.041666666666666664, shape: f64[batch: 6*, in: 2]} : f64[batch: 6*, in: 2] @BI #8
  %d.sub.scale = scale(%d.square.fill) {scalar: 2} : f64[batch: 6*, in: 2] @BI #8
  %d.sub.mul = mul(%d.sub.scale, %sub) : f64[batch: 6*, in: 2] @BI #8
  %d.layer.0.contract.contract = contract(%d.sub.mul, %layer.1.w) {dims: [in]} : f64[batch: 6*, out: 2] @BI #6
}
body @stage1.BW(%layer.0.contract: saved f64[batch: 6*, out: 2],
    %d.sub.mul: saved f64[batch: 6*, in: 2])
    -> (%d.layer.1.w.contract: grad f64[out: 2, in: 2] param layer.1.w as layer.1.w) {
  %layer.0.contract = port f64[batch: 6*, out: 2]
  %d.sub.mul = port f64[batch: 6*, in: 2]
  %d.layer.1.w.contract = contract(%layer.0.contract, %d.sub.mul) {dims: [batch]} : f64[out: 2, in: 2] @BW #6
}
graph {
  F.stage0.mb0 = F stage0 [mb: 0] @stage0.F (load.x.mb0.pp0, param update.stage0.0) on cluster[pp: 0] #5
  BI.stage0.mb0 = BI stage0 [mb: 0] @stage0.BI on cluster[pp: 0] #5
  BW.stage0.mb0 = BW stage0 [mb: 0] @stage0.BW (load.x.mb0.pp0, recv.BI.stage1.mb0.pp0) on cluster[pp: 0] #5
  F.stage0.mb1 = F stage0 [mb: 1] @stage0.F (load.x.mb1.pp0, param update.stage0.0) on cluster[pp: 0] #5
  BI.stage0.mb1 = BI stage0 [mb: 1] @stage0.BI on cluster[pp: 0] #5
  BW.stage0.mb1 = BW stage0 [mb: 1] @stage0.BW (load.x.mb1.pp0, recv.BI.stage1.mb1.pp0) on cluster[pp: 0] #5
  F.stage1.mb0 = F stage1 [mb: 0] @stage1.F (load.target.mb0.pp1, recv.F.stage0.mb0.pp1, param update.stage1.0) on cluster[pp: 1] #6
  BI.stage1.mb0 = BI stage1 [mb: 0] @stage1.BI (F.stage1.mb0, param update.stage1.0) on cluster[pp: 1] #6
  BW.stage1.mb0 = BW stage1 [mb: 0] @stage1.BW (recv.F.stage0.mb0.pp1, BI.stage1.mb0) on cluster[pp: 1] #6
  F.stage1.mb1 = F stage1 [mb: 1] @stage1.F (load.target.mb1.pp1, recv.F.stage0.mb1.pp1, param update.stage1.0) on cluster[pp: 1] #6
  BI.stage1.mb1 = BI stage1 [mb: 1] @stage1.BI (F.stage1.mb1, param update.stage1.0) on cluster[pp: 1] #6
  BW.stage1.mb1 = BW stage1 [mb: 1] @stage1.BW (recv.F.stage0.mb1.pp1, BI.stage1.mb1) on cluster[pp: 1] #6
  send.F.stage0.mb0.pp1 = send F stage0 [mb: 0] (F.stage0.mb0) to recv.F.stage0.mb0.pp1 on cluster[pp: 0] #10
  recv.F.stage0.mb0.pp1 = recv F stage1 [mb: 0] from send.F.stage0.mb0.pp1 on cluster[pp: 1] #11
  send.F.stage0.mb1.pp1 = send F stage0 [mb: 1] (F.stage0.mb1) to recv.F.stage0.mb1.pp1 on cluster[pp: 0] #10
  recv.F.stage0.mb1.pp1 = recv F stage1 [mb: 1] from send.F.stage0.mb1.pp1 on cluster[pp: 1] #11
  send.BI.stage1.mb0.pp0 = send BI stage1 [mb: 0] (BI.stage1.mb0:1) to recv.BI.stage1.mb0.pp0 on cluster[pp: 1] #11
  recv.BI.stage1.mb0.pp0 = recv BI stage0 [mb: 0] from send.BI.stage1.mb0.pp0 on cluster[pp: 0] #10
  send.BI.stage1.mb1.pp0 = send BI stage1 [mb: 1] (BI.stage1.mb1:1) to recv.BI.stage1.mb1.pp0 on cluster[pp: 1] #11
  recv.BI.stage1.mb1.pp0 = recv BI stage0 [mb: 1] from send.BI.stage1.mb1.pp0 on cluster[pp: 0] #10
  load.x.mb0.pp0 = load x [mb: 0] on cluster[pp: 0] #7
  load.x.mb1.pp0 = load x [mb: 1] on cluster[pp: 0] #7
  load.target.mb0.pp1 = load target [mb: 0] on cluster[pp: 1] #8
  load.target.mb1.pp1 = load target [mb: 1] on cluster[pp: 1] #8
  accumulate.stage0.0 = accumulate bucket stage0.0 (grad BW.stage0.mb0 + BW.stage0.mb1) on cluster[pp: 0] #5
  accumulate.stage1.0 = accumulate bucket stage1.0 (grad BW.stage1.mb0 + BW.stage1.mb1) on cluster[pp: 1] #6
  sum_squares.stage0.0 = sum_squares bucket stage0.0 (accumulate.stage0.0) on cluster[pp: 0] #5
  sum_squares.stage1.0 = sum_squares bucket stage1.0 (accumulate.stage1.0) on cluster[pp: 1] #6
  all_gather_v.norm.pp0 = all_gather_v (sum_squares.stage0.0) over () with (all_gather_v.norm.pp0, all_gather_v.norm.pp1) on cluster[pp: 0] #10
  norm.pp0 = norm (all_gather_v.norm.pp0, all_gather_v.norm.pp0:1) on cluster[pp: 0] #2
  all_gather_v.norm.pp1 = all_gather_v (sum_squares.stage1.0) over () with (all_gather_v.norm.pp0, all_gather_v.norm.pp1) on cluster[pp: 1] #11
  norm.pp1 = norm (all_gather_v.norm.pp1, all_gather_v.norm.pp1:1) on cluster[pp: 1] #2
  report.norm = report norm (norm.pp0) on cluster[pp: 0] #2
  update.stage0.0 = update bucket stage0.0 (accumulate.stage0.0) on cluster[pp: 0] #5
  update.stage1.0 = update bucket stage1.0 (accumulate.stage1.0) on cluster[pp: 1] #6
  report.line.loss.0 = report loss line.loss.0 (F.stage1.mb0:1, F.stage1.mb1:1) on cluster[pp: 1] #8
}
locations {
  1 "sample.pipe":2:1-2:9
  2 "sample.pipe":3:1-3:9
  3 "sample.pipe":1:1-1:9
  4 "sample.pipe":5:1-5:9
  5 "model.pipe":2:1-2:9
  6 "model.pipe":4:1-4:9
  7 "model.pipe":1:1-1:9
  8 "model.pipe":5:1-5:9
  9 "sample.pipe":4:1-4:9
  10 "sample.pipe":6:1-6:9
  11 "sample.pipe":7:1-7:9
  12 "sample.pipe":9:1-9:9
  13 "sample.pipe":10:1-10:9
  14 "sample.pipe":11:1-11:9
  15 "sample.pipe":12:1-12:9
  16 "sample.pipe":13:1-13:9
  17 "sample.pipe":14:1-14:9
  18 "sample.pipe":15:1-15:9
  19 "sample.pipe":16:1-16:9
  20 "sample.pipe":17:1-17:9
  21 "sample.pipe":18:1-18:9
  22 "sample.pipe":19:1-19:9
  23 "sample.pipe":20:1-20:9
  24 "sample.pipe":21:1-21:9
  25 "sample.pipe":22:1-22:9
  26 "sample.pipe":8:1-8:9
}
