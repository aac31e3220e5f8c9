pir 2 planned
train masked #1 {
  steps 5
  dtype f32
  seed 0
  data synthetic(classes: 3, batch: 8) #2
  optim sgd(lr: constant(0.1, warmup: 0, floor: 0), momentum: 0, weight_decay: 0) #3
}
mesh line(pp: 1, dp: 2) #4
split batch into mb: 2 #5
param w: f32[features: 2, class: 3] = normal(0.02) #6
input x: f32[batch: 8*, features: 2] #7
input label: i64[batch: 8*] #7
loss loss.0: 8 ignore 1 of label #8
chunk model of model F @model.F B @model.B #9
bucket model.0 (w) on line[] unreduced <dp: +> #6
stream compute
stream reduce.line
stream sum.line
body @model.F(%x: data f32[batch: 4*, features: 2]<dp: batch> input x,
    %label: data i64[batch: 4*]<dp: batch> input label,
    %w: param f32[features: 2, class: 3] param w)
    -> (%contract: saved f32[batch: 4*, class: 3]<dp: batch>,
    %sum: loss_sum f32[]<dp: +> loss loss.0) {
  %x = port f32[batch: 4*, features: 2]<dp: batch>
  %label = port i64[batch: 4*]<dp: batch>
  %w = port f32[features: 2, class: 3]
  %contract = contract(%x, %w) {dims: [features]} : f32[batch: 4*, class: 3]<dp: batch> @F #9
  %cross_entropy = cross_entropy(%contract, %label) {dims: [class], ignore: 1} : f32[batch: 4*]<dp: batch> @F #10
  %sum = sum(%cross_entropy) {dims: [batch]} : f32[]<dp: +> @F #8
}
body @model.B(%x: data f32[batch: 4*, features: 2]<dp: batch> input x,
    %label: data i64[batch: 4*]<dp: batch> input label,
    %contract: saved f32[batch: 4*, class: 3]<dp: batch>,
    %loss.0.count: count f64[] loss loss.0)
    -> (%d.w.contract: grad f32[features: 2, class: 3]<dp: +> param w as w) {
  %x = port f32[batch: 4*, features: 2]<dp: batch>
  %label = port i64[batch: 4*]<dp: batch>
  %contract = port f32[batch: 4*, class: 3]<dp: batch>
  %loss.0.count = port f64[]
  %d.cross_entropy.fill = fill() {scalar: 1, shape: f64[]} : f64[] @BI #8
  %d.cross_entropy.maximum = maximum(%loss.0.count, %d.cross_entropy.fill) : f64[] @BI #8
  %d.cross_entropy.cast = cast(%d.cross_entropy.maximum) {dtype: f32} : f32[] @BI #8
  %d.cross_entropy.fill.1 = fill() {scalar: 1, shape: f32[batch: 4*]} : f32[batch: 4*]<dp: batch> @BI #8
  %d.cross_entropy.div = div(%d.cross_entropy.fill.1, %d.cross_entropy.cast) : f32[batch: 4*]<dp: batch> @BI #8
  %d.contract.cross_entropy_grad = cross_entropy_grad(%contract, %label, %d.cross_entropy.div) {dims: [class], ignore: 1} : f32[batch: 4*, class: 3]<dp: batch> @BI #10
  %d.w.contract = contract(%x, %d.contract.cross_entropy_grad) {dims: [batch]} : f32[features: 2, class: 3]<dp: +> @BW #9
}
graph {
  load.x.mb0.line = load x [mb: 0] on line[] <dp: batch> stream compute #7
  load.label.mb0.line = load label [mb: 0] on line[] <dp: batch> stream compute #7
  load.label.mb1.line = load label [mb: 1] on line[] <dp: batch> stream compute #7
  F.model.mb0 = F model [mb: 0] @model.F (load.x.mb0.line, load.label.mb0.line, param update.model.0) on line[] stream compute #9
  count.loss.0.line = count loss.0 (load.label.mb0.line, load.label.mb1.line) on line[] stream compute #8
  all_reduce.count.loss.0.line = all_reduce count loss.0 (count.loss.0.line) over dp on line[] stream sum.line #8
  B.model.mb0 = B model [mb: 0] @model.B (load.x.mb0.line, load.label.mb0.line, F.model.mb0, all_reduce.count.loss.0.line) on line[] stream compute after F.model.mb0 #9
  load.x.mb1.line = load x [mb: 1] on line[] <dp: batch> stream compute #7
  F.model.mb1 = F model [mb: 1] @model.F (load.x.mb1.line, load.label.mb1.line, param update.model.0) on line[] stream compute after B.model.mb0 #9
  all_reduce.loss.0.line = all_reduce loss loss.0 (F.model.mb0:1, F.model.mb1:1) over dp on line[] stream sum.line #8
  B.model.mb1 = B model [mb: 1] @model.B (load.x.mb1.line, load.label.mb1.line, F.model.mb1, all_reduce.count.loss.0.line) on line[] stream compute after F.model.mb1 #9
  accumulate.model.0 = accumulate bucket model.0 (grad B.model.mb0 + B.model.mb1) on line[] #6
  all_reduce.model.0 = all_reduce bucket model.0 (accumulate.model.0) over dp on line[] stream reduce.line #6
  report.loss.0 = report loss loss.0 (all_reduce.loss.0.line, all_reduce.loss.0.line:1, all_reduce.count.loss.0.line) on line[] stream compute #8
  sum_squares.model.0 = sum_squares bucket model.0 (all_reduce.model.0) on line[] stream compute #6
  update.model.0 = update bucket model.0 (all_reduce.model.0) on line[] stream compute #6
  norm.line = norm (sum_squares.model.0) on line[] stream compute #3
  report.norm = report norm (norm.line) on line[] stream compute #3
}
communicator group.line group (line[]) over dp stream reduce.line #6 {
  all_reduce.model.0
}
communicator group.line.no2 group (line[]) over dp stream sum.line #8 {
  all_reduce.count.loss.0.line
  all_reduce.loss.0.line
}
role line at line[] arena 768 live 768 {
  buffer %parameters.model.0 = parameters bucket model.0 at 0 bytes 64
  buffer %gradients.model.0 = gradients bucket model.0 at 64 bytes 64
  buffer %scalars = scalars at 128 bytes 64
  buffer %load.x.mb0.line:0 = activations at 192 bytes 16
  buffer %load.label.mb0.line:0 = activations at 256 bytes 16
  buffer %load.label.mb1.line:0 = activations at 320 bytes 16
  buffer %F.model.mb0:0 = activations at 384 bytes 24
  buffer %F.model.mb0:1 = activations at 448 bytes 4
  buffer %count.loss.0.line:0 = activations at 512 bytes 8
  buffer %workspace = workspace at 576 bytes 192
  buffer %load.x.mb1.line:0 = activations at 384 bytes 16
  buffer %F.model.mb1:0 = activations at 192 bytes 24
  buffer %F.model.mb1:1 = activations at 256 bytes 4
  buffer %sum_squares.model.0:0 = activations at 192 bytes 8
  buffer %norm.line:0 = activations at 256 bytes 16
  load.x.mb0.line on compute writes (%load.x.mb0.line:0)
  load.label.mb0.line on compute writes (%load.label.mb0.line:0)
  load.label.mb1.line on compute writes (%load.label.mb1.line:0)
  F.model.mb0 on compute reads (%load.x.mb0.line:0, %load.label.mb0.line:0, %parameters.model.0) writes (%F.model.mb0:0, %F.model.mb0:1)
  count.loss.0.line on compute reads (%load.label.mb0.line:0, %load.label.mb1.line:0) writes (%count.loss.0.line:0)
  all_reduce.count.loss.0.line on sum.line via group.line.no2 after count.loss.0.line reads (%count.loss.0.line:0) writes (%count.loss.0.line:0)
  B.model.mb0 on compute after all_reduce.count.loss.0.line reads (%load.x.mb0.line:0, %load.label.mb0.line:0, %F.model.mb0:0, %count.loss.0.line:0) writes (%gradients.model.0) uses (%workspace)
  load.x.mb1.line on compute writes (%load.x.mb1.line:0)
  F.model.mb1 on compute reads (%load.x.mb1.line:0, %load.label.mb1.line:0, %parameters.model.0) writes (%F.model.mb1:0, %F.model.mb1:1)
  all_reduce.loss.0.line on sum.line via group.line.no2 after F.model.mb1 reads (%F.model.mb0:1, %F.model.mb1:1) writes (%F.model.mb0:1, %F.model.mb1:1)
  B.model.mb1 on compute reads (%load.x.mb1.line:0, %load.label.mb1.line:0, %F.model.mb1:0, %count.loss.0.line:0) writes (+%gradients.model.0) uses (%workspace)
  all_reduce.model.0 on reduce.line via group.line after B.model.mb1 reads (%gradients.model.0) writes (%gradients.model.0)
  report.loss.0 on compute after all_reduce.loss.0.line reads (%F.model.mb0:1, %F.model.mb1:1, %count.loss.0.line:0)
  sum_squares.model.0 on compute after all_reduce.model.0 reads (%gradients.model.0) writes (%sum_squares.model.0:0)
  update.model.0 on compute reads (%gradients.model.0) writes (%parameters.model.0)
  norm.line on compute reads (%sum_squares.model.0:0) writes (%norm.line:0)
  report.norm on compute reads (%norm.line:0)
}
locations {
  1 "masked.pipe":7:7-7:13
  2 "masked.pipe":8:12-8:43
  3 "masked.pipe":9:12-9:24
  4 "masked.pipe":1:1-1:24
  5 "masked.pipe":11:5-11:27
  6 "masked.pipe":4:12-4:33 from "masked.pipe":7:16-7:21
  7 "masked.pipe":3:5-3:59 from "masked.pipe":7:16-7:21
  8 "masked.pipe":5:5-5:48 from "masked.pipe":7:16-7:21
  9 "masked.pipe":5:24-5:29 from "masked.pipe":7:16-7:21
  10 "masked.pipe":5:10-5:48 from "masked.pipe":7:16-7:21
}
