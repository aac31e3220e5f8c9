pir 2 split
train "" #1 {
  steps 3
  dtype f64
  seed 0
  optim adamw(lr: constant(0.01, warmup: 0, floor: 0), beta1: 0.9, beta2: 0.999, eps: 1e-08, weight_decay: 0.1) #2
}
mesh cluster(pp: 1) #3
stages stage
split batch into mb: 2 #4
param layer.0.w: f64[in: 2, out: 2] = normal(0.3) #5
param layer.1.w: f64[out: 2, in: 2] = normal(0.3) #6
input x: f64[batch: 12*, in: 2] #7
input target: f64[batch: 12*, in: 2] #8
loss line.loss.0: 24 #8
chunk stage0 of stage[0] F @stage0.F R @stage0.R B @stage0.B #5
bucket stage0.0 (layer.0.w, layer.1.w) #5
directives {
  partition model into stage: 1 #9
  split batch into mb: 2 #4
  place stage[0] #10 on cluster[pp: 0] #10
  recompute stage[0] #11
}
body @stage0.B(%x: data f64[batch: 6*, in: 2] input x,
    %layer.0.contract: saved f64[batch: 6*, out: 2],
    %sub: saved f64[batch: 6*, in: 2],
    %layer.1.w: param f64[out: 2, in: 2] param layer.1.w)
    -> (%d.layer.0.w.contract: grad f64[in: 2, out: 2] param layer.0.w,
    %d.layer.1.w.contract: grad f64[out: 2, in: 2] param layer.1.w as layer.1.w) {
  %x = port f64[batch: 6*, in: 2]
  %layer.0.contract = port f64[batch: 6*, out: 2]
  %sub = port f64[batch: 6*, in: 2]
  %layer.1.w = port f64[out: 2, in: 2]
  %d.square.fill = fill() {scalar: 0.041666666666666664, shape: f64[batch: 6*, in: 2]} : f64[batch: 6*, in: 2] @BI #8
  %d.sub.scale = scale(%d.square.fill) {scalar: 2} : f64[batch: 6*, in: 2] @BI #8
  %d.sub.mul = mul(%d.sub.scale, %sub) : f64[batch: 6*, in: 2] @BI #8
  %d.layer.0.contract.contract = contract(%d.sub.mul, %layer.1.w) {dims: [in]} : f64[batch: 6*, out: 2] @BI #6
  %d.layer.1.w.contract = contract(%layer.0.contract, %d.sub.mul) {dims: [batch]} : f64[out: 2, in: 2] @BW #6
  %d.layer.0.w.contract = contract(%x, %d.layer.0.contract.contract) {dims: [batch]} : f64[in: 2, out: 2] @BW #5
}
body @stage0.F(%x: data f64[batch: 6*, in: 2] input x,
    %target: data f64[batch: 6*, in: 2] input target,
    %layer.0.w: param f64[in: 2, out: 2] param layer.0.w as d.layer.0.w.contract,
    %layer.1.w: param f64[out: 2, in: 2] param layer.1.w)
    -> (%sum: loss_sum f64[] loss line.loss.0) {
  %x = port f64[batch: 6*, in: 2]
  %target = port f64[batch: 6*, in: 2]
  %layer.0.w = port f64[in: 2, out: 2]
  %layer.1.w = port f64[out: 2, in: 2]
  %layer.0.contract = contract(%x, %layer.0.w) {dims: [in]} : f64[batch: 6*, out: 2] @F #5
  %layer.1.contract = contract(%layer.0.contract, %layer.1.w) {dims: [out]} : f64[batch: 6*, in: 2] @F #6
  %sub = sub(%layer.1.contract, %target) : f64[batch: 6*, in: 2] @F #8
  %square = square(%sub) : f64[batch: 6*, in: 2] @F #8
  %sum = sum(%square) {dims: [batch, in]} : f64[] @F #8
}
body @stage0.R(%x: data f64[batch: 6*, in: 2] input x,
    %target: data f64[batch: 6*, in: 2] input target,
    %layer.0.w: param f64[in: 2, out: 2] param layer.0.w as d.layer.0.w.contract,
    %layer.1.w: param f64[out: 2, in: 2] param layer.1.w)
    -> (%layer.0.contract: saved f64[batch: 6*, out: 2],
    %sub: saved f64[batch: 6*, in: 2]) {
  %x = port f64[batch: 6*, in: 2]
  %target = port f64[batch: 6*, in: 2]
  %layer.0.w = port f64[in: 2, out: 2]
  %layer.1.w = port f64[out: 2, in: 2]
  %layer.0.contract = contract(%x, %layer.0.w) {dims: [in]} : f64[batch: 6*, out: 2] @F #5
  %layer.1.contract = contract(%layer.0.contract, %layer.1.w) {dims: [out]} : f64[batch: 6*, in: 2] @F #6
  %sub = sub(%layer.1.contract, %target) : f64[batch: 6*, in: 2] @F #8
}
graph {
  F.stage0.mb0 = F stage0 [mb: 0] @stage0.F (load.x.mb0, load.target.mb0, param update.stage0.0, param update.stage0.0:1) #5
  R.stage0.mb0 = R stage0 [mb: 0] @stage0.R (load.x.mb0, load.target.mb0, param update.stage0.0, param update.stage0.0:1) #11
  B.stage0.mb0 = B stage0 [mb: 0] @stage0.B (load.x.mb0, R.stage0.mb0, R.stage0.mb0:1, param update.stage0.0:1) #5
  F.stage0.mb1 = F stage0 [mb: 1] @stage0.F (load.x.mb1, load.target.mb1, param update.stage0.0, param update.stage0.0:1) #5
  R.stage0.mb1 = R stage0 [mb: 1] @stage0.R (load.x.mb1, load.target.mb1, param update.stage0.0, param update.stage0.0:1) #11
  B.stage0.mb1 = B stage0 [mb: 1] @stage0.B (load.x.mb1, R.stage0.mb1, R.stage0.mb1:1, param update.stage0.0:1) #5
  load.x.mb0 = load x [mb: 0] #7
  load.target.mb0 = load target [mb: 0] #8
  load.x.mb1 = load x [mb: 1] #7
  load.target.mb1 = load target [mb: 1] #8
  accumulate.stage0.0 = accumulate bucket stage0.0 (grad B.stage0.mb0 + B.stage0.mb1, grad B.stage0.mb0:1 + B.stage0.mb1:1) #5
  update.stage0.0 = update bucket stage0.0 (accumulate.stage0.0, accumulate.stage0.0:1) #5
  report.line.loss.0 = report loss line.loss.0 (F.stage0.mb0, F.stage0.mb1) #8
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
}
