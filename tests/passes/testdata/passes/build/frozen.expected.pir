pir 2 built
train "" #1 {
  steps 3
  dtype f64
  seed 0
  optim adamw(lr: constant(0.01, warmup: 0, floor: 0), beta1: 0.9, beta2: 0.999, eps: 1e-08, weight_decay: 0.1) #2
}
mesh cluster(pp: 1) #3
stages stage
param layer.0.w: f64[in: 2, out: 2] = normal(0.3) frozen #4
param layer.1.w: f64[out: 2, in: 2] = normal(0.3) #5
input x: f64[batch: 12*, in: 2] #6
input target: f64[batch: 12*, in: 2] #7
loss line.loss.0: 24 #7
chunk stage0 of stage[0] F @stage0.F B @stage0.B #4
bucket stage0.0 (layer.1.w) #5
bucket stage0.1 (layer.0.w) #4
directives {
  partition model into stage: 1 #8
  split batch into mb: 2 #9
  place stage[0] #10 on cluster[pp: 0] #10
  freeze layer[0] #11
}
body @stage0.F(%x: data f64[batch: 12*, in: 2] input x,
    %target: data f64[batch: 12*, in: 2] input target,
    %layer.0.w: param f64[in: 2, out: 2] param layer.0.w,
    %layer.1.w: param f64[out: 2, in: 2] param layer.1.w)
    -> (%layer.0.contract: saved f64[batch: 12*, out: 2],
    %sub: saved f64[batch: 12*, in: 2],
    %sum: loss_sum f64[] loss line.loss.0) {
  %x = port f64[batch: 12*, in: 2]
  %target = port f64[batch: 12*, in: 2]
  %layer.0.w = port f64[in: 2, out: 2]
  %layer.1.w = port f64[out: 2, in: 2]
  %layer.0.contract = contract(%x, %layer.0.w) {dims: [in]} : f64[batch: 12*, out: 2] @F #4
  %layer.1.contract = contract(%layer.0.contract, %layer.1.w) {dims: [out]} : f64[batch: 12*, in: 2] @F #5
  %sub = sub(%layer.1.contract, %target) : f64[batch: 12*, in: 2] @F #7
  %square = square(%sub) : f64[batch: 12*, in: 2] @F #7
  %sum = sum(%square) {dims: [batch, in]} : f64[] @F #7
}
body @stage0.B(%layer.0.contract: saved f64[batch: 12*, out: 2],
    %sub: saved f64[batch: 12*, in: 2])
    -> (%d.layer.1.w.contract: grad f64[out: 2, in: 2] param layer.1.w as layer.1.w) {
  %layer.0.contract = port f64[batch: 12*, out: 2]
  %sub = port f64[batch: 12*, in: 2]
  %d.square.fill = fill() {scalar: 0.041666666666666664, shape: f64[batch: 12*, in: 2]} : f64[batch: 12*, in: 2] @BI #7
  %d.sub.scale = scale(%d.square.fill) {scalar: 2} : f64[batch: 12*, in: 2] @BI #7
  %d.sub.mul = mul(%d.sub.scale, %sub) : f64[batch: 12*, in: 2] @BI #7
  %d.layer.1.w.contract = contract(%layer.0.contract, %d.sub.mul) {dims: [batch]} : f64[out: 2, in: 2] @BW #5
}
graph {
  F.stage0 = F stage0 @stage0.F (load.x, load.target, param _:0, param update.stage0.0) #4
  B.stage0 = B stage0 @stage0.B (F.stage0, F.stage0:1) #4
  load.x = load x #6
  load.target = load target #7
  accumulate.stage0.0 = accumulate bucket stage0.0 (grad B.stage0) #5
  update.stage0.0 = update bucket stage0.0 (accumulate.stage0.0) #5
  report.line.loss.0 = report loss line.loss.0 (F.stage0:2) #7
}
locations {
  1 "sample.pipe":2:1-2:9
  2 "sample.pipe":3:1-3:9
  3 "sample.pipe":1:1-1:9
  4 "model.pipe":2:1-2:9
  5 "model.pipe":4:1-4:9
  6 "model.pipe":1:1-1:9
  7 "model.pipe":5:1-5:9
  8 "sample.pipe":4:1-4:9
  9 "sample.pipe":5:1-5:9
  10 "sample.pipe":6:1-6:9
  11 "sample.pipe":7:1-7:9
}
