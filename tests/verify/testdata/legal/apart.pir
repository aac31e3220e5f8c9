// Forward and backward on devices of their own: the forward takes sums of gradients that others make, the backward a count that others make.
pir 2 planned
train t {
  steps 3
  dtype f64
  seed 0
  data synthetic(classes: 3, batch: 8)
  optim adamw(lr: constant(0.01, warmup: 0, floor: 0), beta1: 0.9, beta2: 0.999, eps: 1e-08, weight_decay: 0)
  skip_step norm > 3
}
mesh m(p: 3, d: 2)
split batch into mb: 2
param layer.0.up: f64[dim: 4, hidden: 8] = normal(0.1)
param layer.0.down: f64[hidden: 8, dim: 4] = normal(0.1)
param score.0.v: f64[dim: 4, c: 3] = normal(0.2)
input x: f64[batch: 8*, f: 4]
input y: i64[batch: 8*]
loss loss.0: 8 ignore 1 of y
chunk layer0 of layer[0] F @layer0.F B @layer0.B
chunk score0 of score[0] F @score0.F B @score0.B
bucket layer0.0 (layer.0.up, layer.0.down) on m[p: 0], m[p: 1] unreduced <d: +>
bucket score0.0 (score.0.v) on m[p: 1], m[p: 2] unreduced <d: +>
stream compute
stream act.p1.to.p0
stream act.p1.to.p2
stream grad.p2.to.p0
stream sum.p1
stream reduce.p1
stream sum.p1.2
stream reduce.p0
stream gather.p0
body @layer0.F(%x: data f64[batch: 4*, f: 4]<d: batch> input x,
    %layer.0.up: param f64[dim: 4, hidden: 8] param layer.0.up,
    %layer.0.down: param f64[hidden: 8, dim: 4] param layer.0.down)
    -> (%layer.0.layer_norm: saved f64[batch: 4*, dim: 4]<d: batch>,
    %layer.0.tanh: saved f64[batch: 4*, hidden: 8]<d: batch>,
    %layer.0.rename.1.1: data f64[batch: 4*, f: 4]<d: batch>) {
  %x = port f64[batch: 4*, f: 4]<d: batch>
  %layer.0.up = port f64[dim: 4, hidden: 8]
  %layer.0.down = port f64[hidden: 8, dim: 4]
  %layer.0.rename = rename(%x) {dims: [f], dims2: [dim]} : f64[batch: 4*, dim: 4]<d: batch> @F
  %layer.0.layer_norm = layer_norm(%layer.0.rename) {dims: [dim], scalar: 1e-05} : f64[batch: 4*, dim: 4]<d: batch> @F
  %layer.0.contract = contract(%layer.0.layer_norm, %layer.0.up) {dims: [dim]} : f64[batch: 4*, hidden: 8]<d: batch> @F
  %layer.0.tanh = tanh(%layer.0.contract) : f64[batch: 4*, hidden: 8]<d: batch> @F
  %layer.0.contract.1 = contract(%layer.0.tanh, %layer.0.down) {dims: [hidden]} : f64[batch: 4*, dim: 4]<d: batch> @F
  %layer.0.add = add(%layer.0.rename, %layer.0.contract.1) : f64[batch: 4*, dim: 4]<d: batch> @F
  %layer.0.rename.1 = rename(%layer.0.add) {dims: [dim], dims2: [f]} : f64[batch: 4*, f: 4]<d: batch> @F
  %layer.0.rename.1.1 = broadcast(%layer.0.rename.1) {shape: f64[batch: 4*, f: 4]} : f64[batch: 4*, f: 4]<d: batch> @F
}
body @layer0.B(%layer.0.layer_norm: saved f64[batch: 4*, dim: 4]<d: batch>,
    %layer.0.tanh: saved f64[batch: 4*, hidden: 8]<d: batch>,
    %d.layer.0.rename.1.rename: data f64[batch: 4*, f: 4]<d: batch>,
    %layer.0.down: param f64[hidden: 8, dim: 4] param layer.0.down)
    -> (%d.layer.0.up.contract: grad f64[dim: 4, hidden: 8]<d: +> param layer.0.up as layer.0.up,
    %d.layer.0.down.contract: grad f64[hidden: 8, dim: 4]<d: +> param layer.0.down as layer.0.down) {
  %layer.0.layer_norm = port f64[batch: 4*, dim: 4]<d: batch>
  %layer.0.tanh = port f64[batch: 4*, hidden: 8]<d: batch>
  %d.layer.0.rename.1.rename = port f64[batch: 4*, f: 4]<d: batch>
  %layer.0.down = port f64[hidden: 8, dim: 4]
  %d.layer.0.add.rename = rename(%d.layer.0.rename.1.rename) {dims: [f], dims2: [dim]} : f64[batch: 4*, dim: 4]<d: batch> @BI
  %d.layer.0.tanh.contract = contract(%d.layer.0.add.rename, %layer.0.down) {dims: [dim]} : f64[batch: 4*, hidden: 8]<d: batch> @BI
  %d.layer.0.down.contract = contract(%layer.0.tanh, %d.layer.0.add.rename) {dims: [batch]} : f64[hidden: 8, dim: 4]<d: +> @BW
  %d.layer.0.contract.square = square(%layer.0.tanh) : f64[batch: 4*, hidden: 8]<d: batch> @BI
  %d.layer.0.contract.neg = neg(%d.layer.0.contract.square) : f64[batch: 4*, hidden: 8]<d: batch> @BI
  %d.layer.0.contract.offset = offset(%d.layer.0.contract.neg) {scalar: 1} : f64[batch: 4*, hidden: 8]<d: batch> @BI
  %d.layer.0.contract.mul = mul(%d.layer.0.tanh.contract, %d.layer.0.contract.offset) : f64[batch: 4*, hidden: 8]<d: batch> @BI
  %d.layer.0.up.contract = contract(%layer.0.layer_norm, %d.layer.0.contract.mul) {dims: [batch]} : f64[dim: 4, hidden: 8]<d: +> @BW
}
body @score0.F(%y: data i64[batch: 4*]<d: batch> input y,
    %layer.0.rename.1: data f64[batch: 4*, f: 4]<d: batch> as layer.0.rename.1.1,
    %score.0.v: param f64[dim: 4, c: 3] param score.0.v)
    -> (%score.0.rename.1: saved f64[batch: 4*, dim: 4]<d: batch>,
    %score.0.contract: saved f64[batch: 4*, c: 3]<d: batch>,
    %sum: loss_sum f64[]<d: +> loss loss.0) {
  %y = port i64[batch: 4*]<d: batch>
  %layer.0.rename.1 = port f64[batch: 4*, f: 4]<d: batch>
  %score.0.v = port f64[dim: 4, c: 3]
  %score.0.rename = rename(%layer.0.rename.1) {dims: [f], dims2: [dim]} : f64[batch: 4*, dim: 4]<d: batch> @F
  %score.0.contract = contract(%score.0.rename, %score.0.v) {dims: [dim]} : f64[batch: 4*, c: 3]<d: batch> @F
  %score.0.cross_entropy = cross_entropy(%score.0.contract, %y) {dims: [c], ignore: 1} : f64[batch: 4*]<d: batch> @F
  %sum = sum(%score.0.cross_entropy) {dims: [batch]} : f64[]<d: +> @F
  %score.0.rename.1 = broadcast(%score.0.rename) {shape: f64[batch: 4*, dim: 4]} : f64[batch: 4*, dim: 4]<d: batch> @F
}
body @score0.B(%y: data i64[batch: 4*]<d: batch> input y,
    %score.0.rename: saved f64[batch: 4*, dim: 4]<d: batch> as score.0.rename.1,
    %score.0.contract: saved f64[batch: 4*, c: 3]<d: batch>,
    %loss.0.count: count f64[] loss loss.0,
    %score.0.v: param f64[dim: 4, c: 3] param score.0.v)
    -> (%d.layer.0.rename.1.rename.1: data f64[batch: 4*, f: 4]<d: batch> as d.layer.0.rename.1.rename,
    %d.score.0.v.contract: grad f64[dim: 4, c: 3]<d: +> param score.0.v as score.0.v) {
  %y = port i64[batch: 4*]<d: batch>
  %score.0.rename = port f64[batch: 4*, dim: 4]<d: batch>
  %score.0.contract = port f64[batch: 4*, c: 3]<d: batch>
  %loss.0.count = port f64[]
  %score.0.v = port f64[dim: 4, c: 3]
  %d.score.0.cross_entropy.fill = fill() {scalar: 1, shape: f64[]} : f64[] @BI
  %d.score.0.cross_entropy.maximum = maximum(%loss.0.count, %d.score.0.cross_entropy.fill) : f64[] @BI
  %d.score.0.cross_entropy.fill.1 = fill() {scalar: 1, shape: f64[batch: 4*]} : f64[batch: 4*]<d: batch> @BI
  %d.score.0.cross_entropy.div = div(%d.score.0.cross_entropy.fill.1, %d.score.0.cross_entropy.maximum) : f64[batch: 4*]<d: batch> @BI
  %d.score.0.contract.cross_entropy_grad = cross_entropy_grad(%score.0.contract, %y, %d.score.0.cross_entropy.div) {dims: [c], ignore: 1} : f64[batch: 4*, c: 3]<d: batch> @BI
  %d.score.0.rename.contract = contract(%d.score.0.contract.cross_entropy_grad, %score.0.v) {dims: [c]} : f64[batch: 4*, dim: 4]<d: batch> @BI
  %d.score.0.v.contract = contract(%score.0.rename, %d.score.0.contract.cross_entropy_grad) {dims: [batch]} : f64[dim: 4, c: 3]<d: +> @BW
  %d.layer.0.rename.1.rename = rename(%d.score.0.rename.contract) {dims: [dim], dims2: [f]} : f64[batch: 4*, f: 4]<d: batch> @BI
  %d.layer.0.rename.1.rename.1 = broadcast(%d.layer.0.rename.1.rename) {shape: f64[batch: 4*, f: 4]} : f64[batch: 4*, f: 4]<d: batch> @BI
}
graph {
  load.x.mb0.p1 = load x [mb: 0] on m[p: 1] <d: batch> stream compute
  load.y.mb0.p1 = load y [mb: 0] on m[p: 1] <d: batch> stream compute
  load.y.mb1.p1 = load y [mb: 1] on m[p: 1] <d: batch> stream compute
  F.layer0.mb0 = F layer0 [mb: 0] @layer0.F (load.x.mb0.p1, param update.layer0.0.p1, param update.layer0.0.p1:1) on m[p: 1] stream compute
  count.loss.0.p1 = count loss.0 (load.y.mb0.p1, load.y.mb1.p1) on m[p: 1] stream compute
  send.F.layer0.mb0.p0 = send F layer0 [mb: 0] (F.layer0.mb0, F.layer0.mb0:1) to recv.F.layer0.mb0.p0 on m[p: 1] stream act.p1.to.p0
  recv.F.layer0.mb0.p0 = recv F layer0 [mb: 0] from send.F.layer0.mb0.p0 on m[p: 0] stream act.p1.to.p0
  all_reduce.count.loss.0.p1 = all_reduce count loss.0 (count.loss.0.p1) over d with (all_reduce.count.loss.0.p1, all_reduce.count.loss.0.p2) on m[p: 1] stream sum.p1.2
  all_reduce.count.loss.0.p2 = all_reduce count loss.0 over d with (all_reduce.count.loss.0.p1, all_reduce.count.loss.0.p2) on m[p: 2] stream sum.p1.2
  F.score0.mb0 = F score0 [mb: 0] @score0.F (load.y.mb0.p1, F.layer0.mb0:2, param update.score0.0.p1) on m[p: 1] stream compute after F.layer0.mb0
  send.F.score0.mb0.p2 = send F score0 [mb: 0] (F.score0.mb0, F.score0.mb0:1) to recv.F.score0.mb0.p2 on m[p: 1] stream act.p1.to.p2
  recv.F.score0.mb0.p2 = recv F score0 [mb: 0] from send.F.score0.mb0.p2 on m[p: 2] stream act.p1.to.p2
  load.x.mb1.p1 = load x [mb: 1] on m[p: 1] <d: batch> stream compute
  load.y.mb0.p2 = load y [mb: 0] on m[p: 2] <d: batch> stream compute
  F.layer0.mb1 = F layer0 [mb: 1] @layer0.F (load.x.mb1.p1, param update.layer0.0.p1, param update.layer0.0.p1:1) on m[p: 1] stream compute after F.score0.mb0
  B.score0.mb0 = B score0 [mb: 0] @score0.B (load.y.mb0.p2, recv.F.score0.mb0.p2, recv.F.score0.mb0.p2:1, all_reduce.count.loss.0.p2, param update.score0.0.p2) on m[p: 2] stream compute
  send.F.layer0.mb1.p0 = send F layer0 [mb: 1] (F.layer0.mb1, F.layer0.mb1:1) to recv.F.layer0.mb1.p0 on m[p: 1] stream act.p1.to.p0
  recv.F.layer0.mb1.p0 = recv F layer0 [mb: 1] from send.F.layer0.mb1.p0 on m[p: 0] stream act.p1.to.p0
  F.score0.mb1 = F score0 [mb: 1] @score0.F (load.y.mb1.p1, F.layer0.mb1:2, param update.score0.0.p1) on m[p: 1] stream compute after F.layer0.mb1
  send.B.score0.mb0.p0 = send B score0 [mb: 0] (B.score0.mb0) to recv.B.score0.mb0.p0 on m[p: 2] stream grad.p2.to.p0
  recv.B.score0.mb0.p0 = recv B layer0 [mb: 0] from send.B.score0.mb0.p0 on m[p: 0] stream grad.p2.to.p0
  send.F.score0.mb1.p2 = send F score0 [mb: 1] (F.score0.mb1, F.score0.mb1:1) to recv.F.score0.mb1.p2 on m[p: 1] stream act.p1.to.p2
  recv.F.score0.mb1.p2 = recv F score0 [mb: 1] from send.F.score0.mb1.p2 on m[p: 2] stream act.p1.to.p2
  all_reduce.loss.0.p1 = all_reduce loss loss.0 (F.score0.mb0:2, F.score0.mb1:2) over d on m[p: 1] stream sum.p1
  load.y.mb1.p2 = load y [mb: 1] on m[p: 2] <d: batch> stream compute
  B.layer0.mb0 = B layer0 [mb: 0] @layer0.B (recv.F.layer0.mb0.p0, recv.F.layer0.mb0.p0:1, recv.B.score0.mb0.p0, param update.layer0.0.p0:1) on m[p: 0] stream compute
  B.score0.mb1 = B score0 [mb: 1] @score0.B (load.y.mb1.p2, recv.F.score0.mb1.p2, recv.F.score0.mb1.p2:1, all_reduce.count.loss.0.p2, param update.score0.0.p2) on m[p: 2] stream compute after B.score0.mb0
  accumulate.score0.0.p2 = accumulate bucket score0.0 (grad B.score0.mb0:1 + B.score0.mb1:1) on m[p: 2]
  report.loss.0 = report loss loss.0 (all_reduce.loss.0.p1, all_reduce.loss.0.p1:1, all_reduce.count.loss.0.p1) on m[p: 1] stream compute
  send.B.score0.mb1.p0 = send B score0 [mb: 1] (B.score0.mb1) to recv.B.score0.mb1.p0 on m[p: 2] stream grad.p2.to.p0
  recv.B.score0.mb1.p0 = recv B layer0 [mb: 1] from send.B.score0.mb1.p0 on m[p: 0] stream grad.p2.to.p0
  all_reduce.score0.0.p1 = all_reduce bucket score0.0 over d with (all_reduce.score0.0.p1, all_reduce.score0.0.p2) on m[p: 1] stream reduce.p1
  all_reduce.score0.0.p2 = all_reduce bucket score0.0 (accumulate.score0.0.p2) over d with (all_reduce.score0.0.p1, all_reduce.score0.0.p2) on m[p: 2] stream reduce.p1
  B.layer0.mb1 = B layer0 [mb: 1] @layer0.B (recv.F.layer0.mb1.p0, recv.F.layer0.mb1.p0:1, recv.B.score0.mb1.p0, param update.layer0.0.p0:1) on m[p: 0] stream compute after B.layer0.mb0
  accumulate.layer0.0.p0 = accumulate bucket layer0.0 (grad B.layer0.mb0 + B.layer0.mb1, grad B.layer0.mb0:1 + B.layer0.mb1:1) on m[p: 0]
  sum_squares.score0.0.p1 = sum_squares bucket score0.0 (all_reduce.score0.0.p1) on m[p: 1] stream compute
  all_reduce.layer0.0.p0 = all_reduce bucket layer0.0 (accumulate.layer0.0.p0, accumulate.layer0.0.p0:1) over d with (all_reduce.layer0.0.p0, all_reduce.layer0.0.p1) on m[p: 0] stream reduce.p0
  all_reduce.layer0.0.p1 = all_reduce bucket layer0.0 over d with (all_reduce.layer0.0.p0, all_reduce.layer0.0.p1) on m[p: 1] stream reduce.p0
  sum_squares.layer0.0.p0 = sum_squares bucket layer0.0 (all_reduce.layer0.0.p0, all_reduce.layer0.0.p0:1) on m[p: 0] stream compute
  all_gather_v.norm.p0 = all_gather_v (sum_squares.layer0.0.p0) over () with (all_gather_v.norm.p0, all_gather_v.norm.p1, all_gather_v.norm.p2) on m[p: 0] stream gather.p0
  all_gather_v.norm.p1 = all_gather_v (sum_squares.score0.0.p1) over () with (all_gather_v.norm.p0, all_gather_v.norm.p1, all_gather_v.norm.p2) on m[p: 1] stream gather.p0
  all_gather_v.norm.p2 = all_gather_v over () with (all_gather_v.norm.p0, all_gather_v.norm.p1, all_gather_v.norm.p2) on m[p: 2] stream gather.p0
  norm.p0 = norm (all_gather_v.norm.p0, all_gather_v.norm.p0:1) on m[p: 0] stream compute
  norm.p1 = norm (all_gather_v.norm.p1, all_gather_v.norm.p1:1) on m[p: 1] stream compute
  norm.p2 = norm (all_gather_v.norm.p2, all_gather_v.norm.p2:1) on m[p: 2] stream compute
  report.norm = report norm (norm.p0) on m[p: 0] stream compute
  update.layer0.0.p0 = update bucket layer0.0 (all_reduce.layer0.0.p0, all_reduce.layer0.0.p0:1, norm.p0) on m[p: 0] stream compute
  update.layer0.0.p1 = update bucket layer0.0 (all_reduce.layer0.0.p1, all_reduce.layer0.0.p1:1, norm.p1) on m[p: 1] stream compute
  update.score0.0.p1 = update bucket score0.0 (all_reduce.score0.0.p1, norm.p1) on m[p: 1] stream compute
  update.score0.0.p2 = update bucket score0.0 (all_reduce.score0.0.p2, norm.p2) on m[p: 2] stream compute
}
communicator p1.to.p0 pair (m[p: 1], m[p: 0]) stream act.p1.to.p0 window 2 min 1 {
  send.F.layer0.mb0.p0
  send.F.layer0.mb1.p0
}
communicator p1.to.p2 pair (m[p: 1], m[p: 2]) stream act.p1.to.p2 window 2 min 1 {
  send.F.score0.mb0.p2
  send.F.score0.mb1.p2
}
communicator p2.to.p0 pair (m[p: 2], m[p: 0]) stream grad.p2.to.p0 window 2 min 1 {
  send.B.score0.mb0.p0
  send.B.score0.mb1.p0
}
communicator group.p1 group (m[p: 1]) over d stream sum.p1 {
  all_reduce.loss.0.p1
}
communicator group.p1.p2 group (m[p: 1], m[p: 2]) over d stream reduce.p1 {
  all_reduce.score0.0.p1
}
communicator group.p1.p2.no2 group (m[p: 1], m[p: 2]) over d stream sum.p1.2 {
  all_reduce.count.loss.0.p1
}
communicator group.p0.p1 group (m[p: 0], m[p: 1]) over d stream reduce.p0 {
  all_reduce.layer0.0.p0
}
communicator group.p0.p1.p2 group (m[p: 0], m[p: 1], m[p: 2]) stream gather.p0 {
  all_gather_v.norm.p0
}
role p0 at m[p: 0] arena 2816 live 2816 {
  buffer %parameters.layer0.0 = parameters bucket layer0.0 at 0 bytes 512
  buffer %gradients.layer0.0 = gradients bucket layer0.0 at 512 bytes 512
  buffer %optimizer.layer0.0 = optimizer bucket layer0.0 at 1024 bytes 1024
  buffer %scalars = scalars at 2048 bytes 64
  buffer %recv.F.layer0.mb0.p0:0 = communication at 2112 bytes 64
  buffer %recv.F.layer0.mb0.p0:1 = communication at 2176 bytes 128
  buffer %recv.F.layer0.mb1.p0:0 = communication at 2304 bytes 64
  buffer %recv.F.layer0.mb1.p0:1 = communication at 2368 bytes 128
  buffer %recv.B.score0.mb0.p0:0 = communication at 2496 bytes 64
  buffer %workspace = workspace at 2560 bytes 256
  buffer %recv.B.score0.mb1.p0:0 = communication at 2112 bytes 64
  buffer %workspace#2 = workspace at 2496 bytes 256
  buffer %sum_squares.layer0.0.p0:0 = activations at 2112 bytes 16
  buffer %all_gather_v.norm.p0:0 = communication at 2176 bytes 16
  buffer %all_gather_v.norm.p0:1 = communication at 2240 bytes 8
  buffer %norm.p0:0 = activations at 2112 bytes 16
  recv.F.layer0.mb0.p0 on act.p1.to.p0 via p1.to.p0 after previous update.layer0.0.p0 writes (%recv.F.layer0.mb0.p0:0, %recv.F.layer0.mb0.p0:1)
  recv.F.layer0.mb1.p0 on act.p1.to.p0 via p1.to.p0 writes (%recv.F.layer0.mb1.p0:0, %recv.F.layer0.mb1.p0:1)
  recv.B.score0.mb0.p0 on grad.p2.to.p0 via p2.to.p0 after previous B.layer0.mb1 writes (%recv.B.score0.mb0.p0:0)
  B.layer0.mb0 on compute after recv.B.score0.mb0.p0, recv.F.layer0.mb0.p0 reads (%recv.F.layer0.mb0.p0:0, %recv.F.layer0.mb0.p0:1, %recv.B.score0.mb0.p0:0, %parameters.layer0.0 + 256) writes (%gradients.layer0.0, %gradients.layer0.0 + 256) uses (%workspace)
  recv.B.score0.mb1.p0 on grad.p2.to.p0 via p2.to.p0 after B.layer0.mb0 writes (%recv.B.score0.mb1.p0:0)
  B.layer0.mb1 on compute after recv.B.score0.mb1.p0, recv.F.layer0.mb1.p0 reads (%recv.F.layer0.mb1.p0:0, %recv.F.layer0.mb1.p0:1, %recv.B.score0.mb1.p0:0, %parameters.layer0.0 + 256) writes (+%gradients.layer0.0, +%gradients.layer0.0 + 256) uses (%workspace#2)
  all_reduce.layer0.0.p0 on reduce.p0 via group.p0.p1 after B.layer0.mb1 reads (%gradients.layer0.0, %gradients.layer0.0 + 256) writes (%gradients.layer0.0, %gradients.layer0.0 + 256)
  sum_squares.layer0.0.p0 on compute after all_reduce.layer0.0.p0 reads (%gradients.layer0.0, %gradients.layer0.0 + 256) writes (%sum_squares.layer0.0.p0:0)
  all_gather_v.norm.p0 on gather.p0 via group.p0.p1.p2 after sum_squares.layer0.0.p0 reads (%sum_squares.layer0.0.p0:0) writes (%all_gather_v.norm.p0:0, %all_gather_v.norm.p0:1)
  norm.p0 on compute after all_gather_v.norm.p0 reads (%all_gather_v.norm.p0:0, %all_gather_v.norm.p0:1) writes (%norm.p0:0)
  report.norm on compute reads (%norm.p0:0)
  update.layer0.0.p0 on compute reads (%gradients.layer0.0, %gradients.layer0.0 + 256, %norm.p0:0) writes (%parameters.layer0.0, %parameters.layer0.0 + 256)
}
role p1 at m[p: 1] arena 3264 live 3264 {
  buffer %parameters.layer0.0 = parameters bucket layer0.0 at 0 bytes 512
  buffer %gradients.layer0.0 = gradients bucket layer0.0 at 512 bytes 512
  buffer %optimizer.layer0.0 = optimizer bucket layer0.0 at 1024 bytes 1024
  buffer %parameters.score0.0 = parameters bucket score0.0 at 2048 bytes 128
  buffer %gradients.score0.0 = gradients bucket score0.0 at 2176 bytes 128
  buffer %optimizer.score0.0 = optimizer bucket score0.0 at 2304 bytes 256
  buffer %scalars = scalars at 2560 bytes 64
  buffer %load.x.mb0.p1:0 = activations at 2624 bytes 64
  buffer %load.y.mb0.p1:0 = activations at 2688 bytes 16
  buffer %load.y.mb1.p1:0 = activations at 2752 bytes 16
  buffer %F.layer0.mb0:0 = activations at 2816 bytes 64
  buffer %F.layer0.mb0:1 = activations at 2880 bytes 128
  buffer %F.layer0.mb0:2 = activations at 3008 bytes 64
  buffer %workspace = workspace at 3072 bytes 128
  buffer %count.loss.0.p1:0 = activations at 2624 bytes 8
  buffer %F.score0.mb0:0 = activations at 3072 bytes 64
  buffer %F.score0.mb0:1 = activations at 3136 bytes 48
  buffer %F.score0.mb0:2 = activations at 2816 bytes 8
  buffer %load.x.mb1.p1:0 = activations at 2688 bytes 64
  buffer %F.layer0.mb1:0 = activations at 2880 bytes 64
  buffer %F.layer0.mb1:1 = activations at 2944 bytes 128
  buffer %F.layer0.mb1:2 = activations at 3072 bytes 64
  buffer %workspace#2 = workspace at 3136 bytes 128
  buffer %F.score0.mb1:0 = activations at 2688 bytes 64
  buffer %F.score0.mb1:1 = activations at 3136 bytes 48
  buffer %F.score0.mb1:2 = activations at 3200 bytes 8
  buffer %sum_squares.score0.0.p1:0 = activations at 2624 bytes 8
  buffer %all_gather_v.norm.p1:0 = communication at 2688 bytes 16
  buffer %all_gather_v.norm.p1:1 = communication at 2752 bytes 8
  buffer %norm.p1:0 = activations at 2624 bytes 16
  load.x.mb0.p1 on compute writes (%load.x.mb0.p1:0)
  load.y.mb0.p1 on compute writes (%load.y.mb0.p1:0)
  load.y.mb1.p1 on compute writes (%load.y.mb1.p1:0)
  F.layer0.mb0 on compute after previous send.F.layer0.mb1.p0 reads (%load.x.mb0.p1:0, %parameters.layer0.0, %parameters.layer0.0 + 256) writes (%F.layer0.mb0:0, %F.layer0.mb0:1, %F.layer0.mb0:2) uses (%workspace)
  count.loss.0.p1 on compute reads (%load.y.mb0.p1:0, %load.y.mb1.p1:0) writes (%count.loss.0.p1:0)
  send.F.layer0.mb0.p0 on act.p1.to.p0 via p1.to.p0 after F.layer0.mb0 reads (%F.layer0.mb0:0, %F.layer0.mb0:1)
  all_reduce.count.loss.0.p1 on sum.p1.2 via group.p1.p2.no2 after count.loss.0.p1 reads (%count.loss.0.p1:0) writes (%count.loss.0.p1:0)
  F.score0.mb0 on compute after send.F.layer0.mb0.p0 reads (%load.y.mb0.p1:0, %F.layer0.mb0:2, %parameters.score0.0) writes (%F.score0.mb0:0, %F.score0.mb0:1, %F.score0.mb0:2)
  send.F.score0.mb0.p2 on act.p1.to.p2 via p1.to.p2 after F.score0.mb0 reads (%F.score0.mb0:0, %F.score0.mb0:1)
  load.x.mb1.p1 on compute writes (%load.x.mb1.p1:0)
  F.layer0.mb1 on compute after send.F.score0.mb0.p2 reads (%load.x.mb1.p1:0, %parameters.layer0.0, %parameters.layer0.0 + 256) writes (%F.layer0.mb1:0, %F.layer0.mb1:1, %F.layer0.mb1:2) uses (%workspace#2)
  send.F.layer0.mb1.p0 on act.p1.to.p0 via p1.to.p0 after F.layer0.mb1 reads (%F.layer0.mb1:0, %F.layer0.mb1:1)
  F.score0.mb1 on compute reads (%load.y.mb1.p1:0, %F.layer0.mb1:2, %parameters.score0.0) writes (%F.score0.mb1:0, %F.score0.mb1:1, %F.score0.mb1:2)
  send.F.score0.mb1.p2 on act.p1.to.p2 via p1.to.p2 after F.score0.mb1 reads (%F.score0.mb1:0, %F.score0.mb1:1)
  all_reduce.loss.0.p1 on sum.p1 via group.p1 after F.score0.mb1 reads (%F.score0.mb0:2, %F.score0.mb1:2) writes (%F.score0.mb0:2, %F.score0.mb1:2)
  report.loss.0 on compute after all_reduce.loss.0.p1, all_reduce.count.loss.0.p1 reads (%F.score0.mb0:2, %F.score0.mb1:2, %count.loss.0.p1:0)
  all_reduce.score0.0.p1 on reduce.p1 via group.p1.p2 after previous update.score0.0.p1 writes (%gradients.score0.0)
  sum_squares.score0.0.p1 on compute after all_reduce.score0.0.p1 reads (%gradients.score0.0) writes (%sum_squares.score0.0.p1:0)
  all_reduce.layer0.0.p1 on reduce.p0 via group.p0.p1 after previous update.layer0.0.p1 writes (%gradients.layer0.0, %gradients.layer0.0 + 256)
  all_gather_v.norm.p1 on gather.p0 via group.p0.p1.p2 after sum_squares.score0.0.p1, send.F.score0.mb1.p2 reads (%sum_squares.score0.0.p1:0) writes (%all_gather_v.norm.p1:0, %all_gather_v.norm.p1:1)
  norm.p1 on compute after all_gather_v.norm.p1 reads (%all_gather_v.norm.p1:0, %all_gather_v.norm.p1:1) writes (%norm.p1:0)
  update.layer0.0.p1 on compute after all_reduce.layer0.0.p1 reads (%gradients.layer0.0, %gradients.layer0.0 + 256, %norm.p1:0) writes (%parameters.layer0.0, %parameters.layer0.0 + 256)
  update.score0.0.p1 on compute reads (%gradients.score0.0, %norm.p1:0) writes (%parameters.score0.0)
}
role p2 at m[p: 2] arena 1088 live 1088 {
  buffer %parameters.score0.0 = parameters bucket score0.0 at 0 bytes 128
  buffer %gradients.score0.0 = gradients bucket score0.0 at 128 bytes 128
  buffer %optimizer.score0.0 = optimizer bucket score0.0 at 256 bytes 256
  buffer %scalars = scalars at 512 bytes 64
  buffer %all_reduce.count.loss.0.p2:0 = communication at 576 bytes 8
  buffer %recv.F.score0.mb0.p2:0 = communication at 640 bytes 64
  buffer %recv.F.score0.mb0.p2:1 = communication at 704 bytes 48
  buffer %load.y.mb0.p2:0 = activations at 768 bytes 16
  buffer %B.score0.mb0:0 = activations at 832 bytes 64
  buffer %workspace = workspace at 896 bytes 192
  buffer %recv.F.score0.mb1.p2:0 = communication at 640 bytes 64
  buffer %recv.F.score0.mb1.p2:1 = communication at 704 bytes 48
  buffer %load.y.mb1.p2:0 = activations at 768 bytes 16
  buffer %B.score0.mb1:0 = activations at 832 bytes 64
  buffer %all_gather_v.norm.p2:0 = communication at 576 bytes 16
  buffer %all_gather_v.norm.p2:1 = communication at 640 bytes 8
  buffer %norm.p2:0 = activations at 704 bytes 16
  all_reduce.count.loss.0.p2 on sum.p1.2 via group.p1.p2.no2 after previous norm.p2 writes (%all_reduce.count.loss.0.p2:0)
  recv.F.score0.mb0.p2 on act.p1.to.p2 via p1.to.p2 after previous update.score0.0.p2 writes (%recv.F.score0.mb0.p2:0, %recv.F.score0.mb0.p2:1)
  load.y.mb0.p2 on compute writes (%load.y.mb0.p2:0)
  B.score0.mb0 on compute after recv.F.score0.mb0.p2, all_reduce.count.loss.0.p2, previous send.B.score0.mb1.p0 reads (%load.y.mb0.p2:0, %recv.F.score0.mb0.p2:0, %recv.F.score0.mb0.p2:1, %all_reduce.count.loss.0.p2:0, %parameters.score0.0) writes (%B.score0.mb0:0, %gradients.score0.0) uses (%workspace)
  send.B.score0.mb0.p0 on grad.p2.to.p0 via p2.to.p0 after B.score0.mb0 reads (%B.score0.mb0:0)
  recv.F.score0.mb1.p2 on act.p1.to.p2 via p1.to.p2 after B.score0.mb0 writes (%recv.F.score0.mb1.p2:0, %recv.F.score0.mb1.p2:1)
  load.y.mb1.p2 on compute writes (%load.y.mb1.p2:0)
  B.score0.mb1 on compute after recv.F.score0.mb1.p2, send.B.score0.mb0.p0 reads (%load.y.mb1.p2:0, %recv.F.score0.mb1.p2:0, %recv.F.score0.mb1.p2:1, %all_reduce.count.loss.0.p2:0, %parameters.score0.0) writes (%B.score0.mb1:0, +%gradients.score0.0) uses (%workspace)
  send.B.score0.mb1.p0 on grad.p2.to.p0 via p2.to.p0 after B.score0.mb1 reads (%B.score0.mb1:0)
  all_reduce.score0.0.p2 on reduce.p1 via group.p1.p2 after B.score0.mb1 reads (%gradients.score0.0) writes (%gradients.score0.0)
  all_gather_v.norm.p2 on gather.p0 via group.p0.p1.p2 after B.score0.mb1 writes (%all_gather_v.norm.p2:0, %all_gather_v.norm.p2:1)
  norm.p2 on compute after all_gather_v.norm.p2 reads (%all_gather_v.norm.p2:0, %all_gather_v.norm.p2:1) writes (%norm.p2:0)
  update.score0.0.p2 on compute after all_reduce.score0.0.p2 reads (%gradients.score0.0, %norm.p2:0) writes (%parameters.score0.0)
}
