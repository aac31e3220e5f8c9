// Parameters of bf16, gradients of f32, all of it cut: padding behind each parameter, and behind the last one.
pir 2 planned
train t #1 {
  steps 3
  dtype bf16
  seed 0
  data synthetic(classes: 0, batch: 8) #2
  optim adamw(lr: constant(0.01, warmup: 0, floor: 0), beta1: 0.9, beta2: 0.999, eps: 1e-08, weight_decay: 0, clip: 0.5) #3
}
mesh m(dp: 2) #4
split batch into mb: 2 #5
param a: bf16[dim: 3] = normal(0.5) #6
param b: bf16[dim: 3] = normal(0.5) #7
param c: bf16[dim: 3] = normal(0.5) #8
input x: bf16[batch: 8*, dim: 3] #9
input y: bf16[batch: 8*, dim: 3] #9
loss loss.0: 24 #10
chunk model of model F @model.F B @model.B #11
bucket model.0 (a, b, c) on m[] unreduced <dp: +> state <dp: flat> gradients <dp: flat> parameters <dp: flat> by unit #6
stream compute
stream reduce.m
stream sum.m
stream gather.m
body @model.F(%x: data bf16[batch: 4*, dim: 3]<dp: batch> input x,
    %y: data bf16[batch: 4*, dim: 3]<dp: batch> input y,
    %a: param bf16[dim: 3] param a,
    %b: param bf16[dim: 3] param b,
    %c: param bf16[dim: 3] param c)
    -> (%tanh: saved bf16[batch: 4*, dim: 3]<dp: batch>,
    %sub: saved bf16[batch: 4*, dim: 3]<dp: batch>,
    %sum: loss_sum f32[]<dp: +> loss loss.0) {
  %x = port bf16[batch: 4*, dim: 3]<dp: batch>
  %y = port bf16[batch: 4*, dim: 3]<dp: batch>
  %a = port bf16[dim: 3]
  %b = port bf16[dim: 3]
  %c = port bf16[dim: 3]
  %mul = mul(%x, %a) : bf16[batch: 4*, dim: 3]<dp: batch> @F #11
  %tanh = tanh(%mul) : bf16[batch: 4*, dim: 3]<dp: batch> @F #12
  %mul.1 = mul(%tanh, %b) : bf16[batch: 4*, dim: 3]<dp: batch> @F #13
  %add = add(%mul.1, %c) : bf16[batch: 4*, dim: 3]<dp: batch> @F #14
  %sub = sub(%add, %y) : bf16[batch: 4*, dim: 3]<dp: batch> @F #15
  %square = square(%sub) : bf16[batch: 4*, dim: 3]<dp: batch> @F #15
  %sum = sum(%square) {dims: [batch, dim]} : f32[]<dp: +> @F #10
}
body @model.B(%x: data bf16[batch: 4*, dim: 3]<dp: batch> input x,
    %tanh: saved bf16[batch: 4*, dim: 3]<dp: batch>,
    %sub: saved bf16[batch: 4*, dim: 3]<dp: batch>,
    %b: param bf16[dim: 3] param b)
    -> (%d.a.sum: grad f32[dim: 3]<dp: +> param a as a,
    %d.b.sum: grad f32[dim: 3]<dp: +> param b as b,
    %d.c.sum: grad f32[dim: 3]<dp: +> param c as c) {
  %x = port bf16[batch: 4*, dim: 3]<dp: batch>
  %tanh = port bf16[batch: 4*, dim: 3]<dp: batch>
  %sub = port bf16[batch: 4*, dim: 3]<dp: batch>
  %b = port bf16[dim: 3]
  %d.square.fill = fill() {scalar: 0.041666666666666664, shape: bf16[batch: 4*, dim: 3]} : bf16[batch: 4*, dim: 3]<dp: batch> @BI #10
  %d.sub.scale = scale(%d.square.fill) {scalar: 2} : bf16[batch: 4*, dim: 3]<dp: batch> @BI #15
  %d.sub.mul = mul(%d.sub.scale, %sub) : bf16[batch: 4*, dim: 3]<dp: batch> @BI #15
  %d.c.sum = sum(%d.sub.mul) {dims: [batch]} : f32[dim: 3]<dp: +> @BW #14
  %d.tanh.mul = mul(%d.sub.mul, %b) : bf16[batch: 4*, dim: 3]<dp: batch> @BI #13
  %d.b.mul = mul(%d.sub.mul, %tanh) : bf16[batch: 4*, dim: 3]<dp: batch> @BW #13
  %d.b.sum = sum(%d.b.mul) {dims: [batch]} : f32[dim: 3]<dp: +> @BW #13
  %d.mul.square = square(%tanh) : bf16[batch: 4*, dim: 3]<dp: batch> @BI #12
  %d.mul.neg = neg(%d.mul.square) : bf16[batch: 4*, dim: 3]<dp: batch> @BI #12
  %d.mul.offset = offset(%d.mul.neg) {scalar: 1} : bf16[batch: 4*, dim: 3]<dp: batch> @BI #12
  %d.mul.mul = mul(%d.tanh.mul, %d.mul.offset) : bf16[batch: 4*, dim: 3]<dp: batch> @BI #12
  %d.a.mul = mul(%d.mul.mul, %x) : bf16[batch: 4*, dim: 3]<dp: batch> @BW #11
  %d.a.sum = sum(%d.a.mul) {dims: [batch]} : f32[dim: 3]<dp: +> @BW #11
}
graph {
  load.x.mb0.m = load x [mb: 0] on m[] <dp: batch> stream compute #9
  load.y.mb0.m = load y [mb: 0] on m[] <dp: batch> stream compute #9
  all_gather.model.0.F.model.mb0 = all_gather bucket model.0 F model [mb: 0] (param update.model.0) over dp on m[] stream gather.m #6
  F.model.mb0 = F model [mb: 0] @model.F (load.x.mb0.m, load.y.mb0.m, all_gather.model.0.F.model.mb0, all_gather.model.0.F.model.mb0:1, all_gather.model.0.F.model.mb0:2) on m[] stream compute #11
  B.model.mb0 = B model [mb: 0] @model.B (load.x.mb0.m, F.model.mb0, F.model.mb0:1, all_gather.model.0.F.model.mb0:1) on m[] stream compute after F.model.mb0 #11
  load.x.mb1.m = load x [mb: 1] on m[] <dp: batch> stream compute #9
  load.y.mb1.m = load y [mb: 1] on m[] <dp: batch> stream compute #9
  F.model.mb1 = F model [mb: 1] @model.F (load.x.mb1.m, load.y.mb1.m, all_gather.model.0.F.model.mb0, all_gather.model.0.F.model.mb0:1, all_gather.model.0.F.model.mb0:2) on m[] stream compute after B.model.mb0 #11
  all_reduce.loss.0.m = all_reduce loss loss.0 (F.model.mb0:2, F.model.mb1:2) over dp on m[] stream sum.m #10
  B.model.mb1 = B model [mb: 1] @model.B (load.x.mb1.m, F.model.mb1, F.model.mb1:1, all_gather.model.0.F.model.mb0:1) on m[] stream compute after F.model.mb1 #11
  accumulate.model.0.B.model.mb1 = accumulate bucket model.0 B model [mb: 1] (grad B.model.mb0 + B.model.mb1, grad B.model.mb0:1 + B.model.mb1:1, grad B.model.mb0:2 + B.model.mb1:2) on m[] #6
  reduce_scatter.model.0.B.model.mb1 = reduce_scatter bucket model.0 B model [mb: 1] (accumulate.model.0.B.model.mb1, accumulate.model.0.B.model.mb1:1, accumulate.model.0.B.model.mb1:2) over dp on m[] stream reduce.m #6
  accumulate.model.0 = accumulate bucket model.0 (grad reduce_scatter.model.0.B.model.mb1) on m[] #6
  report.loss.0 = report loss loss.0 (all_reduce.loss.0.m, all_reduce.loss.0.m:1) on m[] stream compute #10
  sum_squares.model.0 = sum_squares bucket model.0 (accumulate.model.0) on m[] stream compute #6
  all_reduce.norm.dp.m = all_reduce (sum_squares.model.0) over dp on m[] stream sum.m #3
  norm.m = norm (all_reduce.norm.dp.m) on m[] stream compute #3
  report.norm = report norm (norm.m) on m[] stream compute #3
  update.model.0 = update bucket model.0 (accumulate.model.0, norm.m) on m[] stream compute #6
}
communicator group.m group (m[]) over dp stream reduce.m #6 {
  reduce_scatter.model.0.B.model.mb1
}
communicator group.m.no2 group (m[]) over dp stream sum.m #10 {
  all_reduce.loss.0.m
  all_reduce.norm.dp.m
}
communicator group.m.no3 group (m[]) over dp stream gather.m #6 {
  all_gather.model.0.F.model.mb0
}
role m at m[] arena 2368 live 2368 {
  buffer %parameters.model.0 = parameters bucket model.0 at 0 bytes 128
  buffer %gradients.model.0 = gradients bucket model.0 at 128 bytes 256
  buffer %optimizer.model.0 = optimizer bucket model.0 at 384 bytes 768
  buffer %scalars = scalars at 1152 bytes 64
  buffer %load.x.mb0.m:0 = activations at 1216 bytes 12
  buffer %load.y.mb0.m:0 = activations at 1280 bytes 12
  buffer %all_gather.model.0.F.model.mb0:0 = gathered at 1344 bytes 256
  buffer %F.model.mb0:0 = activations at 1600 bytes 12
  buffer %F.model.mb0:1 = activations at 1664 bytes 12
  buffer %F.model.mb0:2 = activations at 1728 bytes 4
  buffer %accumulate.model.0.B.model.mb1:0 = unreduced at 1792 bytes 512
  buffer %load.x.mb1.m:0 = activations at 1216 bytes 12
  buffer %load.y.mb1.m:0 = activations at 1280 bytes 12
  buffer %F.model.mb1:0 = activations at 1600 bytes 12
  buffer %F.model.mb1:1 = activations at 1664 bytes 12
  buffer %F.model.mb1:2 = activations at 2304 bytes 4
  buffer %sum_squares.model.0:0 = activations at 1216 bytes 8
  buffer %norm.m:0 = activations at 1280 bytes 16
  load.x.mb0.m on compute writes (%load.x.mb0.m:0)
  load.y.mb0.m on compute writes (%load.y.mb0.m:0)
  all_gather.model.0.F.model.mb0 on gather.m via group.m.no3 after previous update.model.0 reads (%parameters.model.0) writes (%all_gather.model.0.F.model.mb0:0, %all_gather.model.0.F.model.mb0:0 + 64, %all_gather.model.0.F.model.mb0:0 + 128)
  F.model.mb0 on compute after all_gather.model.0.F.model.mb0 reads (%load.x.mb0.m:0, %load.y.mb0.m:0, %all_gather.model.0.F.model.mb0:0, %all_gather.model.0.F.model.mb0:0 + 64, %all_gather.model.0.F.model.mb0:0 + 128) writes (%F.model.mb0:0, %F.model.mb0:1, %F.model.mb0:2)
  B.model.mb0 on compute reads (%load.x.mb0.m:0, %F.model.mb0:0, %F.model.mb0:1, %all_gather.model.0.F.model.mb0:0 + 64) writes (%accumulate.model.0.B.model.mb1:0, %accumulate.model.0.B.model.mb1:0 + 128, %accumulate.model.0.B.model.mb1:0 + 256)
  load.x.mb1.m on compute writes (%load.x.mb1.m:0)
  load.y.mb1.m on compute writes (%load.y.mb1.m:0)
  F.model.mb1 on compute reads (%load.x.mb1.m:0, %load.y.mb1.m:0, %all_gather.model.0.F.model.mb0:0, %all_gather.model.0.F.model.mb0:0 + 64, %all_gather.model.0.F.model.mb0:0 + 128) writes (%F.model.mb1:0, %F.model.mb1:1, %F.model.mb1:2)
  all_reduce.loss.0.m on sum.m via group.m.no2 after F.model.mb1 reads (%F.model.mb0:2, %F.model.mb1:2) writes (%F.model.mb0:2, %F.model.mb1:2)
  B.model.mb1 on compute reads (%load.x.mb1.m:0, %F.model.mb1:0, %F.model.mb1:1, %all_gather.model.0.F.model.mb0:0 + 64) writes (+%accumulate.model.0.B.model.mb1:0, +%accumulate.model.0.B.model.mb1:0 + 128, +%accumulate.model.0.B.model.mb1:0 + 256)
  reduce_scatter.model.0.B.model.mb1 on reduce.m via group.m after B.model.mb1 reads (%accumulate.model.0.B.model.mb1:0, %accumulate.model.0.B.model.mb1:0 + 128, %accumulate.model.0.B.model.mb1:0 + 256) writes (%gradients.model.0)
  report.loss.0 on compute after all_reduce.loss.0.m reads (%F.model.mb0:2, %F.model.mb1:2)
  sum_squares.model.0 on compute after reduce_scatter.model.0.B.model.mb1 reads (%gradients.model.0) writes (%sum_squares.model.0:0)
  all_reduce.norm.dp.m on sum.m via group.m.no2 after sum_squares.model.0 reads (%sum_squares.model.0:0) writes (%sum_squares.model.0:0)
  norm.m on compute after all_reduce.norm.dp.m reads (%sum_squares.model.0:0) writes (%norm.m:0)
  report.norm on compute reads (%norm.m:0)
  update.model.0 on compute reads (%gradients.model.0, %norm.m:0) writes (%parameters.model.0)
}
locations {
  1 "gaps.pipe":7:7-7:8
  2 "gaps.pipe":8:12-8:31
  3 "gaps.pipe":9:12-9:38
  4 "gaps.pipe":6:1-6:14
  5 "gaps.pipe":12:5-12:27
  6 "gaps.pipe":3:12-3:18 from "gaps.pipe":7:11-7:16
  7 "gaps.pipe":3:20-3:26 from "gaps.pipe":7:11-7:16
  8 "gaps.pipe":3:28-3:34 from "gaps.pipe":7:11-7:16
  9 "gaps.pipe":2:5-2:58 from "gaps.pipe":7:11-7:16
  10 "gaps.pipe":4:5-4:46 from "gaps.pipe":7:11-7:16
  11 "gaps.pipe":4:28-4:33 from "gaps.pipe":7:11-7:16
  12 "gaps.pipe":4:23-4:34 from "gaps.pipe":7:11-7:16
  13 "gaps.pipe":4:23-4:38 from "gaps.pipe":7:11-7:16
  14 "gaps.pipe":4:23-4:42 from "gaps.pipe":7:11-7:16
  15 "gaps.pipe":4:10-4:46 from "gaps.pipe":7:11-7:16
}
