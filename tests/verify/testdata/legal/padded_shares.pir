pir 2 planned
train small #1 {
  steps 3
  dtype f64
  seed 0
  data synthetic(classes: 0, batch: 4) #2
  optim sgd(lr: constant(0.01, warmup: 0, floor: 0), momentum: 0.9, weight_decay: 0) #3
}
mesh line(dp: 2) #4
param w: f64[dim: 17] = normal(0.02) #5
input x: f64[batch: 4*, dim: 17] #6
loss loss.0: 68 #7
chunk model of model F @model.F B @model.B #8
bucket model.0 (w) on line[] unreduced <dp: +> state <dp: flat> #5
stream compute
stream reduce.line
stream sum.line
stream gather.line
body @model.F(%x: data f64[batch: 4*, dim: 17]<dp: batch> input x,
    %w: param f64[dim: 17] param w)
    -> (%mul: saved f64[batch: 4*, dim: 17]<dp: batch>,
    %sum: loss_sum f64[]<dp: +> loss loss.0) {
  %x = port f64[batch: 4*, dim: 17]<dp: batch>
  %w = port f64[dim: 17]
  %mul = mul(%x, %w) : f64[batch: 4*, dim: 17]<dp: batch> @F #8
  %square = square(%mul) : f64[batch: 4*, dim: 17]<dp: batch> @F #9
  %sum = sum(%square) {dims: [batch, dim]} : f64[]<dp: +> @F #7
}
body @model.B(%x: data f64[batch: 4*, dim: 17]<dp: batch> input x,
    %mul: saved f64[batch: 4*, dim: 17]<dp: batch>)
    -> (%d.w.sum: grad f64[dim: 17]<dp: +> param w as w) {
  %x = port f64[batch: 4*, dim: 17]<dp: batch>
  %mul = port f64[batch: 4*, dim: 17]<dp: batch>
  %d.square.fill = fill() {scalar: 0.014705882352941176, shape: f64[batch: 4*, dim: 17]} : f64[batch: 4*, dim: 17]<dp: batch> @BI #7
  %d.mul.scale = scale(%d.square.fill) {scalar: 2} : f64[batch: 4*, dim: 17]<dp: batch> @BI #9
  %d.mul.mul = mul(%d.mul.scale, %mul) : f64[batch: 4*, dim: 17]<dp: batch> @BI #9
  %d.w.mul = mul(%d.mul.mul, %x) : f64[batch: 4*, dim: 17]<dp: batch> @BW #8
  %d.w.sum = sum(%d.w.mul) {dims: [batch]} : f64[dim: 17]<dp: +> @BW #8
}
graph {
  load.x.line = load x on line[] <dp: batch> stream compute #6
  F.model = F model @model.F (load.x.line, param all_gather.model.0) on line[] stream compute #8
  all_reduce.loss.0.line = all_reduce loss loss.0 (F.model:1) over dp on line[] stream sum.line #7
  B.model = B model @model.B (load.x.line, F.model) on line[] stream compute after F.model #8
  accumulate.model.0 = accumulate bucket model.0 (grad B.model) on line[] #5
  reduce_scatter.model.0 = reduce_scatter bucket model.0 (accumulate.model.0) over dp on line[] stream reduce.line #5
  report.loss.0 = report loss loss.0 (all_reduce.loss.0.line) on line[] stream compute #7
  sum_squares.model.0 = sum_squares bucket model.0 (reduce_scatter.model.0) on line[] stream compute #5
  update.model.0 = update bucket model.0 (reduce_scatter.model.0) on line[] stream compute #5
  all_reduce.norm.dp.line = all_reduce (sum_squares.model.0) over dp on line[] stream sum.line #3
  all_gather.model.0 = all_gather bucket model.0 (update.model.0) over dp on line[] stream gather.line #5
  norm.line = norm (all_reduce.norm.dp.line) on line[] stream compute #3
  report.norm = report norm (norm.line) on line[] stream compute #3
}
communicator group.line group (line[]) over dp stream reduce.line #5 {
  reduce_scatter.model.0
}
communicator group.line.no2 group (line[]) over dp stream sum.line #7 {
  all_reduce.loss.0.line
  all_reduce.norm.dp.line
}
communicator group.line.no3 group (line[]) over dp stream gather.line #5 {
  all_gather.model.0
}
role line at line[] arena 1408 live 1408 {
  buffer %parameters.model.0 = parameters bucket model.0 at 0 bytes 256
  buffer %gradients.model.0 = gradients bucket model.0 at 256 bytes 256
  buffer %optimizer.model.0 = optimizer bucket model.0 at 512 bytes 128
  buffer %scalars = scalars at 640 bytes 64
  buffer %load.x.line:0 = activations at 704 bytes 272
  buffer %F.model:0 = activations at 1024 bytes 272
  buffer %F.model:1 = activations at 1344 bytes 8
  buffer %sum_squares.model.0:0 = activations at 704 bytes 8
  buffer %norm.line:0 = activations at 768 bytes 16
  load.x.line on compute writes (%load.x.line:0)
  F.model on compute after previous all_gather.model.0 reads (%load.x.line:0, %parameters.model.0) writes (%F.model:0, %F.model:1)
  all_reduce.loss.0.line on sum.line via group.line.no2 after F.model reads (%F.model:1) writes (%F.model:1)
  B.model on compute reads (%load.x.line:0, %F.model:0) writes (%gradients.model.0)
  reduce_scatter.model.0 on reduce.line via group.line after B.model reads (%gradients.model.0) writes (%gradients.model.0)
  report.loss.0 on compute after all_reduce.loss.0.line reads (%F.model:1)
  sum_squares.model.0 on compute after reduce_scatter.model.0 reads (%gradients.model.0) writes (%sum_squares.model.0:0)
  update.model.0 on compute reads (%gradients.model.0) writes (%parameters.model.0)
  all_reduce.norm.dp.line on sum.line via group.line.no2 after sum_squares.model.0 reads (%sum_squares.model.0:0) writes (%sum_squares.model.0:0)
  all_gather.model.0 on gather.line via group.line.no3 after update.model.0 reads (%parameters.model.0) writes (%parameters.model.0)
  norm.line on compute after all_reduce.norm.dp.line reads (%sum_squares.model.0:0) writes (%norm.line:0)
  report.norm on compute reads (%norm.line:0)
}
locations {
  1 "pad.pipe":7:7-7:12
  2 "pad.pipe":8:12-8:31
  3 "pad.pipe":9:12-9:40
  4 "pad.pipe":6:1-6:17
  5 "pad.pipe":3:12-3:18 from "pad.pipe":7:15-7:21
  6 "pad.pipe":2:5-2:36 from "pad.pipe":7:15-7:21
  7 "pad.pipe":4:5-4:23 from "pad.pipe":7:15-7:21
  8 "pad.pipe":4:17-4:22 from "pad.pipe":7:15-7:21
  9 "pad.pipe":4:10-4:23 from "pad.pipe":7:15-7:21
}
