// Two stages that share a weight, whose backward is whole or in two parts, and whose forward may run again: bodies without a node yet.
pir 2 built
train halves {
  steps 3
  dtype f32
  seed 0
  data synthetic(classes: 0, batch: 8)
  optim sgd(lr: constant(0.1, warmup: 0, floor: 0), momentum: 0, weight_decay: 0)
}
mesh c(p: 2)
stages stage
param tied: f32[dim: 4, e: 4] = normal(0.2)
param first.0.gain: f32[e: 4] = ones(1)
param last.0.gain: f32[e: 4] = ones(1)
input x: f32[batch: 8*, dim: 4]
input y: f32[batch: 8*, dim: 4]
loss loss.0: 32
chunk stage0 of stage[0] F @stage0.F B @stage0.B BI @stage0.BI BW @stage0.BW
chunk stage1 of stage[1] F @stage1.F R @stage1.R B @stage1.B BI @stage1.BI BW @stage1.BW recomputed @stage1.recomputed
bucket stage0.0 (tied)
bucket stage0.1 (first.0.gain)
bucket stage1.0 (last.0.gain)
body @stage0.F(%x: data f32[batch: 8*, dim: 4] input x,
    %tied: param f32[dim: 4, e: 4] param tied,
    %first.0.gain: param f32[e: 4] param first.0.gain)
    -> (%first.0.contract: saved f32[batch: 8*, e: 4],
    %first.0.gelu: saved f32[batch: 8*, e: 4],
    %first.0.mul: data f32[batch: 8*, e: 4]) {
  %x = port f32[batch: 8*, dim: 4]
  %tied = port f32[dim: 4, e: 4]
  %first.0.gain = port f32[e: 4]
  %first.0.contract = contract(%x, %tied) {dims: [dim]} : f32[batch: 8*, e: 4] @F
  %first.0.gelu = gelu(%first.0.contract) : f32[batch: 8*, e: 4] @F
  %first.0.mul = mul(%first.0.gelu, %first.0.gain) : f32[batch: 8*, e: 4] @F
}
body @stage0.B(%x: data f32[batch: 8*, dim: 4] input x,
    %first.0.contract: saved f32[batch: 8*, e: 4],
    %first.0.gelu: saved f32[batch: 8*, e: 4],
    %d.first.0.mul.mul: data f32[batch: 8*, e: 4],
    %first.0.gain: param f32[e: 4] param first.0.gain)
    -> (%d.tied.contract.1: grad f32[dim: 4, e: 4] param tied as tied,
    %d.first.0.gain.sum: grad f32[e: 4] param first.0.gain as first.0.gain) {
  %x = port f32[batch: 8*, dim: 4]
  %first.0.contract = port f32[batch: 8*, e: 4]
  %first.0.gelu = port f32[batch: 8*, e: 4]
  %d.first.0.mul.mul = port f32[batch: 8*, e: 4]
  %first.0.gain = port f32[e: 4]
  %d.first.0.gelu.mul = mul(%d.first.0.mul.mul, %first.0.gain) : f32[batch: 8*, e: 4] @BI
  %d.first.0.gain.mul = mul(%d.first.0.mul.mul, %first.0.gelu) : f32[batch: 8*, e: 4] @BW
  %d.first.0.gain.sum = sum(%d.first.0.gain.mul) {dims: [batch]} : f32[e: 4] @BW
  %d.first.0.contract.gelu_grad = gelu_grad(%first.0.contract, %d.first.0.gelu.mul) : f32[batch: 8*, e: 4] @BI
  %d.tied.contract.1 = contract(%x, %d.first.0.contract.gelu_grad) {dims: [batch]} : f32[dim: 4, e: 4] @BW
}
body @stage0.BI(%first.0.contract: saved f32[batch: 8*, e: 4],
    %d.first.0.mul.mul: data f32[batch: 8*, e: 4],
    %first.0.gain: param f32[e: 4] param first.0.gain)
    -> (%d.first.0.contract.gelu_grad: saved f32[batch: 8*, e: 4]) {
  %first.0.contract = port f32[batch: 8*, e: 4]
  %d.first.0.mul.mul = port f32[batch: 8*, e: 4]
  %first.0.gain = port f32[e: 4]
  %d.first.0.gelu.mul = mul(%d.first.0.mul.mul, %first.0.gain) : f32[batch: 8*, e: 4] @BI
  %d.first.0.contract.gelu_grad = gelu_grad(%first.0.contract, %d.first.0.gelu.mul) : f32[batch: 8*, e: 4] @BI
}
body @stage0.BW(%x: data f32[batch: 8*, dim: 4] input x,
    %first.0.gelu: saved f32[batch: 8*, e: 4],
    %d.first.0.mul.mul: saved f32[batch: 8*, e: 4],
    %d.first.0.contract.gelu_grad: saved f32[batch: 8*, e: 4])
    -> (%d.tied.contract.1: grad f32[dim: 4, e: 4] param tied as tied,
    %d.first.0.gain.sum: grad f32[e: 4] param first.0.gain as first.0.gain) {
  %x = port f32[batch: 8*, dim: 4]
  %first.0.gelu = port f32[batch: 8*, e: 4]
  %d.first.0.mul.mul = port f32[batch: 8*, e: 4]
  %d.first.0.contract.gelu_grad = port f32[batch: 8*, e: 4]
  %d.first.0.gain.mul = mul(%d.first.0.mul.mul, %first.0.gelu) : f32[batch: 8*, e: 4] @BW
  %d.first.0.gain.sum = sum(%d.first.0.gain.mul) {dims: [batch]} : f32[e: 4] @BW
  %d.tied.contract.1 = contract(%x, %d.first.0.contract.gelu_grad) {dims: [batch]} : f32[dim: 4, e: 4] @BW
}
body @stage1.F(%y: data f32[batch: 8*, dim: 4] input y,
    %first.0.mul: data f32[batch: 8*, e: 4],
    %tied: param f32[dim: 4, e: 4] param tied,
    %last.0.gain: param f32[e: 4] param last.0.gain)
    -> (%last.0.mul: saved f32[batch: 8*, e: 4],
    %last.0.gelu: saved f32[batch: 8*, e: 4],
    %sub: saved f32[batch: 8*, dim: 4],
    %sub.1: saved f32[batch: 8*, dim: 4],
    %sum: loss_sum f32[] loss loss.0) {
  %y = port f32[batch: 8*, dim: 4]
  %first.0.mul = port f32[batch: 8*, e: 4]
  %tied = port f32[dim: 4, e: 4]
  %last.0.gain = port f32[e: 4]
  %last.0.mul = mul(%first.0.mul, %last.0.gain) : f32[batch: 8*, e: 4] @F
  %last.0.gelu = gelu(%last.0.mul) : f32[batch: 8*, e: 4] @F
  %last.0.contract = contract(%last.0.gelu, %tied) {dims: [e]} : f32[batch: 8*, dim: 4] @F
  %sub = sub(%last.0.contract, %y) : f32[batch: 8*, dim: 4] @F
  %sub.1 = sub(%last.0.contract, %y) : f32[batch: 8*, dim: 4] @F
  %mul = mul(%sub, %sub.1) : f32[batch: 8*, dim: 4] @F
  %sum = sum(%mul) {dims: [batch, dim]} : f32[] @F
}
body @stage1.B(%first.0.mul: saved f32[batch: 8*, e: 4],
    %last.0.mul: saved f32[batch: 8*, e: 4],
    %last.0.gelu: saved f32[batch: 8*, e: 4],
    %sub: saved f32[batch: 8*, dim: 4],
    %sub.1: saved f32[batch: 8*, dim: 4],
    %tied: param f32[dim: 4, e: 4] param tied,
    %last.0.gain: param f32[e: 4] param last.0.gain)
    -> (%d.first.0.mul.mul: data f32[batch: 8*, e: 4],
    %d.tied.contract: grad f32[dim: 4, e: 4] param tied as tied,
    %d.last.0.gain.sum: grad f32[e: 4] param last.0.gain as last.0.gain) {
  %first.0.mul = port f32[batch: 8*, e: 4]
  %last.0.mul = port f32[batch: 8*, e: 4]
  %last.0.gelu = port f32[batch: 8*, e: 4]
  %sub = port f32[batch: 8*, dim: 4]
  %sub.1 = port f32[batch: 8*, dim: 4]
  %tied = port f32[dim: 4, e: 4]
  %last.0.gain = port f32[e: 4]
  %d.mul.fill = fill() {scalar: 0.03125, shape: f32[batch: 8*, dim: 4]} : f32[batch: 8*, dim: 4] @BI
  %d.sub.mul = mul(%d.mul.fill, %sub.1) : f32[batch: 8*, dim: 4] @BI
  %d.sub.1.mul = mul(%d.mul.fill, %sub) : f32[batch: 8*, dim: 4] @BI
  %d.last.0.contract.add = add(%d.sub.1.mul, %d.sub.mul) : f32[batch: 8*, dim: 4] @BI
  %d.last.0.gelu.contract = contract(%d.last.0.contract.add, %tied) {dims: [dim]} : f32[batch: 8*, e: 4] @BI
  %d.tied.contract = contract(%d.last.0.contract.add, %last.0.gelu) {dims: [batch]} : f32[dim: 4, e: 4] @BW
  %d.last.0.mul.gelu_grad = gelu_grad(%last.0.mul, %d.last.0.gelu.contract) : f32[batch: 8*, e: 4] @BI
  %d.first.0.mul.mul = mul(%d.last.0.mul.gelu_grad, %last.0.gain) : f32[batch: 8*, e: 4] @BI
  %d.last.0.gain.mul = mul(%d.last.0.mul.gelu_grad, %first.0.mul) : f32[batch: 8*, e: 4] @BW
  %d.last.0.gain.sum = sum(%d.last.0.gain.mul) {dims: [batch]} : f32[e: 4] @BW
}
body @stage1.BI(%last.0.mul: saved f32[batch: 8*, e: 4],
    %sub: saved f32[batch: 8*, dim: 4],
    %sub.1: saved f32[batch: 8*, dim: 4],
    %tied: param f32[dim: 4, e: 4] param tied,
    %last.0.gain: param f32[e: 4] param last.0.gain)
    -> (%d.last.0.contract.add: saved f32[batch: 8*, dim: 4],
    %d.last.0.mul.gelu_grad: saved f32[batch: 8*, e: 4],
    %d.first.0.mul.mul: data f32[batch: 8*, e: 4]) {
  %last.0.mul = port f32[batch: 8*, e: 4]
  %sub = port f32[batch: 8*, dim: 4]
  %sub.1 = port f32[batch: 8*, dim: 4]
  %tied = port f32[dim: 4, e: 4]
  %last.0.gain = port f32[e: 4]
  %d.mul.fill = fill() {scalar: 0.03125, shape: f32[batch: 8*, dim: 4]} : f32[batch: 8*, dim: 4] @BI
  %d.sub.mul = mul(%d.mul.fill, %sub.1) : f32[batch: 8*, dim: 4] @BI
  %d.sub.1.mul = mul(%d.mul.fill, %sub) : f32[batch: 8*, dim: 4] @BI
  %d.last.0.contract.add = add(%d.sub.1.mul, %d.sub.mul) : f32[batch: 8*, dim: 4] @BI
  %d.last.0.gelu.contract = contract(%d.last.0.contract.add, %tied) {dims: [dim]} : f32[batch: 8*, e: 4] @BI
  %d.last.0.mul.gelu_grad = gelu_grad(%last.0.mul, %d.last.0.gelu.contract) : f32[batch: 8*, e: 4] @BI
  %d.first.0.mul.mul = mul(%d.last.0.mul.gelu_grad, %last.0.gain) : f32[batch: 8*, e: 4] @BI
}
body @stage1.BW(%first.0.mul: saved f32[batch: 8*, e: 4],
    %last.0.gelu: saved f32[batch: 8*, e: 4],
    %d.last.0.contract.add: saved f32[batch: 8*, dim: 4],
    %d.last.0.mul.gelu_grad: saved f32[batch: 8*, e: 4])
    -> (%d.tied.contract: grad f32[dim: 4, e: 4] param tied as tied,
    %d.last.0.gain.sum: grad f32[e: 4] param last.0.gain as last.0.gain) {
  %first.0.mul = port f32[batch: 8*, e: 4]
  %last.0.gelu = port f32[batch: 8*, e: 4]
  %d.last.0.contract.add = port f32[batch: 8*, dim: 4]
  %d.last.0.mul.gelu_grad = port f32[batch: 8*, e: 4]
  %d.tied.contract = contract(%d.last.0.contract.add, %last.0.gelu) {dims: [batch]} : f32[dim: 4, e: 4] @BW
  %d.last.0.gain.mul = mul(%d.last.0.mul.gelu_grad, %first.0.mul) : f32[batch: 8*, e: 4] @BW
  %d.last.0.gain.sum = sum(%d.last.0.gain.mul) {dims: [batch]} : f32[e: 4] @BW
}
body @stage1.recomputed(%y: data f32[batch: 8*, dim: 4] input y,
    %first.0.mul: data f32[batch: 8*, e: 4],
    %tied: param f32[dim: 4, e: 4] param tied,
    %last.0.gain: param f32[e: 4] param last.0.gain)
    -> (%sum: loss_sum f32[] loss loss.0) {
  %y = port f32[batch: 8*, dim: 4]
  %first.0.mul = port f32[batch: 8*, e: 4]
  %tied = port f32[dim: 4, e: 4]
  %last.0.gain = port f32[e: 4]
  %last.0.mul = mul(%first.0.mul, %last.0.gain) : f32[batch: 8*, e: 4] @F
  %last.0.gelu = gelu(%last.0.mul) : f32[batch: 8*, e: 4] @F
  %last.0.contract = contract(%last.0.gelu, %tied) {dims: [e]} : f32[batch: 8*, dim: 4] @F
  %sub = sub(%last.0.contract, %y) : f32[batch: 8*, dim: 4] @F
  %sub.1 = sub(%last.0.contract, %y) : f32[batch: 8*, dim: 4] @F
  %mul = mul(%sub, %sub.1) : f32[batch: 8*, dim: 4] @F
  %sum = sum(%mul) {dims: [batch, dim]} : f32[] @F
}
body @stage1.R(%y: data f32[batch: 8*, dim: 4] input y,
    %first.0.mul: saved f32[batch: 8*, e: 4],
    %tied: param f32[dim: 4, e: 4] param tied,
    %last.0.gain: param f32[e: 4] param last.0.gain)
    -> (%last.0.mul: saved f32[batch: 8*, e: 4],
    %last.0.gelu: saved f32[batch: 8*, e: 4],
    %sub: saved f32[batch: 8*, dim: 4],
    %sub.1: saved f32[batch: 8*, dim: 4]) {
  %y = port f32[batch: 8*, dim: 4]
  %first.0.mul = port f32[batch: 8*, e: 4]
  %tied = port f32[dim: 4, e: 4]
  %last.0.gain = port f32[e: 4]
  %last.0.mul = mul(%first.0.mul, %last.0.gain) : f32[batch: 8*, e: 4] @F
  %last.0.gelu = gelu(%last.0.mul) : f32[batch: 8*, e: 4] @F
  %last.0.contract = contract(%last.0.gelu, %tied) {dims: [e]} : f32[batch: 8*, dim: 4] @F
  %sub = sub(%last.0.contract, %y) : f32[batch: 8*, dim: 4] @F
  %sub.1 = sub(%last.0.contract, %y) : f32[batch: 8*, dim: 4] @F
}
graph {
  F.stage0 = F stage0 @stage0.F (load.x, param update.stage0.0, param update.stage0.1)
  F.stage1 = F stage1 @stage1.F (load.y, F.stage0:2, param update.stage0.0, param update.stage1.0)
  B.stage0 = B stage0 @stage0.B (load.x, F.stage0, F.stage0:1, B.stage1, param update.stage0.1)
  B.stage1 = B stage1 @stage1.B (F.stage0:2, F.stage1, F.stage1:1, F.stage1:2, F.stage1:3, param update.stage0.0, param update.stage1.0)
  load.x = load x
  load.y = load y
  accumulate.stage0.0 = accumulate bucket stage0.0 (grad B.stage0 + B.stage1:1)
  update.stage0.0 = update bucket stage0.0 (accumulate.stage0.0)
  accumulate.stage0.1 = accumulate bucket stage0.1 (grad B.stage0:1)
  update.stage0.1 = update bucket stage0.1 (accumulate.stage0.1)
  accumulate.stage1.0 = accumulate bucket stage1.0 (grad B.stage1:2)
  update.stage1.0 = update bucket stage1.0 (accumulate.stage1.0)
  report.loss.0 = report loss loss.0 (F.stage1:4)
}
