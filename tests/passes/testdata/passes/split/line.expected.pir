pir 2 split
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
chunk stage0 of stage[0] F @stage0.F B @stage0.B #5
chunk stage1 of stage[1] F @stage1.F B @stage1.B #6
bucket stage0.0 (layer.0.w) #5
bucket stage1.0 (layer.1.w) #6
directives {
  partition model into stage: 2 #9
  split batch into mb: 2 #4
  place stage[0] #10 on cluster[pp: 0] #10
  place stage[1] #11 on cluster[pp: 1] #11
}
body @stage0.F(%x: data f64[batch: 6*, in: 2] input x,
    %layer.0.w: param f64[in: 2, out: 2] param layer.0.w)
    -> (%layer.0.contract: data f64[batch: 6*, out: 2]) {
  %x = port f64[batch: 6*, in: 2]
  %layer.0.w = port f64[in: 2, out: 2]
  %layer.0.contract = contract(%x, %layer.0.w) {dims: [in]} : f64[batch: 6*, out: 2] @F #5
}
body @stage0.B(%x: data f64[batch: 6*, in: 2] input x,
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
body @stage1.B(%layer.0.contract: saved f64[batch: 6*, out: 2],
    %sub: saved f64[batch: 6*, in: 2],
    %layer.1.w: param f64[out: 2, in: 2] param layer.1.w)
    -> (%d.layer.0.contract.contract: data f64[batch: 6*, out: 2],
    %d.layer.1.w.contract: grad f64[out: 2, in: 2] param layer.1.w as layer.1.w) {
  %layer.0.contract = port f64[batch: 6*, out: 2]
  %sub = port f64[batch: 6*, in: 2]
  %layer.1.w = port f64[out: 2, in: 2]
  %d.square.fill = fill() {scalar: 0.041666666666666664, shape: f64[batch: 6*, in: 2]} : f64[batch: 6*, in: 2] @BI #8
  %d.sub.scale = scale(%d.square.fill) {scalar: 2} : f64[batch: 6*, in: 2] @BI #8
  %d.sub.mul = mul(%d.sub.scale, %sub) : f64[batch: 6*, in: 2] @BI #8
  %d.layer.0.contract.contract = contract(%d.sub.mul, %layer.1.w) {dims: [in]} : f64[batch: 6*, out: 2] @BI #6
  %d.layer.1.w.contract = contract(%layer.0.contract, %d.sub.mul) {dims: [batch]} : f64[out: 2, in: 2] @BW #6
}
graph {
  F.stage0.mb0 = F stage0 [mb: 0] @stage0.F (load.x.mb0, param update.stage0.0) #5
  B.stage0.mb0 = B stage0 [mb: 0] @stage0.B (load.x.mb0, B.stage1.mb0) #5
  F.stage0.mb1 = F stage0 [mb: 1] @stage0.F (load.x.mb1, param update.stage0.0) #5
  B.stage0.mb1 = B stage0 [mb: 1] @stage0.B (load.x.mb1, B.stage1.mb1) #5
  F.stage1.mb0 = F stage1 [mb: 0] @stage1.F (load.target.mb0, F.stage0.mb0, param update.stage1.0) #6
  B.stage1.mb0 = B stage1 [mb: 0] @stage1.B (F.stage0.mb0, F.stage1.mb0, param update.stage1.0) #6
  F.stage1.mb1 = F stage1 [mb: 1] @stage1.F (load.target.mb1, F.stage0.mb1, param update.stage1.0) #6
  B.stage1.mb1 = B stage1 [mb: 1] @stage1.B (F.stage0.mb1, F.stage1.mb1, param update.stage1.0) #6
  load.x.mb0 = load x [mb: 0] #7
  load.x.mb1 = load x [mb: 1] #7
  load.target.mb0 = load target [mb: 0] #8
  load.target.mb1 = load target [mb: 1] #8
  accumulate.stage0.0 = accumulate bucket stage0.0 (grad B.stage0.mb0 + B.stage0.mb1) #5
  update.stage0.0 = update bucket stage0.0 (accumulate.stage0.0) #5
  accumulate.stage1.0 = accumulate bucket stage1.0 (grad B.stage1.mb0:1 + B.stage1.mb1:1) #6
  update.stage1.0 = update bucket stage1.0 (accumulate.stage1.0) #6
  report.line.loss.0 = report loss line.loss.0 (F.stage1.mb0:1, F.stage1.mb1:1) #8
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
