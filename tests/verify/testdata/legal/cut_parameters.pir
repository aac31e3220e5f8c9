pir 2 planned
train small #1 {
  steps 3
  dtype f64
  seed 0
  data synthetic(classes: 0, batch: 8) #2
  optim adamw(lr: constant(0.01, warmup: 0, floor: 0), beta1: 0.9, beta2: 0.999, eps: 1e-08, weight_decay: 0, clip: 0.1) #3
}
mesh grid(pp: 2, dp: 2, pod: 2) #4
split batch into mb: 2 #5
param w: f64[dim: 3, out: 5] = normal(0.02) #6
param w2: f64[out: 5, dim: 3] = normal(0.02) #7
input x: f64[batch: 8*, dim: 3] #8
loss loss.0: 40 #9
chunk first0 of first[0] F @first0.F B @first0.B #10
chunk second0 of second[0] F @second0.F B @second0.B #11
bucket first0.0 (w) on grid[pp: 0], grid[pp: 1] unreduced <dp: +, pod: +> state <dp: flat> gradients <dp: flat> parameters <dp: flat> by unit prefetch 1 #6
bucket first0.1 (w2) on grid[pp: 0] unreduced <dp: +, pod: +> state <dp: flat> gradients <dp: flat> parameters <dp: flat> by unit prefetch 1 #7
stream compute
stream params high_priority #12
stream grads #13
stream act.pp0.to.pp1
stream grad.pp1.to.pp0
stream sum.pp0
stream gather.pp0
stream sum.pp1
body @first0.F(%x: data f64[batch: 4*, dim: 3]<dp: batch, pod: batch> input x,
    %w: param f64[dim: 3, out: 5] param w,
    %w2: param f64[out: 5, dim: 3] param w2)
    -> (%contract: saved f64[batch: 4*, out: 5]<dp: batch, pod: batch>,
    %contract.1: data f64[batch: 4*, dim: 3]<dp: batch, pod: batch>) {
  %x = port f64[batch: 4*, dim: 3]<dp: batch, pod: batch>
  %w = port f64[dim: 3, out: 5]
  %w2 = port f64[out: 5, dim: 3]
  %contract = contract(%x, %w) {dims: [dim]} : f64[batch: 4*, out: 5]<dp: batch, pod: batch> @F #10
  %contract.1 = contract(%contract, %w2) {dims: [out]} : f64[batch: 4*, dim: 3]<dp: batch, pod: batch> @F #14
}
body @first0.B(%x: data f64[batch: 4*, dim: 3]<dp: batch, pod: batch> input x,
    %contract: saved f64[batch: 4*, out: 5]<dp: batch, pod: batch>,
    %d.contract.1.contract: data f64[batch: 4*, dim: 3]<dp: batch, pod: batch>,
    %w2: param f64[out: 5, dim: 3] param w2)
    -> (%d.w.contract.1: grad f64[dim: 3, out: 5]<dp: +, pod: +> param w as w,
    %d.w2.contract: grad f64[out: 5, dim: 3]<dp: +, pod: +> param w2 as w2) {
  %x = port f64[batch: 4*, dim: 3]<dp: batch, pod: batch>
  %contract = port f64[batch: 4*, out: 5]<dp: batch, pod: batch>
  %d.contract.1.contract = port f64[batch: 4*, dim: 3]<dp: batch, pod: batch>
  %w2 = port f64[out: 5, dim: 3]
  %d.contract.contract = contract(%d.contract.1.contract, %w2) {dims: [dim]} : f64[batch: 4*, out: 5]<dp: batch, pod: batch> @BI #14
  %d.w2.contract = contract(%contract, %d.contract.1.contract) {dims: [batch]} : f64[out: 5, dim: 3]<dp: +, pod: +> @BW #14
  %d.w.contract.1 = contract(%x, %d.contract.contract) {dims: [batch]} : f64[dim: 3, out: 5]<dp: +, pod: +> @BW #10
}
body @second0.F(%contract.1: data f64[batch: 4*, dim: 3]<dp: batch, pod: batch>,
    %w: param f64[dim: 3, out: 5] param w)
    -> (%contract.2: saved f64[batch: 4*, out: 5]<dp: batch, pod: batch>,
    %sum: loss_sum f64[]<dp: +, pod: +> loss loss.0) {
  %contract.1 = port f64[batch: 4*, dim: 3]<dp: batch, pod: batch>
  %w = port f64[dim: 3, out: 5]
  %contract.2 = contract(%contract.1, %w) {dims: [dim]} : f64[batch: 4*, out: 5]<dp: batch, pod: batch> @F #11
  %square = square(%contract.2) : f64[batch: 4*, out: 5]<dp: batch, pod: batch> @F #15
  %sum = sum(%square) {dims: [batch, out]} : f64[]<dp: +, pod: +> @F #9
}
body @second0.B(%contract.1: saved f64[batch: 4*, dim: 3]<dp: batch, pod: batch>,
    %contract.2: saved f64[batch: 4*, out: 5]<dp: batch, pod: batch>,
    %w: param f64[dim: 3, out: 5] param w)
    -> (%d.contract.1.contract: data f64[batch: 4*, dim: 3]<dp: batch, pod: batch>,
    %d.w.contract: grad f64[dim: 3, out: 5]<dp: +, pod: +> param w as w) {
  %contract.1 = port f64[batch: 4*, dim: 3]<dp: batch, pod: batch>
  %contract.2 = port f64[batch: 4*, out: 5]<dp: batch, pod: batch>
  %w = port f64[dim: 3, out: 5]
  %d.square.fill = fill() {scalar: 0.025, shape: f64[batch: 4*, out: 5]} : f64[batch: 4*, out: 5]<dp: batch, pod: batch> @BI #9
  %d.contract.2.scale = scale(%d.square.fill) {scalar: 2} : f64[batch: 4*, out: 5]<dp: batch, pod: batch> @BI #15
  %d.contract.2.mul = mul(%d.contract.2.scale, %contract.2) : f64[batch: 4*, out: 5]<dp: batch, pod: batch> @BI #15
  %d.contract.1.contract = contract(%d.contract.2.mul, %w) {dims: [out]} : f64[batch: 4*, dim: 3]<dp: batch, pod: batch> @BI #11
  %d.w.contract = contract(%contract.1, %d.contract.2.mul) {dims: [batch]} : f64[dim: 3, out: 5]<dp: +, pod: +> @BW #11
}
graph {
  all_gather.first0.0.F.first0.mb0.pp0 = all_gather bucket first0.0 F first0 [mb: 0] (param update.first0.0.pp0) over dp on grid[pp: 0] stream params #6
  all_gather.first0.1.F.first0.mb0 = all_gather bucket first0.1 F first0 [mb: 0] (param update.first0.1) over dp on grid[pp: 0] stream params #7
  all_gather.first0.0.F.second0.mb0.pp1 = all_gather bucket first0.0 F second0 [mb: 0] (param update.first0.0.pp1) over dp on grid[pp: 1] stream params #6
  load.x.mb0.pp0 = load x [mb: 0] on grid[pp: 0] <dp: batch, pod: batch> stream compute #8
  F.first0.mb0 = F first0 [mb: 0] @first0.F (load.x.mb0.pp0, all_gather.first0.0.F.first0.mb0.pp0, all_gather.first0.1.F.first0.mb0) on grid[pp: 0] stream compute #10
  send.F.first0.mb0.pp1 = send F first0 [mb: 0] (F.first0.mb0:1) to recv.F.first0.mb0.pp1 on grid[pp: 0] stream act.pp0.to.pp1 #10
  recv.F.first0.mb0.pp1 = recv F second0 [mb: 0] from send.F.first0.mb0.pp1 on grid[pp: 1] stream act.pp0.to.pp1 #10
  load.x.mb1.pp0 = load x [mb: 1] on grid[pp: 0] <dp: batch, pod: batch> stream compute #8
  F.first0.mb1 = F first0 [mb: 1] @first0.F (load.x.mb1.pp0, all_gather.first0.0.F.first0.mb0.pp0, all_gather.first0.1.F.first0.mb0) on grid[pp: 0] stream compute after F.first0.mb0 #10
  F.second0.mb0 = F second0 [mb: 0] @second0.F (recv.F.first0.mb0.pp1, all_gather.first0.0.F.second0.mb0.pp1) on grid[pp: 1] stream compute #11
  send.F.first0.mb1.pp1 = send F first0 [mb: 1] (F.first0.mb1:1) to recv.F.first0.mb1.pp1 on grid[pp: 0] stream act.pp0.to.pp1 #10
  recv.F.first0.mb1.pp1 = recv F second0 [mb: 1] from send.F.first0.mb1.pp1 on grid[pp: 1] stream act.pp0.to.pp1 #10
  B.second0.mb0 = B second0 [mb: 0] @second0.B (recv.F.first0.mb0.pp1, F.second0.mb0, all_gather.first0.0.F.second0.mb0.pp1) on grid[pp: 1] stream compute after F.second0.mb0 #11
  send.B.second0.mb0.pp0 = send B second0 [mb: 0] (B.second0.mb0) to recv.B.second0.mb0.pp0 on grid[pp: 1] stream grad.pp1.to.pp0 #11
  recv.B.second0.mb0.pp0 = recv B first0 [mb: 0] from send.B.second0.mb0.pp0 on grid[pp: 0] stream grad.pp1.to.pp0 #11
  F.second0.mb1 = F second0 [mb: 1] @second0.F (recv.F.first0.mb1.pp1, all_gather.first0.0.F.second0.mb0.pp1) on grid[pp: 1] stream compute after B.second0.mb0 #11
  B.first0.mb0 = B first0 [mb: 0] @first0.B (load.x.mb0.pp0, F.first0.mb0, recv.B.second0.mb0.pp0, all_gather.first0.1.F.first0.mb0) on grid[pp: 0] stream compute after F.first0.mb1 #10
  all_reduce.loss.0.pp1 = all_reduce loss loss.0 (F.second0.mb0:1, F.second0.mb1:1) over dp, pod on grid[pp: 1] stream sum.pp1 #9
  B.second0.mb1 = B second0 [mb: 1] @second0.B (recv.F.first0.mb1.pp1, F.second0.mb1, all_gather.first0.0.F.second0.mb0.pp1) on grid[pp: 1] stream compute after F.second0.mb1 #11
  accumulate.first0.0.B.second0.mb1.pp1 = accumulate bucket first0.0 B second0 [mb: 1] (grad B.second0.mb0:1 + B.second0.mb1:1) on grid[pp: 1] #6
  reduce_scatter.first0.0.B.second0.mb1.pp1 = reduce_scatter bucket first0.0 B second0 [mb: 1] (accumulate.first0.0.B.second0.mb1.pp1) over dp on grid[pp: 1] stream grads #6
  accumulate.first0.0.pp1 = accumulate bucket first0.0 (grad reduce_scatter.first0.0.B.second0.mb1.pp1) on grid[pp: 1] #6
  send.B.second0.mb1.pp0 = send B second0 [mb: 1] (B.second0.mb1) to recv.B.second0.mb1.pp0 on grid[pp: 1] stream grad.pp1.to.pp0 #11
  recv.B.second0.mb1.pp0 = recv B first0 [mb: 1] from send.B.second0.mb1.pp0 on grid[pp: 0] stream grad.pp1.to.pp0 #11
  report.loss.0 = report loss loss.0 (all_reduce.loss.0.pp1, all_reduce.loss.0.pp1:1) on grid[pp: 1] stream compute #9
  B.first0.mb1 = B first0 [mb: 1] @first0.B (load.x.mb1.pp0, F.first0.mb1, recv.B.second0.mb1.pp0, all_gather.first0.1.F.first0.mb0) on grid[pp: 0] stream compute after B.first0.mb0 #10
  accumulate.first0.0.B.first0.mb1.pp0 = accumulate bucket first0.0 B first0 [mb: 1] (grad B.first0.mb0 + B.first0.mb1) on grid[pp: 0] #6
  accumulate.first0.1.B.first0.mb1 = accumulate bucket first0.1 B first0 [mb: 1] (grad B.first0.mb0:1 + B.first0.mb1:1) on grid[pp: 0] #7
  reduce_scatter.first0.0.B.first0.mb1.pp0 = reduce_scatter bucket first0.0 B first0 [mb: 1] (accumulate.first0.0.B.first0.mb1.pp0) over dp on grid[pp: 0] stream grads #6
  accumulate.first0.0.pp0 = accumulate bucket first0.0 (grad reduce_scatter.first0.0.B.first0.mb1.pp0) on grid[pp: 0] #6
  reduce_scatter.first0.1.B.first0.mb1 = reduce_scatter bucket first0.1 B first0 [mb: 1] (accumulate.first0.1.B.first0.mb1) over dp on grid[pp: 0] stream grads #7
  accumulate.first0.1 = accumulate bucket first0.1 (grad reduce_scatter.first0.1.B.first0.mb1) on grid[pp: 0] #7
  all_reduce.first0.0.pp0 = all_reduce bucket first0.0 (accumulate.first0.0.pp0) over pod with (all_reduce.first0.0.pp0, all_reduce.first0.0.pp1) on grid[pp: 0] stream grads #6
  all_reduce.first0.0.pp1 = all_reduce bucket first0.0 (accumulate.first0.0.pp1) over pod with (all_reduce.first0.0.pp0, all_reduce.first0.0.pp1) on grid[pp: 1] stream grads #6
  all_reduce.first0.1 = all_reduce bucket first0.1 (accumulate.first0.1) over pod on grid[pp: 0] stream grads #7
  sum_squares.first0.0.pp0 = sum_squares bucket first0.0 (all_reduce.first0.0.pp0) on grid[pp: 0] stream compute #6
  sum_squares.first0.1 = sum_squares bucket first0.1 (all_reduce.first0.1) on grid[pp: 0] stream compute #7
  all_reduce.norm.dp.pp0 = all_reduce (sum_squares.first0.0.pp0, sum_squares.first0.1) over dp on grid[pp: 0] stream sum.pp0 #3
  all_gather_v.norm.pp0 = all_gather_v (all_reduce.norm.dp.pp0, all_reduce.norm.dp.pp0:1) over () with (all_gather_v.norm.pp0, all_gather_v.norm.pp1) on grid[pp: 0] stream gather.pp0 #3
  all_gather_v.norm.pp1 = all_gather_v over () with (all_gather_v.norm.pp0, all_gather_v.norm.pp1) on grid[pp: 1] stream gather.pp0 #3
  norm.pp0 = norm (all_gather_v.norm.pp0, all_gather_v.norm.pp0:1) on grid[pp: 0] stream compute #3
  norm.pp1 = norm (all_gather_v.norm.pp1, all_gather_v.norm.pp1:1) on grid[pp: 1] stream compute #3
  report.norm = report norm (norm.pp0) on grid[pp: 0] stream compute #3
  update.first0.0.pp0 = update bucket first0.0 (all_reduce.first0.0.pp0, norm.pp0) on grid[pp: 0] stream compute #6
  update.first0.1 = update bucket first0.1 (all_reduce.first0.1, norm.pp0) on grid[pp: 0] stream compute #7
  update.first0.0.pp1 = update bucket first0.0 (all_reduce.first0.0.pp1, norm.pp1) on grid[pp: 1] stream compute #6
}
communicator pp0.to.pp1 pair (grid[pp: 0], grid[pp: 1]) stream act.pp0.to.pp1 window 2 min 1 #10 {
  send.F.first0.mb0.pp1
  send.F.first0.mb1.pp1
}
communicator pp1.to.pp0 pair (grid[pp: 1], grid[pp: 0]) stream grad.pp1.to.pp0 window 2 min 1 #11 {
  send.B.second0.mb0.pp0
  send.B.second0.mb1.pp0
}
communicator group.pp0 group (grid[pp: 0]) over dp stream grads #6 {
  reduce_scatter.first0.0.B.first0.mb1.pp0
  reduce_scatter.first0.1.B.first0.mb1
}
communicator group.pp0.no2 group (grid[pp: 0]) over dp stream sum.pp0 #3 {
  all_reduce.norm.dp.pp0
}
communicator group.pp0.no3 group (grid[pp: 0]) over dp stream params #6 {
  all_gather.first0.0.F.first0.mb0.pp0
  all_gather.first0.1.F.first0.mb0
}
communicator group.pp0.no4 group (grid[pp: 0]) over pod stream grads #7 {
  all_reduce.first0.1
}
communicator group.pp0.pp1 group (grid[pp: 0], grid[pp: 1]) stream gather.pp0 #3 {
  all_gather_v.norm.pp0
}
communicator group.pp0.pp1.no2 group (grid[pp: 0], grid[pp: 1]) over pod stream grads #6 {
  all_reduce.first0.0.pp0
}
communicator group.pp1 group (grid[pp: 1]) over dp stream grads #6 {
  reduce_scatter.first0.0.B.second0.mb1.pp1
}
communicator group.pp1.no2 group (grid[pp: 1]) over dp stream params #6 {
  all_gather.first0.0.F.second0.mb0.pp1
}
communicator group.pp1.no3 group (grid[pp: 1]) over dp, pod stream sum.pp1 #9 {
  all_reduce.loss.0.pp1
}
role pp0 at grid[pp: 0] arena 1344 live 1344 {
  buffer %parameters.first0.0 = parameters bucket first0.0 at 0 bytes 64
  buffer %gradients.first0.0 = gradients bucket first0.0 at 64 bytes 64
  buffer %optimizer.first0.0 = optimizer bucket first0.0 at 128 bytes 128
  buffer %parameters.first0.1 = parameters bucket first0.1 at 256 bytes 64
  buffer %gradients.first0.1 = gradients bucket first0.1 at 320 bytes 64
  buffer %optimizer.first0.1 = optimizer bucket first0.1 at 384 bytes 128
  buffer %scalars = scalars at 512 bytes 64
  buffer %all_gather.first0.0.F.first0.mb0.pp0:0 = gathered at 576 bytes 128
  buffer %all_gather.first0.1.F.first0.mb0:0 = gathered at 704 bytes 128
  buffer %load.x.mb0.pp0:0 = activations at 832 bytes 24
  buffer %F.first0.mb0:0 = activations at 896 bytes 40
  buffer %F.first0.mb0:1 = activations at 960 bytes 24
  buffer %load.x.mb1.pp0:0 = activations at 960 bytes 24
  buffer %F.first0.mb1:0 = activations at 1024 bytes 40
  buffer %F.first0.mb1:1 = activations at 1088 bytes 24
  buffer %recv.B.second0.mb0.pp0:0 = communication at 1088 bytes 24
  buffer %accumulate.first0.0.B.first0.mb1.pp0:0 = unreduced at 576 bytes 128
  buffer %accumulate.first0.1.B.first0.mb1:0 = unreduced at 1152 bytes 128
  buffer %workspace = workspace at 1280 bytes 64
  buffer %recv.B.second0.mb1.pp0:0 = communication at 1088 bytes 24
  buffer %sum_squares.first0.0.pp0:0 = activations at 576 bytes 8
  buffer %sum_squares.first0.1:0 = activations at 640 bytes 8
  buffer %all_gather_v.norm.pp0:0 = communication at 704 bytes 8
  buffer %all_gather_v.norm.pp0:1 = communication at 768 bytes 8
  buffer %norm.pp0:0 = activations at 576 bytes 16
  all_gather.first0.0.F.first0.mb0.pp0 on params via group.pp0.no3 after previous update.first0.1 reads (%parameters.first0.0) writes (%all_gather.first0.0.F.first0.mb0.pp0:0)
  all_gather.first0.1.F.first0.mb0 on params via group.pp0.no3 reads (%parameters.first0.1) writes (%all_gather.first0.1.F.first0.mb0:0)
  load.x.mb0.pp0 on compute writes (%load.x.mb0.pp0:0)
  F.first0.mb0 on compute after all_gather.first0.1.F.first0.mb0 reads (%load.x.mb0.pp0:0, %all_gather.first0.0.F.first0.mb0.pp0:0, %all_gather.first0.1.F.first0.mb0:0) writes (%F.first0.mb0:0, %F.first0.mb0:1)
  send.F.first0.mb0.pp1 on act.pp0.to.pp1 via pp0.to.pp1 after F.first0.mb0 reads (%F.first0.mb0:1)
  load.x.mb1.pp0 on compute after send.F.first0.mb0.pp1 writes (%load.x.mb1.pp0:0)
  F.first0.mb1 on compute reads (%load.x.mb1.pp0:0, %all_gather.first0.0.F.first0.mb0.pp0:0, %all_gather.first0.1.F.first0.mb0:0) writes (%F.first0.mb1:0, %F.first0.mb1:1)
  send.F.first0.mb1.pp1 on act.pp0.to.pp1 via pp0.to.pp1 after F.first0.mb1 reads (%F.first0.mb1:1)
  recv.B.second0.mb0.pp0 on grad.pp1.to.pp0 via pp1.to.pp0 after send.F.first0.mb1.pp1 writes (%recv.B.second0.mb0.pp0:0)
  B.first0.mb0 on compute after recv.B.second0.mb0.pp0 reads (%load.x.mb0.pp0:0, %F.first0.mb0:0, %recv.B.second0.mb0.pp0:0, %all_gather.first0.1.F.first0.mb0:0) writes (%accumulate.first0.0.B.first0.mb1.pp0:0, %accumulate.first0.1.B.first0.mb1:0) uses (%workspace)
  recv.B.second0.mb1.pp0 on grad.pp1.to.pp0 via pp1.to.pp0 after B.first0.mb0 writes (%recv.B.second0.mb1.pp0:0)
  B.first0.mb1 on compute after recv.B.second0.mb1.pp0 reads (%load.x.mb1.pp0:0, %F.first0.mb1:0, %recv.B.second0.mb1.pp0:0, %all_gather.first0.1.F.first0.mb0:0) writes (+%accumulate.first0.0.B.first0.mb1.pp0:0, +%accumulate.first0.1.B.first0.mb1:0) uses (%workspace)
  reduce_scatter.first0.0.B.first0.mb1.pp0 on grads via group.pp0 after B.first0.mb1 reads (%accumulate.first0.0.B.first0.mb1.pp0:0) writes (%gradients.first0.0)
  reduce_scatter.first0.1.B.first0.mb1 on grads via group.pp0 reads (%accumulate.first0.1.B.first0.mb1:0) writes (%gradients.first0.1)
  all_reduce.first0.0.pp0 on grads via group.pp0.pp1.no2 reads (%gradients.first0.0) writes (%gradients.first0.0)
  all_reduce.first0.1 on grads via group.pp0.no4 reads (%gradients.first0.1) writes (%gradients.first0.1)
  sum_squares.first0.0.pp0 on compute after all_reduce.first0.0.pp0 reads (%gradients.first0.0) writes (%sum_squares.first0.0.pp0:0)
  sum_squares.first0.1 on compute after all_reduce.first0.1 reads (%gradients.first0.1) writes (%sum_squares.first0.1:0)
  all_reduce.norm.dp.pp0 on sum.pp0 via group.pp0.no2 after sum_squares.first0.1 reads (%sum_squares.first0.0.pp0:0, %sum_squares.first0.1:0) writes (%sum_squares.first0.0.pp0:0, %sum_squares.first0.1:0)
  all_gather_v.norm.pp0 on gather.pp0 via group.pp0.pp1 after all_reduce.norm.dp.pp0 reads (%sum_squares.first0.0.pp0:0, %sum_squares.first0.1:0) writes (%all_gather_v.norm.pp0:0, %all_gather_v.norm.pp0:1)
  norm.pp0 on compute after all_gather_v.norm.pp0 reads (%all_gather_v.norm.pp0:0, %all_gather_v.norm.pp0:1) writes (%norm.pp0:0)
  report.norm on compute reads (%norm.pp0:0)
  update.first0.0.pp0 on compute reads (%gradients.first0.0, %norm.pp0:0) writes (%parameters.first0.0)
  update.first0.1 on compute reads (%gradients.first0.1, %norm.pp0:0) writes (%parameters.first0.1)
}
role pp1 at grid[pp: 1] arena 960 live 960 {
  buffer %parameters.first0.0 = parameters bucket first0.0 at 0 bytes 64
  buffer %gradients.first0.0 = gradients bucket first0.0 at 64 bytes 64
  buffer %optimizer.first0.0 = optimizer bucket first0.0 at 128 bytes 128
  buffer %scalars = scalars at 256 bytes 64
  buffer %all_gather.first0.0.F.second0.mb0.pp1:0 = gathered at 320 bytes 128
  buffer %recv.F.first0.mb0.pp1:0 = communication at 448 bytes 24
  buffer %F.second0.mb0:0 = activations at 512 bytes 40
  buffer %F.second0.mb0:1 = activations at 576 bytes 8
  buffer %recv.F.first0.mb1.pp1:0 = communication at 640 bytes 24
  buffer %B.second0.mb0:0 = activations at 704 bytes 24
  buffer %accumulate.first0.0.B.second0.mb1.pp1:0 = unreduced at 768 bytes 128
  buffer %workspace = workspace at 896 bytes 64
  buffer %F.second0.mb1:0 = activations at 704 bytes 40
  buffer %F.second0.mb1:1 = activations at 896 bytes 8
  buffer %B.second0.mb1:0 = activations at 448 bytes 24
  buffer %workspace#2 = workspace at 512 bytes 64
  buffer %all_gather_v.norm.pp1:0 = communication at 320 bytes 8
  buffer %all_gather_v.norm.pp1:1 = communication at 384 bytes 8
  buffer %norm.pp1:0 = activations at 448 bytes 16
  all_gather.first0.0.F.second0.mb0.pp1 on params via group.pp1.no2 after previous update.first0.0.pp1 reads (%parameters.first0.0) writes (%all_gather.first0.0.F.second0.mb0.pp1:0)
  recv.F.first0.mb0.pp1 on act.pp0.to.pp1 via pp0.to.pp1 after previous update.first0.0.pp1 writes (%recv.F.first0.mb0.pp1:0)
  F.second0.mb0 on compute after recv.F.first0.mb0.pp1, all_gather.first0.0.F.second0.mb0.pp1 reads (%recv.F.first0.mb0.pp1:0, %all_gather.first0.0.F.second0.mb0.pp1:0) writes (%F.second0.mb0:0, %F.second0.mb0:1)
  recv.F.first0.mb1.pp1 on act.pp0.to.pp1 via pp0.to.pp1 writes (%recv.F.first0.mb1.pp1:0)
  B.second0.mb0 on compute reads (%recv.F.first0.mb0.pp1:0, %F.second0.mb0:0, %all_gather.first0.0.F.second0.mb0.pp1:0) writes (%B.second0.mb0:0, %accumulate.first0.0.B.second0.mb1.pp1:0) uses (%workspace)
  send.B.second0.mb0.pp0 on grad.pp1.to.pp0 via pp1.to.pp0 after B.second0.mb0 reads (%B.second0.mb0:0)
  F.second0.mb1 on compute after send.B.second0.mb0.pp0, recv.F.first0.mb1.pp1 reads (%recv.F.first0.mb1.pp1:0, %all_gather.first0.0.F.second0.mb0.pp1:0) writes (%F.second0.mb1:0, %F.second0.mb1:1)
  all_reduce.loss.0.pp1 on sum.pp1 via group.pp1.no3 after F.second0.mb1 reads (%F.second0.mb0:1, %F.second0.mb1:1) writes (%F.second0.mb0:1, %F.second0.mb1:1)
  B.second0.mb1 on compute reads (%recv.F.first0.mb1.pp1:0, %F.second0.mb1:0, %all_gather.first0.0.F.second0.mb0.pp1:0) writes (%B.second0.mb1:0, +%accumulate.first0.0.B.second0.mb1.pp1:0) uses (%workspace#2)
  reduce_scatter.first0.0.B.second0.mb1.pp1 on grads via group.pp1 after B.second0.mb1 reads (%accumulate.first0.0.B.second0.mb1.pp1:0) writes (%gradients.first0.0)
  send.B.second0.mb1.pp0 on grad.pp1.to.pp0 via pp1.to.pp0 after B.second0.mb1 reads (%B.second0.mb1:0)
  report.loss.0 on compute after all_reduce.loss.0.pp1 reads (%F.second0.mb0:1, %F.second0.mb1:1)
  all_reduce.first0.0.pp1 on grads via group.pp0.pp1.no2 reads (%gradients.first0.0) writes (%gradients.first0.0)
  all_gather_v.norm.pp1 on gather.pp0 via group.pp0.pp1 after B.second0.mb1 writes (%all_gather_v.norm.pp1:0, %all_gather_v.norm.pp1:1)
  norm.pp1 on compute after all_gather_v.norm.pp1, send.B.second0.mb1.pp0 reads (%all_gather_v.norm.pp1:0, %all_gather_v.norm.pp1:1) writes (%norm.pp1:0)
  update.first0.0.pp1 on compute after all_reduce.first0.0.pp1 reads (%gradients.first0.0, %norm.pp1:0) writes (%parameters.first0.0)
}
locations {
  1 "small.pipe":9:7-9:12
  2 "small.pipe":10:12-10:31
  3 "small.pipe":11:12-11:38
  4 "small.pipe":8:1-8:32
  5 "small.pipe":14:5-14:27
  6 "small.pipe":3:12-3:26 from "small.pipe":9:15-9:26
  7 "small.pipe":3:28-3:40 from "small.pipe":9:15-9:26
  8 "small.pipe":2:5-2:32 from "small.pipe":9:15-9:26
  9 "small.pipe":6:21-6:39 from "small.pipe":9:15-9:26
  10 "small.pipe":5:24-5:31 from "small.pipe":9:15-9:26
  11 "small.pipe":6:33-6:38 from "small.pipe":9:15-9:26
  12 "small.pipe":19:5-19:52
  13 "small.pipe":20:5-20:31
  14 "small.pipe":5:24-5:36 from "small.pipe":9:15-9:26
  15 "small.pipe":6:26-6:39 from "small.pipe":9:15-9:26
}
