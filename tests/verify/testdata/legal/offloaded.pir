pir 2 planned
train small #1 {
  steps 3
  dtype f64
  seed 0
  data synthetic(classes: 0, batch: 6, dim: 3) #2
  optim adamw(lr: constant(0.01, warmup: 0, floor: 0), beta1: 0.9, beta2: 0.999, eps: 1e-08, weight_decay: 0) #3
}
mesh grid(pp: 1) #4
split batch into mb: 3 #5
param w1: f64[dim: 3, hid: 5] = normal(0.02) #6
param w2: f64[hid: 5, out: 3] = normal(0.02) #7
input x: f64[batch: 6*, dim: 3] #8
loss loss.0: 18 #9
chunk model of model F @model.F B @model.B #10
bucket model.0 (w1, w2) on grid[] offloaded #6
stream compute
stream copy
claim grid[pp: 0] #11
body @model.F(%x: data f64[batch: 2*, dim: 3] input x,
    %w1: param f64[dim: 3, hid: 5] param w1,
    %w2: param f64[hid: 5, out: 3] param w2)
    -> (%tanh: saved f64[batch: 2*, hid: 5],
    %tanh.1: saved f64[batch: 2*, out: 3],
    %sum: loss_sum f64[] loss loss.0) {
  %x = port f64[batch: 2*, dim: 3]
  %w1 = port f64[dim: 3, hid: 5]
  %w2 = port f64[hid: 5, out: 3]
  %contract = contract(%x, %w1) {dims: [dim]} : f64[batch: 2*, hid: 5] @F #10
  %tanh = tanh(%contract) : f64[batch: 2*, hid: 5] @F #12
  %contract.1 = contract(%tanh, %w2) {dims: [hid]} : f64[batch: 2*, out: 3] @F #13
  %tanh.1 = tanh(%contract.1) : f64[batch: 2*, out: 3] @F #14
  %square = square(%tanh.1) : f64[batch: 2*, out: 3] @F #15
  %sum = sum(%square) {dims: [batch, out]} : f64[] @F #9
}
body @model.B(%x: data f64[batch: 2*, dim: 3] input x,
    %tanh: saved f64[batch: 2*, hid: 5],
    %tanh.1: saved f64[batch: 2*, out: 3],
    %w2: param f64[hid: 5, out: 3] param w2)
    -> (%d.w1.contract: grad f64[dim: 3, hid: 5] param w1 as w1,
    %d.w2.contract: grad f64[hid: 5, out: 3] param w2 as w2) {
  %x = port f64[batch: 2*, dim: 3]
  %tanh = port f64[batch: 2*, hid: 5]
  %tanh.1 = port f64[batch: 2*, out: 3]
  %w2 = port f64[hid: 5, out: 3]
  %d.square.fill = fill() {scalar: 0.05555555555555555, shape: f64[batch: 2*, out: 3]} : f64[batch: 2*, out: 3] @BI #9
  %d.tanh.1.scale = scale(%d.square.fill) {scalar: 2} : f64[batch: 2*, out: 3] @BI #15
  %d.tanh.1.mul = mul(%d.tanh.1.scale, %tanh.1) : f64[batch: 2*, out: 3] @BI #15
  %d.contract.1.square = square(%tanh.1) : f64[batch: 2*, out: 3] @BI #14
  %d.contract.1.neg = neg(%d.contract.1.square) : f64[batch: 2*, out: 3] @BI #14
  %d.contract.1.offset = offset(%d.contract.1.neg) {scalar: 1} : f64[batch: 2*, out: 3] @BI #14
  %d.contract.1.mul = mul(%d.tanh.1.mul, %d.contract.1.offset) : f64[batch: 2*, out: 3] @BI #14
  %d.tanh.contract = contract(%d.contract.1.mul, %w2) {dims: [out]} : f64[batch: 2*, hid: 5] @BI #13
  %d.w2.contract = contract(%tanh, %d.contract.1.mul) {dims: [batch]} : f64[hid: 5, out: 3] @BW #13
  %d.contract.square = square(%tanh) : f64[batch: 2*, hid: 5] @BI #12
  %d.contract.neg = neg(%d.contract.square) : f64[batch: 2*, hid: 5] @BI #12
  %d.contract.offset = offset(%d.contract.neg) {scalar: 1} : f64[batch: 2*, hid: 5] @BI #12
  %d.contract.mul = mul(%d.tanh.contract, %d.contract.offset) : f64[batch: 2*, hid: 5] @BI #12
  %d.w1.contract = contract(%x, %d.contract.mul) {dims: [batch]} : f64[dim: 3, hid: 5] @BW #10
}
graph {
  load.x.mb0.grid = load x [mb: 0] on grid[] stream compute #8
  F.model.mb0 = F model [mb: 0] @model.F (load.x.mb0.grid, param update.model.0, param update.model.0:1) on grid[] stream compute #16
  offload.F.model.mb0 = offload F model [mb: 0] (F.model.mb0, F.model.mb0:1) over () on grid[] stream copy #17
  load.x.mb1.grid = load x [mb: 1] on grid[] stream compute #8
  F.model.mb1 = F model [mb: 1] @model.F (load.x.mb1.grid, param update.model.0, param update.model.0:1) on grid[] stream compute after F.model.mb0 #18
  B.model.mb1 = B model [mb: 1] @model.B (load.x.mb1.grid, F.model.mb1, F.model.mb1:1, param update.model.0:1) on grid[] stream compute after F.model.mb1 #19
  fetch.B.model.mb0 = fetch B model [mb: 0] (offload.F.model.mb0, offload.F.model.mb0:1) over () on grid[] stream copy #17
  B.model.mb0 = B model [mb: 0] @model.B (load.x.mb0.grid, fetch.B.model.mb0, fetch.B.model.mb0:1, param update.model.0:1) on grid[] stream compute after B.model.mb1 #20
  load.x.mb2.grid = load x [mb: 2] on grid[] stream compute #8
  F.model.mb2 = F model [mb: 2] @model.F (load.x.mb2.grid, param update.model.0, param update.model.0:1) on grid[] stream compute after B.model.mb0 #21
  B.model.mb2 = B model [mb: 2] @model.B (load.x.mb2.grid, F.model.mb2, F.model.mb2:1, param update.model.0:1) on grid[] stream compute after F.model.mb2 #22
  accumulate.model.0 = accumulate bucket model.0 (grad B.model.mb1 + B.model.mb0 + B.model.mb2, grad B.model.mb1:1 + B.model.mb0:1 + B.model.mb2:1) on grid[] #6
  sum_squares.model.0 = sum_squares bucket model.0 (accumulate.model.0, accumulate.model.0:1) on grid[] stream compute #6
  fetch.model.0 = fetch bucket model.0 over () on grid[] stream copy #23
  update.model.0 = update bucket model.0 (accumulate.model.0, accumulate.model.0:1, fetch.model.0) on grid[] stream compute #6
  offload.model.0 = offload bucket model.0 (update.model.0:2) over () on grid[] stream copy #23
  report.loss.0 = report loss loss.0 (F.model.mb0:2, F.model.mb1:2, F.model.mb2:2) on grid[] stream compute #9
  norm.grid = norm (sum_squares.model.0) on grid[] stream compute #3
  report.norm = report norm (norm.grid) on grid[] stream compute #3
}
communicator host.grid group (grid[]) stream copy #17 {
  offload.F.model.mb0
  fetch.B.model.mb0
  fetch.model.0
  offload.model.0
}
role pp0 at grid[pp: 0] arena 1344 live 1344 host 704 {
  buffer %parameters.model.0 = parameters bucket model.0 at 0 bytes 256
  buffer %gradients.model.0 = gradients bucket model.0 at 256 bytes 256
  buffer %offloaded_optimizer.model.0 = offloaded_optimizer bucket model.0 at 0 bytes 512
  buffer %scalars = scalars at 512 bytes 64
  buffer %load.x.mb0.grid:0 = activations at 960 bytes 48
  buffer %F.model.mb0:0 = activations at 704 bytes 80
  buffer %F.model.mb0:1 = activations at 832 bytes 48
  buffer %F.model.mb0:2 = activations at 1152 bytes 8
  buffer %workspace = workspace at 576 bytes 128
  buffer %offload.F.model.mb0:0 = offloaded at 512 bytes 80
  buffer %offload.F.model.mb0:1 = offloaded at 640 bytes 48
  buffer %load.x.mb1.grid:0 = activations at 1024 bytes 48
  buffer %F.model.mb1:0 = activations at 832 bytes 80
  buffer %F.model.mb1:1 = activations at 1088 bytes 48
  buffer %F.model.mb1:2 = activations at 1216 bytes 8
  buffer %workspace#2 = workspace at 576 bytes 256
  buffer %fetch.B.model.mb0:0 = activations at 832 bytes 80
  buffer %fetch.B.model.mb0:1 = activations at 1024 bytes 48
  buffer %load.x.mb2.grid:0 = activations at 960 bytes 48
  buffer %F.model.mb2:0 = activations at 832 bytes 80
  buffer %F.model.mb2:1 = activations at 1024 bytes 48
  buffer %F.model.mb2:2 = activations at 1280 bytes 8
  buffer %sum_squares.model.0:0 = activations at 1088 bytes 16
  buffer %fetch.model.0:0 = communication at 576 bytes 512
  buffer %norm.grid:0 = activations at 576 bytes 16
  load.x.mb0.grid on compute writes (%load.x.mb0.grid:0)
  F.model.mb0 on compute reads (%load.x.mb0.grid:0, %parameters.model.0, %parameters.model.0 + 128) writes (%F.model.mb0:0, %F.model.mb0:1, %F.model.mb0:2) uses (%workspace)
  offload.F.model.mb0 on copy via host.grid after F.model.mb0 reads (%F.model.mb0:0, %F.model.mb0:1) writes (%offload.F.model.mb0:0, %offload.F.model.mb0:1)
  load.x.mb1.grid on compute writes (%load.x.mb1.grid:0)
  F.model.mb1 on compute after offload.F.model.mb0 reads (%load.x.mb1.grid:0, %parameters.model.0, %parameters.model.0 + 128) writes (%F.model.mb1:0, %F.model.mb1:1, %F.model.mb1:2) uses (%workspace)
  B.model.mb1 on compute reads (%load.x.mb1.grid:0, %F.model.mb1:0, %F.model.mb1:1, %parameters.model.0 + 128) writes (%gradients.model.0, %gradients.model.0 + 128) uses (%workspace#2)
  fetch.B.model.mb0 on copy via host.grid after B.model.mb1 reads (%offload.F.model.mb0:0, %offload.F.model.mb0:1) writes (%fetch.B.model.mb0:0, %fetch.B.model.mb0:1)
  B.model.mb0 on compute after fetch.B.model.mb0 reads (%load.x.mb0.grid:0, %fetch.B.model.mb0:0, %fetch.B.model.mb0:1, %parameters.model.0 + 128) writes (+%gradients.model.0, +%gradients.model.0 + 128) uses (%workspace#2)
  load.x.mb2.grid on compute writes (%load.x.mb2.grid:0)
  F.model.mb2 on compute reads (%load.x.mb2.grid:0, %parameters.model.0, %parameters.model.0 + 128) writes (%F.model.mb2:0, %F.model.mb2:1, %F.model.mb2:2) uses (%workspace)
  B.model.mb2 on compute reads (%load.x.mb2.grid:0, %F.model.mb2:0, %F.model.mb2:1, %parameters.model.0 + 128) writes (+%gradients.model.0, +%gradients.model.0 + 128) uses (%workspace#2)
  sum_squares.model.0 on compute reads (%gradients.model.0, %gradients.model.0 + 128) writes (%sum_squares.model.0:0)
  fetch.model.0 on copy via host.grid after B.model.mb2 writes (%fetch.model.0:0)
  update.model.0 on compute after fetch.model.0 reads (%gradients.model.0, %gradients.model.0 + 128, %fetch.model.0:0) writes (%parameters.model.0, %parameters.model.0 + 128, %fetch.model.0:0)
  offload.model.0 on copy via host.grid after update.model.0 reads (%fetch.model.0:0)
  report.loss.0 on compute reads (%F.model.mb0:2, %F.model.mb1:2, %F.model.mb2:2)
  norm.grid on compute after offload.model.0 reads (%sum_squares.model.0:0) writes (%norm.grid:0)
  report.norm on compute reads (%norm.grid:0)
}
locations {
  1 "small.pipe":8:7-8:12
  2 "small.pipe":9:12-9:39
  3 "small.pipe":10:12-10:27
  4 "small.pipe":7:1-7:17
  5 "small.pipe":13:5-13:27
  6 "small.pipe":3:12-3:32 from "small.pipe":8:15-8:29
  7 "small.pipe":4:12-4:27 from "small.pipe":8:15-8:29
  8 "small.pipe":2:5-2:32 from "small.pipe":8:15-8:29
  9 "small.pipe":5:5-5:41 from "small.pipe":8:15-8:29
  10 "small.pipe":5:27-5:33 from "small.pipe":8:15-8:29
  11 "small.pipe":16:9-16:21
  12 "small.pipe":5:22-5:34 from "small.pipe":8:15-8:29
  13 "small.pipe":5:22-5:39 from "small.pipe":8:15-8:29
  14 "small.pipe":5:17-5:40 from "small.pipe":8:15-8:29
  15 "small.pipe":5:10-5:41 from "small.pipe":8:15-8:29
  16 "small.pipe":17:13-17:26
  17 "small.pipe":20:5-20:18
  18 "small.pipe":17:28-17:41
  19 "small.pipe":17:43-17:56
  20 "small.pipe":17:58-17:71
  21 "small.pipe":17:73-17:86
  22 "small.pipe":17:88-17:101
  23 "small.pipe":21:5-21:39
}
