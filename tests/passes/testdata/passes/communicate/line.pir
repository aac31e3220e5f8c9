pir 2 placed
train "" loc("sample.pipe":2:1-2:9) {
  steps 3
  dtype f64
  seed 0
  optim adamw(lr: constant(0.01, warmup: 0, floor: 0), beta1: 0.9, beta2: 0.999, eps: 1e-08, weight_decay: 0.1) loc("sample.pipe":3:1-3:9)
}
mesh cluster(pp: 2) loc("sample.pipe":1:1-1:9)
stages stage
split batch into mb: 2 loc("sample.pipe":5:1-5:9)
param layer.0.w: f64[in: 2, out: 2] = normal(0.3) loc("model.pipe":2:1-2:9)
param layer.1.w: f64[out: 2, in: 2] = normal(0.3) loc("model.pipe":4:1-4:9)
input x: f64[batch: 12*, in: 2] loc("model.pipe":1:1-1:9)
input target: f64[batch: 12*, in: 2] loc("model.pipe":5:1-5:9)
loss line.loss.0: 24 loc("model.pipe":5:1-5:9)
chunk stage0 of stage[0] F @stage0.F B @stage0.B loc("model.pipe":2:1-2:9)
chunk stage1 of stage[1] F @stage1.F B @stage1.B loc("model.pipe":4:1-4:9)
bucket stage0.0 (layer.0.w) on cluster[pp: 0] loc("model.pipe":2:1-2:9)
bucket stage1.0 (layer.1.w) on cluster[pp: 1] loc("model.pipe":4:1-4:9)
directives {
  partition model into stage: 2 loc("sample.pipe":4:1-4:9)
  split batch into mb: 2 loc("sample.pipe":5:1-5:9)
  place stage[0] loc("sample.pipe":6:1-6:9) on cluster[pp: 0] loc("sample.pipe":6:1-6:9)
  place stage[1] loc("sample.pipe":7:1-7:9) on cluster[pp: 1] loc("sample.pipe":7:1-7:9)
}
body @stage0.F(%x: data f64[batch: 6*, in: 2] input x,
    %layer.0.w: param f64[in: 2, out: 2] param layer.0.w)
    -> (%layer.0.contract: data f64[batch: 6*, out: 2]) {
  %x = port f64[batch: 6*, in: 2]
  %layer.0.w = port f64[in: 2, out: 2]
  %layer.0.contract = contract(%x, %layer.0.w) {dims: [in]} : f64[batch: 6*, out: 2] @F loc("model.pipe":2:1-2:9)
}
body @stage0.B(%x: data f64[batch: 6*, in: 2] input x,
    %d.layer.0.contract.contract: data f64[batch: 6*, out: 2])
    -> (%d.layer.0.w.contract: grad f64[in: 2, out: 2] param layer.0.w as layer.0.w) {
  %x = port f64[batch: 6*, in: 2]
  %d.layer.0.contract.contract = port f64[batch: 6*, out: 2]
  %d.layer.0.w.contract = contract(%x, %d.layer.0.contract.contract) {dims: [batch]} : f64[in: 2, out: 2] @BW loc("model.pipe":2:1-2:9)
}
body @stage1.F(%target: data f64[batch: 6*, in: 2] input target,
    %layer.0.contract: data f64[batch: 6*, out: 2],
    %layer.1.w: param f64[out: 2, in: 2] param layer.1.w)
    -> (%sub: saved f64[batch: 6*, in: 2],
    %sum: loss_sum f64[] loss line.loss.0) {
  %target = port f64[batch: 6*, in: 2]
  %layer.0.contract = port f64[batch: 6*, out: 2]
  %layer.1.w = port f64[out: 2, in: 2]
  %layer.1.contract = contract(%layer.0.contract, %layer.1.w) {dims: [out]} : f64[batch: 6*, in: 2] @F loc("model.pipe":4:1-4:9)
  %sub = sub(%layer.1.contract, %target) : f64[batch: 6*, in: 2] @F loc("model.pipe":5:1-5:9)
  %square = square(%sub) : f64[batch: 6*, in: 2] @F loc("model.pipe":5:1-5:9)
  %sum = sum(%square) {dims: [batch, in]} : f64[] @F loc("model.pipe":5:1-5:9)
}
body @stage1.B(%layer.0.contract: saved f64[batch: 6*, out: 2],
    %sub: saved f64[batch: 6*, in: 2],
    %layer.1.w: param f64[out: 2, in: 2] param layer.1.w)
    -> (%d.layer.0.contract.contract: data f64[batch: 6*, out: 2],
    %d.layer.1.w.contract: grad f64[out: 2, in: 2] param layer.1.w as layer.1.w) {
  %layer.0.contract = port f64[batch: 6*, out: 2]
  %sub = port f64[batch: 6*, in: 2]
  %layer.1.w = port f64[out: 2, in: 2]
  %d.square.fill = fill() {scalar: 0.041666666666666664, shape: f64[batch: 6*, in: 2]} : f64[batch: 6*, in: 2] @BI loc("model.pipe":5:1-5:9)
  %d.sub.scale = scale(%d.square.fill) {scalar: 2} : f64[batch: 6*, in: 2] @BI loc("model.pipe":5:1-5:9)
  %d.sub.mul = mul(%d.sub.scale, %sub) : f64[batch: 6*, in: 2] @BI loc("model.pipe":5:1-5:9)
  %d.layer.0.contract.contract = contract(%d.sub.mul, %layer.1.w) {dims: [in]} : f64[batch: 6*, out: 2] @BI loc("model.pipe":4:1-4:9)
  %d.layer.1.w.contract = contract(%layer.0.contract, %d.sub.mul) {dims: [batch]} : f64[out: 2, in: 2] @BW loc("model.pipe":4:1-4:9)
}
graph {
  F.stage0.mb0 = F stage0 [mb: 0] @stage0.F (load.x.mb0.pp0, param update.stage0.0) on cluster[pp: 0] loc("model.pipe":2:1-2:9)
  B.stage0.mb0 = B stage0 [mb: 0] @stage0.B (load.x.mb0.pp0, B.stage1.mb0) on cluster[pp: 0] loc("model.pipe":2:1-2:9)
  F.stage0.mb1 = F stage0 [mb: 1] @stage0.F (load.x.mb1.pp0, param update.stage0.0) on cluster[pp: 0] loc("model.pipe":2:1-2:9)
  B.stage0.mb1 = B stage0 [mb: 1] @stage0.B (load.x.mb1.pp0, B.stage1.mb1) on cluster[pp: 0] loc("model.pipe":2:1-2:9)
  F.stage1.mb0 = F stage1 [mb: 0] @stage1.F (load.target.mb0.pp1, F.stage0.mb0, param update.stage1.0) on cluster[pp: 1] loc("model.pipe":4:1-4:9)
  B.stage1.mb0 = B stage1 [mb: 0] @stage1.B (F.stage0.mb0, F.stage1.mb0, param update.stage1.0) on cluster[pp: 1] loc("model.pipe":4:1-4:9)
  F.stage1.mb1 = F stage1 [mb: 1] @stage1.F (load.target.mb1.pp1, F.stage0.mb1, param update.stage1.0) on cluster[pp: 1] loc("model.pipe":4:1-4:9)
  B.stage1.mb1 = B stage1 [mb: 1] @stage1.B (F.stage0.mb1, F.stage1.mb1, param update.stage1.0) on cluster[pp: 1] loc("model.pipe":4:1-4:9)
  load.x.mb0.pp0 = load x [mb: 0] on cluster[pp: 0] loc("model.pipe":1:1-1:9)
  load.x.mb1.pp0 = load x [mb: 1] on cluster[pp: 0] loc("model.pipe":1:1-1:9)
  load.target.mb0.pp1 = load target [mb: 0] on cluster[pp: 1] loc("model.pipe":5:1-5:9)
  load.target.mb1.pp1 = load target [mb: 1] on cluster[pp: 1] loc("model.pipe":5:1-5:9)
  accumulate.stage0.0 = accumulate bucket stage0.0 (grad B.stage0.mb0 + B.stage0.mb1) on cluster[pp: 0] loc("model.pipe":2:1-2:9)
  update.stage0.0 = update bucket stage0.0 (accumulate.stage0.0) on cluster[pp: 0] loc("model.pipe":2:1-2:9)
  accumulate.stage1.0 = accumulate bucket stage1.0 (grad B.stage1.mb0:1 + B.stage1.mb1:1) on cluster[pp: 1] loc("model.pipe":4:1-4:9)
  update.stage1.0 = update bucket stage1.0 (accumulate.stage1.0) on cluster[pp: 1] loc("model.pipe":4:1-4:9)
  report.line.loss.0 = report loss line.loss.0 (F.stage1.mb0:1, F.stage1.mb1:1) on cluster[pp: 1] loc("model.pipe":5:1-5:9)
}
