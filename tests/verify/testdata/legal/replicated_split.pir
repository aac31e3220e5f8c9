// Layouts of what a region that is replicated will hold, before it has devices.
pir 2 split
train small #1 {
  steps 2
  dtype f32
  seed 0
  data synthetic(classes: 0, batch: 8, dim: 4) #2
  optim sgd(lr: constant(0.1, warmup: 0, floor: 0), momentum: 0, weight_decay: 0) #3
}
mesh line(dp: 2) #4
split batch into mb: 2 #5
param w: f32[dim: 4, out: 3] = normal(0.1) #6
param gain: f32[out: 3] = ones(1) #7
input x: f32[batch: 8*, dim: 4] #8
loss loss.0: 24 #9
chunk model of model F @model.F B @model.B #10
bucket model.0 (w, gain) #6
body @model.F(%x: data f32[batch: 4*, dim: 4]<dp: batch> input x,
    %w: param f32[dim: 4, out: 3] param w,
    %gain: param f32[out: 3] param gain)
    -> (%contract: saved f32[batch: 4*, out: 3]<dp: batch>,
    %gelu: saved f32[batch: 4*, out: 3]<dp: batch>,
    %sum: loss_sum f32[]<dp: +> loss loss.0) {
  %x = port f32[batch: 4*, dim: 4]<dp: batch>
  %w = port f32[dim: 4, out: 3]
  %gain = port f32[out: 3]
  %contract = contract(%x, %w) {dims: [dim]} : f32[batch: 4*, out: 3]<dp: batch> @F #10
  %gelu = gelu(%contract) : f32[batch: 4*, out: 3]<dp: batch> @F #11
  %mul = mul(%gelu, %gain) : f32[batch: 4*, out: 3]<dp: batch> @F #12
  %sum = sum(%mul) {dims: [batch, out]} : f32[]<dp: +> @F #9
}
body @model.B(%x: data f32[batch: 4*, dim: 4]<dp: batch> input x,
    %contract: saved f32[batch: 4*, out: 3]<dp: batch>,
    %gelu: saved f32[batch: 4*, out: 3]<dp: batch>,
    %gain: param f32[out: 3] param gain)
    -> (%d.w.contract: grad f32[dim: 4, out: 3]<dp: +> param w as w,
    %d.gain.sum: grad f32[out: 3]<dp: +> param gain as gain) {
  %x = port f32[batch: 4*, dim: 4]<dp: batch>
  %contract = port f32[batch: 4*, out: 3]<dp: batch>
  %gelu = port f32[batch: 4*, out: 3]<dp: batch>
  %gain = port f32[out: 3]
  %d.mul.fill = fill() {scalar: 0.041666666666666664, shape: f32[batch: 4*, out: 3]} : f32[batch: 4*, out: 3]<dp: batch> @BI #9
  %d.gelu.mul = mul(%d.mul.fill, %gain) : f32[batch: 4*, out: 3]<dp: batch> @BI #12
  %d.gain.mul = mul(%d.mul.fill, %gelu) : f32[batch: 4*, out: 3]<dp: batch> @BW #12
  %d.gain.sum = sum(%d.gain.mul) {dims: [batch]} : f32[out: 3]<dp: +> @BW #12
  %d.contract.gelu_grad = gelu_grad(%contract, %d.gelu.mul) : f32[batch: 4*, out: 3]<dp: batch> @BI #11
  %d.w.contract = contract(%x, %d.contract.gelu_grad) {dims: [batch]} : f32[dim: 4, out: 3]<dp: +> @BW #10
}
graph {
  F.model.mb0 = F model [mb: 0] @model.F (load.x.mb0, param update.model.0, param update.model.0:1) #10
  B.model.mb0 = B model [mb: 0] @model.B (load.x.mb0, F.model.mb0, F.model.mb0:1, param update.model.0:1) #10
  F.model.mb1 = F model [mb: 1] @model.F (load.x.mb1, param update.model.0, param update.model.0:1) #10
  B.model.mb1 = B model [mb: 1] @model.B (load.x.mb1, F.model.mb1, F.model.mb1:1, param update.model.0:1) #10
  load.x.mb0 = load x [mb: 0] #8
  load.x.mb1 = load x [mb: 1] #8
  accumulate.model.0 = accumulate bucket model.0 (grad B.model.mb0 + B.model.mb1, grad B.model.mb0:1 + B.model.mb1:1) #6
  update.model.0 = update bucket model.0 (accumulate.model.0, accumulate.model.0:1) #6
  report.loss.0 = report loss loss.0 (F.model.mb0:2, F.model.mb1:2) #9
}
locations {
  1 "small.pipe":8:7-8:12
  2 "small.pipe":9:11-9:38
  3 "small.pipe":10:12-10:24
  4 "small.pipe":1:1-1:17
  5 "small.pipe":12:5-12:27
  6 "small.pipe":4:12-4:26 from "small.pipe":8:15-8:20
  7 "small.pipe":5:12-5:21 from "small.pipe":8:15-8:20
  8 "small.pipe":3:5-3:32 from "small.pipe":8:15-8:20
  9 "small.pipe":6:5-6:28 from "small.pipe":8:15-8:20
  10 "small.pipe":6:15-6:20 from "small.pipe":8:15-8:20
  11 "small.pipe":6:10-6:21 from "small.pipe":8:15-8:20
  12 "small.pipe":6:10-6:28 from "small.pipe":8:15-8:20
}
