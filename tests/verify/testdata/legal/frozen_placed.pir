// Stages of replicas, of which the second is frozen and keeps its parameters in shares.
pir 2 placed
train frozen {
  steps 3
  dtype f32
  seed 0
  data synthetic(classes: 0, batch: 8)
  optim sgd(lr: constant(0.1, warmup: 0, floor: 0), momentum: 0, weight_decay: 0)
}
mesh c(p: 2, d: 2)
stages stage
split batch into mb: 2 #1
param first.0.w: f32[dim: 4, e: 4] = normal(0.2)
param last.0.gain: f32[e: 4] = ones(1) frozen
input x: f32[batch: 8*, dim: 4]
input y: f32[batch: 8*, e: 4]
loss loss.0: 32
chunk stage0.first0 of stage[0].first[0] F @stage0.first0.F BI @stage0.first0.BI BW @stage0.first0.BW
chunk stage1.last0 of stage[1].last[0] F @stage1.last0.F BI @stage1.last0.BI BW @stage1.last0.BW
chunk stage1 of stage[1] F @stage1.F BI @stage1.BI BW @stage1.BW
bucket stage0.first0.0 (first.0.w) on c[p: 0] unreduced <d: +>
bucket stage1.last0.0 (last.0.gain) on c[p: 1] parameters <d: flat> by unit
body @stage0.first0.F(%x: data f32[batch: 4*, dim: 4]<d: batch> input x,
    %first.0.w: param f32[dim: 4, e: 4] param first.0.w)
    -> (%first.0.contract: saved f32[batch: 4*, e: 4]<d: batch>,
    %first.0.gelu: data f32[batch: 4*, e: 4]<d: batch>) {
  %x = port f32[batch: 4*, dim: 4]<d: batch>
  %first.0.w = port f32[dim: 4, e: 4]
  %first.0.contract = contract(%x, %first.0.w) {dims: [dim]} : f32[batch: 4*, e: 4]<d: batch> @F
  %first.0.gelu = gelu(%first.0.contract) : f32[batch: 4*, e: 4]<d: batch> @F
}
body @stage0.first0.BI(%first.0.contract: saved f32[batch: 4*, e: 4]<d: batch>,
    %d.first.0.gelu.mul: data f32[batch: 4*, e: 4]<d: batch>)
    -> (%d.first.0.contract.gelu_grad: saved f32[batch: 4*, e: 4]<d: batch>) {
  %first.0.contract = port f32[batch: 4*, e: 4]<d: batch>
  %d.first.0.gelu.mul = port f32[batch: 4*, e: 4]<d: batch>
  %d.first.0.contract.gelu_grad = gelu_grad(%first.0.contract, %d.first.0.gelu.mul) : f32[batch: 4*, e: 4]<d: batch> @BI
}
body @stage0.first0.BW(%x: data f32[batch: 4*, dim: 4]<d: batch> input x,
    %d.first.0.contract.gelu_grad: saved f32[batch: 4*, e: 4]<d: batch>)
    -> (%d.first.0.w.contract: grad f32[dim: 4, e: 4]<d: +> param first.0.w as first.0.w) {
  %x = port f32[batch: 4*, dim: 4]<d: batch>
  %d.first.0.contract.gelu_grad = port f32[batch: 4*, e: 4]<d: batch>
  %d.first.0.w.contract = contract(%x, %d.first.0.contract.gelu_grad) {dims: [batch]} : f32[dim: 4, e: 4]<d: +> @BW
}
body @stage1.last0.F(%first.0.gelu: data f32[batch: 4*, e: 4]<d: batch>,
    %last.0.gain: param f32[e: 4] param last.0.gain)
    -> (%last.0.mul: saved f32[batch: 4*, e: 4]<d: batch>,
    %last.0.gelu: data f32[batch: 4*, e: 4]<d: batch>) {
  %first.0.gelu = port f32[batch: 4*, e: 4]<d: batch>
  %last.0.gain = port f32[e: 4]
  %last.0.mul = mul(%first.0.gelu, %last.0.gain) : f32[batch: 4*, e: 4]<d: batch> @F
  %last.0.gelu = gelu(%last.0.mul) : f32[batch: 4*, e: 4]<d: batch> @F
}
body @stage1.last0.BI(%last.0.mul: saved f32[batch: 4*, e: 4]<d: batch>,
    %d.last.0.gelu.add: data f32[batch: 4*, e: 4]<d: batch>,
    %last.0.gain: param f32[e: 4] param last.0.gain)
    -> (%d.first.0.gelu.mul: data f32[batch: 4*, e: 4]<d: batch>) {
  %last.0.mul = port f32[batch: 4*, e: 4]<d: batch>
  %d.last.0.gelu.add = port f32[batch: 4*, e: 4]<d: batch>
  %last.0.gain = port f32[e: 4]
  %d.last.0.mul.gelu_grad = gelu_grad(%last.0.mul, %d.last.0.gelu.add) : f32[batch: 4*, e: 4]<d: batch> @BI
  %d.first.0.gelu.mul = mul(%d.last.0.mul.gelu_grad, %last.0.gain) : f32[batch: 4*, e: 4]<d: batch> @BI
}
body @stage1.last0.BW()
    -> ()
