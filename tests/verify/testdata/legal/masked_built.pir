pir 2 built
train masked #1 {
  steps 5
  dtype f32
  seed 0
  data synthetic(classes: 3, batch: 8) #2
  optim sgd(lr: constant(0.1, warmup: 0, floor: 0), momentum: 0, weight_decay: 0) #3
}
mesh line(pp: 1, dp: 2) #4
param w: f32[features: 2, class: 3] = normal(0.02) #5
input x: f32[batch: 8*, features: 2] #6
input label: i64[batch: 8*] #6
loss loss.0: 8 ignore 1 of label #7
chunk model of model F @model.F B @model.B #8
bucket model.0 (w) #5
body @model.F(%x: data f32[batch: 8*, features: 2] input x,
    %label: data i64[batch: 8*] input label,
    %w: param f32[features: 2, class: 3] param w)
    -> (%contract: saved f32[batch: 8*, class: 3],
    %sum: loss_sum f32[] loss loss.0) {
  %x = port f32[batch: 8*, features: 2]
  %label = port i64[batch: 8*]
  %w = port f32[features: 2, class: 3]
  %contract = contract(%x, %w) {dims: [features]} : f32[batch: 8*, class: 3] @F #8
  %cross_entropy = cross_entropy(%contract, %label) {dims: [class], ignore: 1} : f32[batch: 8*] @F #9
  %sum = sum(%cross_entropy) {dims: [batch]} : f32[] @F #7
}
body @model.B(%x: data f32[batch: 8*, features: 2] input x,
    %label: data i64[batch: 8*] input label,
    %contract: saved f32[batch: 8*, class: 3],
    %loss.0.count: count f64[] loss loss.0)
    -> (%d.w.contract: grad f32[features: 2, class: 3] param w as w) {
  %x = port f32[batch: 8*, features: 2]
  %label = port i64[batch: 8*]
  %contract = port f32[batch: 8*, class: 3]
  %loss.0.count = port f64[]
  %d.cross_entropy.fill = fill() {scalar: 1, shape: f64[]} : f64[] @BI #7
  %d.cross_entropy.maximum = maximum(%loss.0.count, %d.cross_entropy.fill) : f64[] @BI #7
  %d.cross_entropy.cast = cast(%d.cross_entropy.maximum) {dtype: f32} : f32[] @BI #7
  %d.cross_entropy.fill.1 = fill() {scalar: 1, shape: f32[batch: 8*]} : f32[batch: 8*] @BI #7
  %d.cross_entropy.div = div(%d.cross_entropy.fill.1, %d.cross_entropy.cast) : f32[batch: 8*] @BI #7
  %d.contract.cross_entropy_grad = cross_entropy_grad(%contract, %label, %d.cross_entropy.div) {dims: [class], ignore: 1} : f32[batch: 8*, class: 3] @BI #9
  %d.w.contract = contract(%x, %d.contract.cross_entropy_grad) {dims: [batch]} : f32[features: 2, class: 3] @BW #8
}
graph {
  F.model = F model @model.F (load.x, load.label, param update.model.0) #8
  B.model = B model @model.B (load.x, load.label, F.model, count.loss.0) #8
  load.x = load x #6
  load.label = load label #6
  accumulate.model.0 = accumulate bucket model.0 (grad B.model) #5
  update.model.0 = update bucket model.0 (accumulate.model.0) #5
  count.loss.0 = count loss.0 (load.label) #7
  report.loss.0 = report loss loss.0 (F.model:1, count.loss.0) #7
}
locations {
  1 "masked.pipe":7:7-7:13
  2 "masked.pipe":8:12-8:43
  3 "masked.pipe":9:12-9:24
  4 "masked.pipe":1:1-1:24
  5 "masked.pipe":4:12-4:33 from "masked.pipe":7:16-7:21
  6 "masked.pipe":3:5-3:59 from "masked.pipe":7:16-7:21
  7 "masked.pipe":5:5-5:48 from "masked.pipe":7:16-7:21
  8 "masked.pipe":5:24-5:29 from "masked.pipe":7:16-7:21
  9 "masked.pipe":5:10-5:48 from "masked.pipe":7:16-7:21
}
