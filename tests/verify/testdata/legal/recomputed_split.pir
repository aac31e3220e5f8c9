// The same before it is placed.
pir 2 split
train again #1 {
  steps 3
  dtype f32
  seed 7
  data synthetic(classes: 0, batch: 4, dim: 4) #2
  optim sgd(lr: constant(0.1, warmup: 0, floor: 0), momentum: 0, weight_decay: 0) #3
}
mesh line(pp: 2) #4
split batch into mb: 2 #5
param one.0.up: f32[dim: 4, hidden: 6] = normal(0.02) #6
param one.0.down: f32[hidden: 6, dim: 4] = normal(0.02) #7
param tail.0.gain: f32[dim: 4] = ones(1) frozen #8
param two.0.up: f32[dim: 4, hidden: 6] = normal(0.02) #9
param two.0.down: f32[hidden: 6, dim: 4] = normal(0.02) #10
input x: f32[batch: 4*, dim: 4] #11
input y: f32[batch: 4*, dim: 4] #11
loss loss.0: 16 #12
chunk stage0 of stage[0] F @stage0.F R @stage0.R B @stage0.B recomputed @stage0.recomputed #13
chunk stage1 of stage[1] F @stage1.F R @stage1.R B @stage1.B #14
bucket stage0.0 (one.0.up, one.0.down) #6
bucket stage1.0 (two.0.up, two.0.down) #9
bucket stage1.1 (tail.0.gain) #8
body @stage0.F(%x: data f32[batch: 2*, dim: 4] input x,
    %one.0.up: param f32[dim: 4, hidden: 6] param one.0.up,
    %one.0.down: param f32[hidden: 6, dim: 4] param one.0.down)
    -> (%one.0.contract: saved f32[batch: 2*, hidden: 6],
    %one.0.gelu: saved f32[batch: 2*, hidden: 6],
    %one.0.contract.1: data f32[batch: 2*, dim: 4]) {
  %x = port f32[batch: 2*, dim: 4]
  %one.0.up = port f32[dim: 4, hidden: 6]
  %one.0.down = port f32[hidden: 6, dim: 4]
  %one.0.contract = contract(%x, %one.0.up) {dims: [dim]} : f32[batch: 2*, hidden: 6] @F #13
  %one.0.gelu = gelu(%one.0.contract) : f32[batch: 2*, hidden: 6] @F #15
  %one.0.contract.1 = contract(%one.0.gelu, %one.0.down) {dims: [hidden]} : f32[batch: 2*, dim: 4] @F #16
}
body @stage0.B(%x: data f32[batch: 2*, dim: 4] input x,
    %one.0.contract: saved f32[batch: 2*, hidden: 6],
    %one.0.gelu: saved f32[batch: 2*, hidden: 6],
    %d.one.0.contract.1.mul: data f32[batch: 2*, dim: 4],
    %one.0.down: param f32[hidden: 6, dim: 4] param one.0.down)
    -> (%d.one.0.up.contract: grad f32[dim: 4, hidden: 6] param one.0.up as one.0.up,
    %d.one.0.down.contract: grad f32[hidden: 6, dim: 4] param one.0.down as one.0.down) {
  %x = port f32[batch: 2*, dim: 4]
  %one.0.contract = port f32[batch: 2*, hidden: 6]
  %one.0.gelu = port f32[batch: 2*, hidden: 6]
  %d.one.0.contract.1.mul = port f32[batch: 2*, dim: 4]
  %one.0.down = port f32[hidden: 6, dim: 4]
  %d.one.0.gelu.contract = contract(%d.one.0.contract.1.mul, %one.0.down) {dims: [dim]} : f32[batch: 2*, hidden: 6] @BI #16
  %d.one.0.down.contract = contract(%one.0.gelu, %d.one.0.contract.1.mul) {dims: [batch]} : f32[hidden: 6, dim: 4] @BW #16
  %d.one.0.contract.gelu_grad = gelu_grad(%one.0.contract, %d.one.0.gelu.contract) : f32[batch: 2*, hidden: 6] @BI #15
  %d.one.0.up.contract = contract(%x, %d.one.0.contract.gelu_grad) {dims: [batch]} : f32[dim: 4, hidden: 6] @BW #13
}
body @stage1.B(%tail.0.mul: saved f32[batch: 2*, dim: 4],
    %two.0.contract: saved f32[batch: 2*, hidden: 6],
    %two.0.gelu: saved f32[batch: 2*, hidden: 6],
    %sub: saved f32[batch: 2*, dim: 4],
    %tail.0.gain: param f32[dim: 4] param tail.0.gain,
    %two.0.up: param f32[dim: 4, hidden: 6] param two.0.up,
    %two.0.down: param f32[hidden: 6, dim: 4] param two.0.down)
    -> (%d.one.0.contract.1.mul: data f32[batch: 2*, dim: 4],
    %d.two.0.up.contract: grad f32[dim: 4, hidden: 6] param two.0.up as two.0.up,
    %d.two.0.down.contract: grad f32[hidden: 6, dim: 4] param two.0.down as two.0.down) {
  %tail.0.mul = port f32[batch: 2*, dim: 4]
  %two.0.contract = port f32[batch: 2*, hidden: 6]
  %two.0.gelu = port f32[batch: 2*, hidden: 6]
  %sub = port f32[batch: 2*, dim: 4]
  %tail.0.gain = port f32[dim: 4]
  %two.0.up = port f32[dim: 4, hidden: 6]
  %two.0.down = port f32[hidden: 6, dim: 4]
  %d.square.fill = fill() {scalar: 0.0625, shape: f32[batch: 2*, dim: 4]} : f32[batch: 2*, dim: 4] @BI #12
  %d.sub.scale = scale(%d.square.fill) {scalar: 2} : f32[batch: 2*, dim: 4] @BI #17
  %d.sub.mul = mul(%d.sub.scale, %sub) : f32[batch: 2*, dim: 4] @BI #17
  %d.two.0.gelu.contract = contract(%d.sub.mul, %two.0.down) {dims: [dim]} : f32[batch: 2*, hidden: 6] @BI #18
  %d.two.0.down.contract = contract(%two.0.gelu, %d.sub.mul) {dims: [batch]} : f32[hidden: 6, dim: 4] @BW #18
  %d.two.0.contract.gelu_grad = gelu_grad(%two.0.contract, %d.two.0.gelu.contract) : f32[batch: 2*, hidden: 6] @BI #19
  %d.tail.0.mul.contract = contract(%d.two.0.contract.gelu_grad, %two.0.up) {dims: [hidden]} : f32[batch: 2*, dim: 4] @BI #20
  %d.two.0.up.contract = contract(%tail.0.mul, %d.two.0.contract.gelu_grad) {dims: [batch]} : f32[dim: 4, hidden: 6] @BW #20
  %d.tail.0.mul.add = add(%d.sub.mul, %d.tail.0.mul.contract) : f32[batch: 2*, dim: 4] @BI #14
  %d.one.0.contract.1.mul = mul(%d.tail.0.mul.add, %tail.0.gain) : f32[batch: 2*, dim: 4] @BI #14
}
body @stage0.recomputed(%x: data f32[batch: 2*, dim: 4] input x,
    %one.0.up: param f32[dim: 4, hidden: 6] param one.0.up,
    %one.0.down: param f32[hidden: 6, dim: 4] param one.0.down)
    -> (%one.0.contract.1: data f32[batch: 2*, dim: 4]) {
  %x = port f32[batch: 2*, dim: 4]
  %one.0.up = port f32[dim: 4, hidden: 6]
  %one.0.down = port f32[hidden: 6, dim: 4]
  %one.0.contract = contract(%x, %one.0.up) {dims: [dim]} : f32[batch: 2*, hidden: 6] @F #13
  %one.0.gelu = gelu(%one.0.contract) : f32[batch: 2*, hidden: 6] @F #15
  %one.0.contract.1 = contract(%one.0.gelu, %one.0.down) {dims: [hidden]} : f32[batch: 2*, dim: 4] @F #16
}
body @stage0.R(%x: data f32[batch: 2*, dim: 4] input x,
    %one.0.up: param f32[dim: 4, hidden: 6] param one.0.up)
    -> (%one.0.contract: saved f32[batch: 2*, hidden: 6],
    %one.0.gelu: saved f32[batch: 2*, hidden: 6]) {
  %x = port f32[batch: 2*, dim: 4]
  %one.0.up = port f32[dim: 4, hidden: 6]
  %one.0.contract = contract(%x, %one.0.up) {dims: [dim]} : f32[batch: 2*, hidden: 6] @F #13
  %one.0.gelu = gelu(%one.0.contract) : f32[batch: 2*, hidden: 6] @F #15
}
body @stage1.F(%y: data f32[batch: 2*, dim: 4] input y,
    %one.0.contract.1: data f32[batch: 2*, dim: 4],
    %tail.0.gain: param f32[dim: 4] param tail.0.gain,
    %two.0.up: param f32[dim: 4, hidden: 6] param two.0.up,
    %two.0.down: param f32[hidden: 6, dim: 4] param two.0.down)
    -> (%sum: loss_sum f32[] loss loss.0) {
  %y = port f32[batch: 2*, dim: 4]
  %one.0.contract.1 = port f32[batch: 2*, dim: 4]
  %tail.0.gain = port f32[dim: 4]
  %two.0.up = port f32[dim: 4, hidden: 6]
  %two.0.down = port f32[hidden: 6, dim: 4]
  %tail.0.mul = mul(%one.0.contract.1, %tail.0.gain) : f32[batch: 2*, dim: 4] @F #14
  %two.0.contract = contract(%tail.0.mul, %two.0.up) {dims: [dim]} : f32[batch: 2*, hidden: 6] @F #20
  %two.0.gelu = gelu(%two.0.contract) : f32[batch: 2*, hidden: 6] @F #19
  %two.0.contract.1 = contract(%two.0.gelu, %two.0.down) {dims: [hidden]} : f32[batch: 2*, dim: 4] @F #18
  %two.0.add = add(%tail.0.mul, %two.0.contract.1) : f32[batch: 2*, dim: 4] @F #21
  %sub = sub(%two.0.add, %y) : f32[batch: 2*, dim: 4] @F #22
  %square = square(%sub) : f32[batch: 2*, dim: 4] @F #17
  %sum = sum(%square) {dims: [batch, dim]} : f32[] @F #12
}
body @stage1.R(%y: data f32[batch: 2*, dim: 4] input y,
    %one.0.contract.1: saved f32[batch: 2*, dim: 4],
    %tail.0.gain: param f32[dim: 4] param tail.0.gain,
    %two.0.up: param f32[dim: 4, hidden: 6] param two.0.up,
    %two.0.down: param f32[hidden: 6, dim: 4] param two.0.down)
    -> (%tail.0.mul: saved f32[batch: 2*, dim: 4],
    %two.0.contract: saved f32[batch: 2*, hidden: 6],
    %two.0.gelu: saved f32[batch: 2*, hidden: 6],
    %sub: saved f32[batch: 2*, dim: 4]) {
  %y = port f32[batch: 2*, dim: 4]
  %one.0.contract.1 = port f32[batch: 2*, dim: 4]
  %tail.0.gain = port f32[dim: 4]
  %two.0.up = port f32[dim: 4, hidden: 6]
  %two.0.down = port f32[hidden: 6, dim: 4]
  %tail.0.mul = mul(%one.0.contract.1, %tail.0.gain) : f32[batch: 2*, dim: 4] @F #14
  %two.0.contract = contract(%tail.0.mul, %two.0.up) {dims: [dim]} : f32[batch: 2*, hidden: 6] @F #20
  %two.0.gelu = gelu(%two.0.contract) : f32[batch: 2*, hidden: 6] @F #19
  %two.0.contract.1 = contract(%two.0.gelu, %two.0.down) {dims: [hidden]} : f32[batch: 2*, dim: 4] @F #18
  %two.0.add = add(%tail.0.mul, %two.0.contract.1) : f32[batch: 2*, dim: 4] @F #21
  %sub = sub(%two.0.add, %y) : f32[batch: 2*, dim: 4] @F #22
}
graph {
  F.stage0.mb0 = F stage0 [mb: 0] @stage0.F (load.x.mb0, param update.stage0.0, param update.stage0.0:1) #13
  B.stage0.mb0 = B stage0 [mb: 0] @stage0.B (load.x.mb0, F.stage0.mb0, F.stage0.mb0:1, B.stage1.mb0, param update.stage0.0:1) #13
  F.stage0.mb1 = F stage0 [mb: 1] @stage0.recomputed (load.x.mb1, param update.stage0.0, param update.stage0.0:1) #13
  R.stage0.mb1 = R stage0 [mb: 1] @stage0.R (load.x.mb1, param update.stage0.0) #13
  B.stage0.mb1 = B stage0 [mb: 1] @stage0.B (load.x.mb1, R.stage0.mb1, R.stage0.mb1:1, B.stage1.mb1, param update.stage0.0:1) #13
  F.stage1.mb0 = F stage1 [mb: 0] @stage1.F (load.y.mb0, F.stage0.mb0:2, param _:0, param update.stage1.0, param update.stage1.0:1) #14
  R.stage1.mb0 = R stage1 [mb: 0] @stage1.R (load.y.mb0, F.stage0.mb0:2, param _:0, param update.stage1.0, param update.stage1.0:1) #14
  B.stage1.mb0 = B stage1 [mb: 0] @stage1.B (R.stage1.mb0, R.stage1.mb0:1, R.stage1.mb0:2, R.stage1.mb0:3, param _:0, param update.stage1.0, param update.stage1.0:1) #14
  F.stage1.mb1 = F stage1 [mb: 1] @stage1.F (load.y.mb1, F.stage0.mb1, param _:0, param update.stage1.0, param update.stage1.0:1) #14
  R.stage1.mb1 = R stage1 [mb: 1] @stage1.R (load.y.mb1, F.stage0.mb1, param _:0, param update.stage1.0, param update.stage1.0:1) #14
  B.stage1.mb1 = B stage1 [mb: 1] @stage1.B (R.stage1.mb1, R.stage1.mb1:1, R.stage1.mb1:2, R.stage1.mb1:3, param _:0, param update.stage1.0, param update.stage1.0:1) #14
  load.x.mb0 = load x [mb: 0] #11
  load.x.mb1 = load x [mb: 1] #11
  load.y.mb0 = load y [mb: 0] #11
  load.y.mb1 = load y [mb: 1] #11
  accumulate.stage0.0 = accumulate bucket stage0.0 (grad B.stage0.mb0 + B.stage0.mb1, grad B.stage0.mb0:1 + B.stage0.mb1:1) #6
  update.stage0.0 = update bucket stage0.0 (accumulate.stage0.0, accumulate.stage0.0:1) #6
  accumulate.stage1.0 = accumulate bucket stage1.0 (grad B.stage1.mb0:1 + B.stage1.mb1:1, grad B.stage1.mb0:2 + B.stage1.mb1:2) #9
  update.stage1.0 = update bucket stage1.0 (accumulate.stage1.0, accumulate.stage1.0:1) #9
  report.loss.0 = report loss loss.0 (F.stage1.mb0, F.stage1.mb1) #12
}
locations {
  1 "again.pipe":18:7-18:12
  2 "again.pipe":19:12-19:39
  3 "again.pipe":20:12-20:24
  4 "again.pipe":17:1-17:17
  5 "again.pipe":24:5-24:27
  6 "again.pipe":6:12-6:30 from "again.pipe":3:26-3:32 from "again.pipe":18:15-18:20
  7 "again.pipe":6:32-6:49 from "again.pipe":3:26-3:32 from "again.pipe":18:15-18:20
  8 "again.pipe":14:12-14:21 from "again.pipe":3:21-3:33 from "again.pipe":18:15-18:20
  9 "again.pipe":10:12-10:30 from "again.pipe":3:17-3:34 from "again.pipe":18:15-18:20
  10 "again.pipe":10:32-10:49 from "again.pipe":3:17-3:34 from "again.pipe":18:15-18:20
  11 "again.pipe":2:5-2:49 from "again.pipe":18:15-18:20
  12 "again.pipe":3:5-3:39 from "again.pipe":18:15-18:20
  13 "again.pipe":7:17-7:23 from "again.pipe":3:26-3:32 from "again.pipe":18:15-18:20
  14 "again.pipe":15:12-15:20 from "again.pipe":3:21-3:33 from "again.pipe":18:15-18:20
  15 "again.pipe":7:12-7:24 from "again.pipe":3:26-3:32 from "again.pipe":18:15-18:20
  16 "again.pipe":7:12-7:31 from "again.pipe":3:26-3:32 from "again.pipe":18:15-18:20
  17 "again.pipe":3:10-3:39 from "again.pipe":18:15-18:20
  18 "again.pipe":11:16-11:35 from "again.pipe":3:17-3:34 from "again.pipe":18:15-18:20
  19 "again.pipe":11:16-11:28 from "again.pipe":3:17-3:34 from "again.pipe":18:15-18:20
  20 "again.pipe":11:21-11:27 from "again.pipe":3:17-3:34 from "again.pipe":18:15-18:20
  21 "again.pipe":11:12-11:35 from "again.pipe":3:17-3:34 from "again.pipe":18:15-18:20
  22 "again.pipe":3:17-3:38 from "again.pipe":18:15-18:20
}