body @stage1.F(%y: data f32[batch: 4*, e: 4]<d: batch> input y,
    %last.0.gelu: data f32[batch: 4*, e: 4]<d: batch>)
    -> (%sub: saved f32[batch: 4*, e: 4]<d: batch>,
    %sub.1: saved f32[batch: 4*, e: 4]<d: batch>,
    %sum: loss_sum f32[]<d: +> loss loss.0) {
  %y = port f32[batch: 4*, e: 4]<d: batch>
  %last.0.gelu = port f32[batch: 4*, e: 4]<d: batch>
  %sub = sub(%last.0.gelu, %y) : f32[batch: 4*, e: 4]<d: batch> @F
  %sub.1 = sub(%last.0.gelu, %y) : f32[batch: 4*, e: 4]<d: batch> @F
  %mul = mul(%sub, %sub.1) : f32[batch: 4*, e: 4]<d: batch> @F
  %sum = sum(%mul) {dims: [batch, e]} : f32[]<d: +> @F
}
body @stage1.BI(%sub: saved f32[batch: 4*, e: 4]<d: batch>,
    %sub.1: saved f32[batch: 4*, e: 4]<d: batch>)
    -> (%d.last.0.gelu.add: data f32[batch: 4*, e: 4]<d: batch>) {
  %sub = port f32[batch: 4*, e: 4]<d: batch>
  %sub.1 = port f32[batch: 4*, e: 4]<d: batch>
  %d.mul.fill = fill() {scalar: 0.03125, shape: f32[batch: 4*, e: 4]} : f32[batch: 4*, e: 4]<d: batch> @BI
  %d.sub.mul = mul(%d.mul.fill, %sub.1) : f32[batch: 4*, e: 4]<d: batch> @BI
  %d.sub.1.mul = mul(%d.mul.fill, %sub) : f32[batch: 4*, e: 4]<d: batch> @BI
  %d.last.0.gelu.add = add(%d.sub.1.mul, %d.sub.mul) : f32[batch: 4*, e: 4]<d: batch> @BI
}
body @stage1.BW()
    -> ()
graph {
  F.stage0.first0.mb0 = F stage0.first0 [mb: 0] @stage0.first0.F (load.x.mb0.p0, param update.stage0.first0.0) on c[p: 0]
  BI.stage0.first0.mb0 = BI stage0.first0 [mb: 0] @stage0.first0.BI (F.stage0.first0.mb0, BI.stage1.last0.mb0) on c[p: 0]
  BW.stage0.first0.mb0 = BW stage0.first0 [mb: 0] @stage0.first0.BW (load.x.mb0.p0, BI.stage0.first0.mb0) on c[p: 0]
  F.stage0.first0.mb1 = F stage0.first0 [mb: 1] @stage0.first0.F (load.x.mb1.p0, param update.stage0.first0.0) on c[p: 0]
  BI.stage0.first0.mb1 = BI stage0.first0 [mb: 1] @stage0.first0.BI (F.stage0.first0.mb1, BI.stage1.last0.mb1) on c[p: 0]
  BW.stage0.first0.mb1 = BW stage0.first0 [mb: 1] @stage0.first0.BW (load.x.mb1.p0, BI.stage0.first0.mb1) on c[p: 0]
  F.stage1.last0.mb0 = F stage1.last0 [mb: 0] @stage1.last0.F (F.stage0.first0.mb0:1, param _:0) on c[p: 1]
  BI.stage1.last0.mb0 = BI stage1.last0 [mb: 0] @stage1.last0.BI (F.stage1.last0.mb0, BI.stage1.mb0, param _:0) on c[p: 1]
  BW.stage1.last0.mb0 = BW stage1.last0 [mb: 0] @stage1.last0.BW on c[p: 1]
  F.stage1.last0.mb1 = F stage1.last0 [mb: 1] @stage1.last0.F (F.stage0.first0.mb1:1, param _:0) on c[p: 1]
  BI.stage1.last0.mb1 = BI stage1.last0 [mb: 1] @stage1.last0.BI (F.stage1.last0.mb1, BI.stage1.mb1, param _:0) on c[p: 1]
  BW.stage1.last0.mb1 = BW stage1.last0 [mb: 1] @stage1.last0.BW on c[p: 1]
  F.stage1.mb0 = F stage1 [mb: 0] @stage1.F (load.y.mb0.p1, F.stage1.last0.mb0:1) on c[p: 1]
  BI.stage1.mb0 = BI stage1 [mb: 0] @stage1.BI (F.stage1.mb0, F.stage1.mb0:1) on c[p: 1]
  BW.stage1.mb0 = BW stage1 [mb: 0] @stage1.BW on c[p: 1]
  F.stage1.mb1 = F stage1 [mb: 1] @stage1.F (load.y.mb1.p1, F.stage1.last0.mb1:1) on c[p: 1]
  BI.stage1.mb1 = BI stage1 [mb: 1] @stage1.BI (F.stage1.mb1, F.stage1.mb1:1) on c[p: 1]
  BW.stage1.mb1 = BW stage1 [mb: 1] @stage1.BW on c[p: 1]
  load.x.mb0.p0 = load x [mb: 0] on c[p: 0] <d: batch>
  load.x.mb1.p0 = load x [mb: 1] on c[p: 0] <d: batch>
  load.y.mb0.p1 = load y [mb: 0] on c[p: 1] <d: batch>
  load.y.mb1.p1 = load y [mb: 1] on c[p: 1] <d: batch>
  accumulate.stage0.first0.0 = accumulate bucket stage0.first0.0 (grad BW.stage0.first0.mb0 + BW.stage0.first0.mb1) on c[p: 0]
  update.stage0.first0.0 = update bucket stage0.first0.0 (accumulate.stage0.first0.0) on c[p: 0]
  report.loss.0 = report loss loss.0 (F.stage1.mb0:2, F.stage1.mb1:2) on c[p: 1]
}
locations {
  1 library "std/schedules/zb_h1.pipe":13:5-13:27 from "frozen.pipe":20:5-20:16
}
