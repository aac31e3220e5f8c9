// Two stages on two devices, 1F1B: the first microbatch of stage 0 keeps what its backward reads, all else runs again; a frozen weight in stage 1.
pir 2 planned
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
bucket stage0.0 (one.0.up, one.0.down) on line[pp: 0] #6
bucket stage1.0 (two.0.up, two.0.down) on line[pp: 1] #9
bucket stage1.1 (tail.0.gain) on line[pp: 1] #8
stream compute
stream act.pp0.to.pp1
stream grad.pp1.to.pp0
stream gather.pp0
claim line[pp: 0] #15
claim line[pp: 1] #15
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
  %one.0.gelu = gelu(%one.0.contract) : f32[batch: 2*, hidden: 6] @F #16
  %one.0.contract.1 = contract(%one.0.gelu, %one.0.down) {dims: [hidden]} : f32[batch: 2*, dim: 4] @F #17
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
  %d.one.0.gelu.contract = contract(%d.one.0.contract.1.mul, %one.0.down) {dims: [dim]} : f32[batch: 2*, hidden: 6] @BI #17
  %d.one.0.down.contract = contract(%one.0.gelu, %d.one.0.contract.1.mul) {dims: [batch]} : f32[hidden: 6, dim: 4] @BW #17
  %d.one.0.contract.gelu_grad = gelu_grad(%one.0.contract, %d.one.0.gelu.contract) : f32[batch: 2*, hidden: 6] @BI #16
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
  %d.sub.scale = scale(%d.square.fill) {scalar: 2} : f32[batch: 2*, dim: 4] @BI #18
  %d.sub.mul = mul(%d.sub.scale, %sub) : f32[batch: 2*, dim: 4] @BI #18
  %d.two.0.gelu.contract = contract(%d.sub.mul, %two.0.down) {dims: [dim]} : f32[batch: 2*, hidden: 6] @BI #19
  %d.two.0.down.contract = contract(%two.0.gelu, %d.sub.mul) {dims: [batch]} : f32[hidden: 6, dim: 4] @BW #19
  %d.two.0.contract.gelu_grad = gelu_grad(%two.0.contract, %d.two.0.gelu.contract) : f32[batch: 2*, hidden: 6] @BI #20
  %d.tail.0.mul.contract = contract(%d.two.0.contract.gelu_grad, %two.0.up) {dims: [hidden]} : f32[batch: 2*, dim: 4] @BI #21
  %d.two.0.up.contract = contract(%tail.0.mul, %d.two.0.contract.gelu_grad) {dims: [batch]} : f32[dim: 4, hidden: 6] @BW #21
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
  %one.0.gelu = gelu(%one.0.contract) : f32[batch: 2*, hidden: 6] @F #16
  %one.0.contract.1 = contract(%one.0.gelu, %one.0.down) {dims: [hidden]} : f32[batch: 2*, dim: 4] @F #17
}
body @stage0.R(%x: data f32[batch: 2*, dim: 4] input x,
    %one.0.up: param f32[dim: 4, hidden: 6] param one.0.up)
    -> (%one.0.contract: saved f32[batch: 2*, hidden: 6],
    %one.0.gelu: saved f32[batch: 2*, hidden: 6]) {
  %x = port f32[batch: 2*, dim: 4]
  %one.0.up = port f32[dim: 4, hidden: 6]
  %one.0.contract = contract(%x, %one.0.up) {dims: [dim]} : f32[batch: 2*, hidden: 6] @F #13
  %one.0.gelu = gelu(%one.0.contract) : f32[batch: 2*, hidden: 6] @F #16
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
  %two.0.contract = contract(%tail.0.mul, %two.0.up) {dims: [dim]} : f32[batch: 2*, hidden: 6] @F #21
  %two.0.gelu = gelu(%two.0.contract) : f32[batch: 2*, hidden: 6] @F #20
  %two.0.contract.1 = contract(%two.0.gelu, %two.0.down) {dims: [hidden]} : f32[batch: 2*, dim: 4] @F #19
  %two.0.add = add(%tail.0.mul, %two.0.contract.1) : f32[batch: 2*, dim: 4] @F #22
  %sub = sub(%two.0.add, %y) : f32[batch: 2*, dim: 4] @F #23
  %square = square(%sub) : f32[batch: 2*, dim: 4] @F #18
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
  %two.0.contract = contract(%tail.0.mul, %two.0.up) {dims: [dim]} : f32[batch: 2*, hidden: 6] @F #21
  %two.0.gelu = gelu(%two.0.contract) : f32[batch: 2*, hidden: 6] @F #20
  %two.0.contract.1 = contract(%two.0.gelu, %two.0.down) {dims: [hidden]} : f32[batch: 2*, dim: 4] @F #19
  %two.0.add = add(%tail.0.mul, %two.0.contract.1) : f32[batch: 2*, dim: 4] @F #22
  %sub = sub(%two.0.add, %y) : f32[batch: 2*, dim: 4] @F #23
}
graph {
  load.x.mb0.pp0 = load x [mb: 0] on line[pp: 0] stream compute #11
  F.stage0.mb0 = F stage0 [mb: 0] @stage0.F (load.x.mb0.pp0, param update.stage0.0, param update.stage0.0:1) on line[pp: 0] stream compute #24
  send.F.stage0.mb0.pp1 = send F stage0 [mb: 0] (F.stage0.mb0:2) to recv.F.stage0.mb0.pp1 on line[pp: 0] stream act.pp0.to.pp1 #13
  recv.F.stage0.mb0.pp1 = recv F stage1 [mb: 0] from send.F.stage0.mb0.pp1 on line[pp: 1] stream act.pp0.to.pp1 #13
  load.x.mb1.pp0 = load x [mb: 1] on line[pp: 0] stream compute #11
  load.y.mb0.pp1 = load y [mb: 0] on line[pp: 1] stream compute #11
  F.stage0.mb1 = F stage0 [mb: 1] @stage0.recomputed (load.x.mb1.pp0, param update.stage0.0, param update.stage0.0:1) on line[pp: 0] stream compute after F.stage0.mb0 #25
  F.stage1.mb0 = F stage1 [mb: 0] @stage1.F (load.y.mb0.pp1, recv.F.stage0.mb0.pp1, param _:0, param update.stage1.0, param update.stage1.0:1) on line[pp: 1] stream compute #25
  send.F.stage0.mb1.pp1 = send F stage0 [mb: 1] (F.stage0.mb1) to recv.F.stage0.mb1.pp1 on line[pp: 0] stream act.pp0.to.pp1 #13
  recv.F.stage0.mb1.pp1 = recv F stage1 [mb: 1] from send.F.stage0.mb1.pp1 on line[pp: 1] stream act.pp0.to.pp1 #13
  R.stage1.mb0 = R stage1 [mb: 0] @stage1.R (load.y.mb0.pp1, recv.F.stage0.mb0.pp1, param _:0, param update.stage1.0, param update.stage1.0:1) on line[pp: 1] stream compute after F.stage1.mb0 #26
  B.stage1.mb0 = B stage1 [mb: 0] @stage1.B (R.stage1.mb0, R.stage1.mb0:1, R.stage1.mb0:2, R.stage1.mb0:3, param _:0, param update.stage1.0, param update.stage1.0:1) on line[pp: 1] stream compute after R.stage1.mb0 #26
  send.B.stage1.mb0.pp0 = send B stage1 [mb: 0] (B.stage1.mb0) to recv.B.stage1.mb0.pp0 on line[pp: 1] stream grad.pp1.to.pp0 #14
  recv.B.stage1.mb0.pp0 = recv B stage0 [mb: 0] from send.B.stage1.mb0.pp0 on line[pp: 0] stream grad.pp1.to.pp0 #14
  load.y.mb1.pp1 = load y [mb: 1] on line[pp: 1] stream compute #11
  F.stage1.mb1 = F stage1 [mb: 1] @stage1.F (load.y.mb1.pp1, recv.F.stage0.mb1.pp1, param _:0, param update.stage1.0, param update.stage1.0:1) on line[pp: 1] stream compute after B.stage1.mb0 #25
  B.stage0.mb0 = B stage0 [mb: 0] @stage0.B (load.x.mb0.pp0, F.stage0.mb0, F.stage0.mb0:1, recv.B.stage1.mb0.pp0, param update.stage0.0:1) on line[pp: 0] stream compute after F.stage0.mb1 #26
  R.stage1.mb1 = R stage1 [mb: 1] @stage1.R (load.y.mb1.pp1, recv.F.stage0.mb1.pp1, param _:0, param update.stage1.0, param update.stage1.0:1) on line[pp: 1] stream compute after F.stage1.mb1 #26
  R.stage0.mb1 = R stage0 [mb: 1] @stage0.R (load.x.mb1.pp0, param update.stage0.0) on line[pp: 0] stream compute after B.stage0.mb0 #27
  B.stage1.mb1 = B stage1 [mb: 1] @stage1.B (R.stage1.mb1, R.stage1.mb1:1, R.stage1.mb1:2, R.stage1.mb1:3, param _:0, param update.stage1.0, param update.stage1.0:1) on line[pp: 1] stream compute after R.stage1.mb1 #26
  accumulate.stage1.0 = accumulate bucket stage1.0 (grad B.stage1.mb0:1 + B.stage1.mb1:1, grad B.stage1.mb0:2 + B.stage1.mb1:2) on line[pp: 1] #9
  send.B.stage1.mb1.pp0 = send B stage1 [mb: 1] (B.stage1.mb1) to recv.B.stage1.mb1.pp0 on line[pp: 1] stream grad.pp1.to.pp0 #14
  recv.B.stage1.mb1.pp0 = recv B stage0 [mb: 1] from send.B.stage1.mb1.pp0 on line[pp: 0] stream grad.pp1.to.pp0 #14
  sum_squares.stage1.0 = sum_squares bucket stage1.0 (accumulate.stage1.0, accumulate.stage1.0:1) on line[pp: 1] stream compute #9
  update.stage1.0 = update bucket stage1.0 (accumulate.stage1.0, accumulate.stage1.0:1) on line[pp: 1] stream compute #9
  report.loss.0 = report loss loss.0 (F.stage1.mb0, F.stage1.mb1) on line[pp: 1] stream compute #12
  B.stage0.mb1 = B stage0 [mb: 1] @stage0.B (load.x.mb1.pp0, R.stage0.mb1, R.stage0.mb1:1, recv.B.stage1.mb1.pp0, param update.stage0.0:1) on line[pp: 0] stream compute after R.stage0.mb1 #27
  accumulate.stage0.0 = accumulate bucket stage0.0 (grad B.stage0.mb0 + B.stage0.mb1, grad B.stage0.mb0:1 + B.stage0.mb1:1) on line[pp: 0] #6
  sum_squares.stage0.0 = sum_squares bucket stage0.0 (accumulate.stage0.0, accumulate.stage0.0:1) on line[pp: 0] stream compute #6
  update.stage0.0 = update bucket stage0.0 (accumulate.stage0.0, accumulate.stage0.0:1) on line[pp: 0] stream compute #6
  all_gather_v.norm.pp0 = all_gather_v (sum_squares.stage0.0) over () with (all_gather_v.norm.pp0, all_gather_v.norm.pp1) on line[pp: 0] stream gather.pp0 #3
  all_gather_v.norm.pp1 = all_gather_v (sum_squares.stage1.0) over () with (all_gather_v.norm.pp0, all_gather_v.norm.pp1) on line[pp: 1] stream gather.pp0 #3
  norm.pp0 = norm (all_gather_v.norm.pp0, all_gather_v.norm.pp0:1) on line[pp: 0] stream compute #3
  norm.pp1 = norm (all_gather_v.norm.pp1, all_gather_v.norm.pp1:1) on line[pp: 1] stream compute #3
  report.norm = report norm (norm.pp0) on line[pp: 0] stream compute #3
}
communicator pp0.to.pp1 pair (line[pp: 0], line[pp: 1]) stream act.pp0.to.pp1 window 2 min 1 #13 {
  send.F.stage0.mb0.pp1
  send.F.stage0.mb1.pp1
}
communicator pp1.to.pp0 pair (line[pp: 1], line[pp: 0]) stream grad.pp1.to.pp0 window 2 min 1 #14 {
  send.B.stage1.mb0.pp0
  send.B.stage1.mb1.pp0
}
communicator group.pp0.pp1 group (line[pp: 0], line[pp: 1]) stream gather.pp0 #3 {
  all_gather_v.norm.pp0
}
role pp0 at line[pp: 0] arena 1024 live 1024 {
  buffer %parameters.stage0.0 = parameters bucket stage0.0 at 0 bytes 256
  buffer %gradients.stage0.0 = gradients bucket stage0.0 at 256 bytes 256
  buffer %scalars = scalars at 512 bytes 64
  buffer %load.x.mb0.pp0:0 = activations at 576 bytes 32
  buffer %F.stage0.mb0:0 = activations at 640 bytes 48
  buffer %F.stage0.mb0:1 = activations at 704 bytes 48
  buffer %F.stage0.mb0:2 = activations at 768 bytes 32
  buffer %load.x.mb1.pp0:0 = activations at 768 bytes 32
  buffer %F.stage0.mb1:0 = activations at 832 bytes 32
  buffer %workspace = workspace at 896 bytes 128
  buffer %recv.B.stage1.mb0.pp0:0 = communication at 832 bytes 32
  buffer %R.stage0.mb1:0 = activations at 576 bytes 48
  buffer %R.stage0.mb1:1 = activations at 640 bytes 48
  buffer %recv.B.stage1.mb1.pp0:0 = communication at 704 bytes 32
  buffer %workspace#2 = workspace at 832 bytes 128
  buffer %sum_squares.stage0.0:0 = activations at 576 bytes 16
  buffer %all_gather_v.norm.pp0:0 = communication at 640 bytes 16
  buffer %all_gather_v.norm.pp0:1 = communication at 704 bytes 16
  buffer %norm.pp0:0 = activations at 576 bytes 16
  load.x.mb0.pp0 on compute writes (%load.x.mb0.pp0:0)
  F.stage0.mb0 on compute reads (%load.x.mb0.pp0:0, %parameters.stage0.0, %parameters.stage0.0 + 128) writes (%F.stage0.mb0:0, %F.stage0.mb0:1, %F.stage0.mb0:2)
  send.F.stage0.mb0.pp1 on act.pp0.to.pp1 via pp0.to.pp1 after F.stage0.mb0 reads (%F.stage0.mb0:2)
  load.x.mb1.pp0 on compute after send.F.stage0.mb0.pp1 writes (%load.x.mb1.pp0:0)
  F.stage0.mb1 on compute reads (%load.x.mb1.pp0:0, %parameters.stage0.0, %parameters.stage0.0 + 128) writes (%F.stage0.mb1:0) uses (%workspace)
  send.F.stage0.mb1.pp1 on act.pp0.to.pp1 via pp0.to.pp1 after F.stage0.mb1 reads (%F.stage0.mb1:0)
  recv.B.stage1.mb0.pp0 on grad.pp1.to.pp0 via pp1.to.pp0 after send.F.stage0.mb1.pp1 writes (%recv.B.stage1.mb0.pp0:0)
  B.stage0.mb0 on compute after recv.B.stage1.mb0.pp0 reads (%load.x.mb0.pp0:0, %F.stage0.mb0:0, %F.stage0.mb0:1, %recv.B.stage1.mb0.pp0:0, %parameters.stage0.0 + 128) writes (%gradients.stage0.0, %gradients.stage0.0 + 128) uses (%workspace)
  R.stage0.mb1 on compute reads (%load.x.mb1.pp0:0, %parameters.stage0.0) writes (%R.stage0.mb1:0, %R.stage0.mb1:1)
  recv.B.stage1.mb1.pp0 on grad.pp1.to.pp0 via pp1.to.pp0 after B.stage0.mb0 writes (%recv.B.stage1.mb1.pp0:0)
  B.stage0.mb1 on compute after recv.B.stage1.mb1.pp0 reads (%load.x.mb1.pp0:0, %R.stage0.mb1:0, %R.stage0.mb1:1, %recv.B.stage1.mb1.pp0:0, %parameters.stage0.0 + 128) writes (+%gradients.stage0.0, +%gradients.stage0.0 + 128) uses (%workspace#2)
  sum_squares.stage0.0 on compute reads (%gradients.stage0.0, %gradients.stage0.0 + 128) writes (%sum_squares.stage0.0:0)
  update.stage0.0 on compute reads (%gradients.stage0.0, %gradients.stage0.0 + 128) writes (%parameters.stage0.0, %parameters.stage0.0 + 128)
  all_gather_v.norm.pp0 on gather.pp0 via group.pp0.pp1 after sum_squares.stage0.0 reads (%sum_squares.stage0.0:0) writes (%all_gather_v.norm.pp0:0, %all_gather_v.norm.pp0:1)
  norm.pp0 on compute after all_gather_v.norm.pp0 reads (%all_gather_v.norm.pp0:0, %all_gather_v.norm.pp0:1) writes (%norm.pp0:0)
  report.norm on compute reads (%norm.pp0:0)
}
role pp1 at line[pp: 1] arena 1344 live 1280 {
  buffer %parameters.stage1.0 = parameters bucket stage1.0 at 0 bytes 256
  buffer %gradients.stage1.0 = gradients bucket stage1.0 at 256 bytes 256
  buffer %parameters.stage1.1 = parameters bucket stage1.1 at 512 bytes 64
  buffer %scalars = scalars at 576 bytes 64
  buffer %recv.F.stage0.mb0.pp1:0 = communication at 960 bytes 32
  buffer %load.y.mb0.pp1:0 = activations at 1024 bytes 32
  buffer %F.stage1.mb0:0 = activations at 1280 bytes 4
  buffer %workspace = workspace at 640 bytes 192
  buffer %recv.F.stage0.mb1.pp1:0 = communication at 1088 bytes 32
  buffer %R.stage1.mb0:0 = activations at 1152 bytes 32
  buffer %R.stage1.mb0:1 = activations at 832 bytes 48
  buffer %R.stage1.mb0:2 = activations at 896 bytes 48
  buffer %R.stage1.mb0:3 = activations at 1216 bytes 32
  buffer %workspace#2 = workspace at 640 bytes 64
  buffer %B.stage1.mb0:0 = activations at 960 bytes 32
  buffer %load.y.mb1.pp1:0 = activations at 960 bytes 32
  buffer %F.stage1.mb1:0 = activations at 1216 bytes 4
  buffer %R.stage1.mb1:0 = activations at 1024 bytes 32
  buffer %R.stage1.mb1:1 = activations at 832 bytes 48
  buffer %R.stage1.mb1:2 = activations at 896 bytes 48
  buffer %R.stage1.mb1:3 = activations at 1152 bytes 32
  buffer %B.stage1.mb1:0 = activations at 960 bytes 32
  buffer %sum_squares.stage1.0:0 = activations at 640 bytes 16
  buffer %all_gather_v.norm.pp1:0 = communication at 704 bytes 16
  buffer %all_gather_v.norm.pp1:1 = communication at 768 bytes 16
  buffer %norm.pp1:0 = activations at 640 bytes 16
  recv.F.stage0.mb0.pp1 on act.pp0.to.pp1 via pp0.to.pp1 after previous send.B.stage1.mb1.pp0 writes (%recv.F.stage0.mb0.pp1:0)
  load.y.mb0.pp1 on compute writes (%load.y.mb0.pp1:0)
  F.stage1.mb0 on compute after recv.F.stage0.mb0.pp1 reads (%load.y.mb0.pp1:0, %recv.F.stage0.mb0.pp1:0, %parameters.stage1.1, %parameters.stage1.0, %parameters.stage1.0 + 128) writes (%F.stage1.mb0:0) uses (%workspace)
  recv.F.stage0.mb1.pp1 on act.pp0.to.pp1 via pp0.to.pp1 writes (%recv.F.stage0.mb1.pp1:0)
  R.stage1.mb0 on compute reads (%load.y.mb0.pp1:0, %recv.F.stage0.mb0.pp1:0, %parameters.stage1.1, %parameters.stage1.0, %parameters.stage1.0 + 128) writes (%R.stage1.mb0:0, %R.stage1.mb0:1, %R.stage1.mb0:2, %R.stage1.mb0:3) uses (%workspace#2)
  B.stage1.mb0 on compute reads (%R.stage1.mb0:0, %R.stage1.mb0:1, %R.stage1.mb0:2, %R.stage1.mb0:3, %parameters.stage1.1, %parameters.stage1.0, %parameters.stage1.0 + 128) writes (%B.stage1.mb0:0, %gradients.stage1.0, %gradients.stage1.0 + 128) uses (%workspace)
  send.B.stage1.mb0.pp0 on grad.pp1.to.pp0 via pp1.to.pp0 after B.stage1.mb0 reads (%B.stage1.mb0:0)
  load.y.mb1.pp1 on compute after send.B.stage1.mb0.pp0 writes (%load.y.mb1.pp1:0)
  F.stage1.mb1 on compute after recv.F.stage0.mb1.pp1 reads (%load.y.mb1.pp1:0, %recv.F.stage0.mb1.pp1:0, %parameters.stage1.1, %parameters.stage1.0, %parameters.stage1.0 + 128) writes (%F.stage1.mb1:0) uses (%workspace)
  R.stage1.mb1 on compute reads (%load.y.mb1.pp1:0, %recv.F.stage0.mb1.pp1:0, %parameters.stage1.1, %parameters.stage1.0, %parameters.stage1.0 + 128) writes (%R.stage1.mb1:0, %R.stage1.mb1:1, %R.stage1.mb1:2, %R.stage1.mb1:3) uses (%workspace#2)
  B.stage1.mb1 on compute reads (%R.stage1.mb1:0, %R.stage1.mb1:1, %R.stage1.mb1:2, %R.stage1.mb1:3, %parameters.stage1.1, %parameters.stage1.0, %parameters.stage1.0 + 128) writes (%B.stage1.mb1:0, +%gradients.stage1.0, +%gradients.stage1.0 + 128) uses (%workspace)
  send.B.stage1.mb1.pp0 on grad.pp1.to.pp0 via pp1.to.pp0 after B.stage1.mb1 reads (%B.stage1.mb1:0)
  sum_squares.stage1.0 on compute reads (%gradients.stage1.0, %gradients.stage1.0 + 128) writes (%sum_squares.stage1.0:0)
  update.stage1.0 on compute reads (%gradients.stage1.0, %gradients.stage1.0 + 128) writes (%parameters.stage1.0, %parameters.stage1.0 + 128)
  report.loss.0 on compute reads (%F.stage1.mb0:0, %F.stage1.mb1:0)
  all_gather_v.norm.pp1 on gather.pp0 via group.pp0.pp1 after sum_squares.stage1.0 reads (%sum_squares.stage1.0:0) writes (%all_gather_v.norm.pp1:0, %all_gather_v.norm.pp1:1)
  norm.pp1 on compute after all_gather_v.norm.pp1 reads (%all_gather_v.norm.pp1:0, %all_gather_v.norm.pp1:1) writes (%norm.pp1:0)
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
  15 "again.pipe":29:9-29:21
  16 "again.pipe":7:12-7:24 from "again.pipe":3:26-3:32 from "again.pipe":18:15-18:20
  17 "again.pipe":7:12-7:31 from "again.pipe":3:26-3:32 from "again.pipe":18:15-18:20
  18 "again.pipe":3:10-3:39 from "again.pipe":18:15-18:20
  19 "again.pipe":11:16-11:35 from "again.pipe":3:17-3:34 from "again.pipe":18:15-18:20
  20 "again.pipe":11:16-11:28 from "again.pipe":3:17-3:34 from "again.pipe":18:15-18:20
  21 "again.pipe":11:21-11:27 from "again.pipe":3:17-3:34 from "again.pipe":18:15-18:20
  22 "again.pipe":11:12-11:35 from "again.pipe":3:17-3:34 from "again.pipe":18:15-18:20
  23 "again.pipe":3:17-3:38 from "again.pipe":18:15-18:20
  24 "again.pipe":31:28-31:31
  25 "again.pipe":32:32-32:35
  26 "again.pipe":32:37-32:40
  27 "again.pipe":33:32-33:35
}
