pir 2 ordered
train small #1 {
  steps 3
  dtype f64
  seed 0
  data synthetic(classes: 0, batch: 12, dim: 2) #1
  optim adamw(lr: constant(0.01, warmup: 0, floor: 0), beta1: 0.9, beta2: 0.999, eps: 1e-08, weight_decay: 0.1) #2
}
mesh cluster(pp: 2, dp: 2) #3
stages stage
split batch into mb: 3 #4
param layer.0.up: f64[dim: 2, hidden: 3] = normal(0.3) #5
param layer.0.down: f64[hidden: 3, dim: 2] = normal(0.3) #5
param layer.1.up: f64[dim: 2, hidden: 3] = normal(0.3) #6
param layer.1.down: f64[hidden: 3, dim: 2] = normal(0.3) #6
input x: f64[batch: 12*, dim: 2] #7
input target: f64[batch: 12*, dim: 2] #7
loss mlp.loss.0: 24 #8
chunk stage0.layer0 of stage[0].layer[0] F @stage0.layer0.F B @stage0.layer0.B #5
chunk stage1.layer1 of stage[1].layer[1] F @stage1.layer1.F B @stage1.layer1.B #6
chunk stage1 of stage[1] F @stage1.F B @stage1.B #8
bucket stage0.layer0.0 (layer.0.up, layer.0.down) on cluster[pp: 0] unreduced <dp: +> state <dp: flat> gradients <dp: flat> parameters <dp: flat> by unit #5
bucket stage1.layer1.0 (layer.1.up, layer.1.down) on cluster[pp: 1] unreduced <dp: +> state <dp: flat> gradients <dp: flat> parameters <dp: flat> by unit #6
stream compute
stream act.pp0.to.pp1
stream grad.pp1.to.pp0
stream reduce.pp0
stream sum.pp0
stream gather.pp0
stream gather.pp0.2
stream reduce.pp1
stream sum.pp1
stream gather.pp1
claim cluster[pp: 0] #9
claim cluster[pp: 1] #10
body @stage0.layer0.F(%x: data f64[batch: 4*, dim: 2]<dp: batch> input x,
    %layer.0.up: param f64[dim: 2, hidden: 3] param layer.0.up,
    %layer.0.down: param f64[hidden: 3, dim: 2] param layer.0.down)
    -> (%layer.0.contract: saved f64[batch: 4*, hidden: 3]<dp: batch>,
    %layer.0.gelu: saved f64[batch: 4*, hidden: 3]<dp: batch>,
    %layer.0.add: data f64[batch: 4*, dim: 2]<dp: batch>) {
  %x = port f64[batch: 4*, dim: 2]<dp: batch>
  %layer.0.up = port f64[dim: 2, hidden: 3]
  %layer.0.down = port f64[hidden: 3, dim: 2]
  %layer.0.contract = contract(%x, %layer.0.up) {dims: [dim]} : f64[batch: 4*, hidden: 3]<dp: batch> @F #5
  %layer.0.gelu = gelu(%layer.0.contract) : f64[batch: 4*, hidden: 3]<dp: batch> @F #5
  %layer.0.contract.1 = contract(%layer.0.gelu, %layer.0.down) {dims: [hidden]} : f64[batch: 4*, dim: 2]<dp: batch> @F #5
  %layer.0.add = add(%x, %layer.0.contract.1) : f64[batch: 4*, dim: 2]<dp: batch> @F #5
}
body @stage0.layer0.B(%x: data f64[batch: 4*, dim: 2]<dp: batch> input x,
    %layer.0.contract: saved f64[batch: 4*, hidden: 3]<dp: batch>,
    %layer.0.gelu: saved f64[batch: 4*, hidden: 3]<dp: batch>,
    %d.layer.0.add.add: data f64[batch: 4*, dim: 2]<dp: batch>,
    %layer.0.down: param f64[hidden: 3, dim: 2] param layer.0.down)
    -> (%d.layer.0.up.contract: grad f64[dim: 2, hidden: 3]<dp: +> param layer.0.up as layer.0.up,
    %d.layer.0.down.contract: grad f64[hidden: 3, dim: 2]<dp: +> param layer.0.down as layer.0.down) {
  %x = port f64[batch: 4*, dim: 2]<dp: batch>
  %layer.0.contract = port f64[batch: 4*, hidden: 3]<dp: batch>
  %layer.0.gelu = port f64[batch: 4*, hidden: 3]<dp: batch>
  %d.layer.0.add.add = port f64[batch: 4*, dim: 2]<dp: batch>
  %layer.0.down = port f64[hidden: 3, dim: 2]
  %d.layer.0.gelu.contract = contract(%d.layer.0.add.add, %layer.0.down) {dims: [dim]} : f64[batch: 4*, hidden: 3]<dp: batch> @BI #5
  %d.layer.0.down.contract = contract(%layer.0.gelu, %d.layer.0.add.add) {dims: [batch]} : f64[hidden: 3, dim: 2]<dp: +> @BW #5
  %d.layer.0.contract.gelu_grad = gelu_grad(%layer.0.contract, %d.layer.0.gelu.contract) : f64[batch: 4*, hidden: 3]<dp: batch> @BI #5
  %d.layer.0.up.contract = contract(%x, %d.layer.0.contract.gelu_grad) {dims: [batch]} : f64[dim: 2, hidden: 3]<dp: +> @BW #5
}
body @stage1.layer1.F(%layer.0.add: data f64[batch: 4*, dim: 2]<dp: batch>,
    %layer.1.up: param f64[dim: 2, hidden: 3] param layer.1.up,
    %layer.1.down: param f64[hidden: 3, dim: 2] param layer.1.down)
    -> (%layer.1.contract: saved f64[batch: 4*, hidden: 3]<dp: batch>,
    %layer.1.gelu: saved f64[batch: 4*, hidden: 3]<dp: batch>,
    %layer.1.add: data f64[batch: 4*, dim: 2]<dp: batch>) {
  %layer.0.add = port f64[batch: 4*, dim: 2]<dp: batch>
  %layer.1.up = port f64[dim: 2, hidden: 3]
  %layer.1.down = port f64[hidden: 3, dim: 2]
  %layer.1.contract = contract(%layer.0.add, %layer.1.up) {dims: [dim]} : f64[batch: 4*, hidden: 3]<dp: batch> @F #6
  %layer.1.gelu = gelu(%layer.1.contract) : f64[batch: 4*, hidden: 3]<dp: batch> @F #6
  %layer.1.contract.1 = contract(%layer.1.gelu, %layer.1.down) {dims: [hidden]} : f64[batch: 4*, dim: 2]<dp: batch> @F #6
  %layer.1.add = add(%layer.0.add, %layer.1.contract.1) : f64[batch: 4*, dim: 2]<dp: batch> @F #6
}
body @stage1.layer1.B(%layer.0.add: saved f64[batch: 4*, dim: 2]<dp: batch>,
    %layer.1.contract: saved f64[batch: 4*, hidden: 3]<dp: batch>,
    %layer.1.gelu: saved f64[batch: 4*, hidden: 3]<dp: batch>,
    %d.sub.mul: data f64[batch: 4*, dim: 2]<dp: batch>,
    %layer.1.up: param f64[dim: 2, hidden: 3] param layer.1.up,
    %layer.1.down: param f64[hidden: 3, dim: 2] param layer.1.down)
    -> (%d.layer.0.add.add: data f64[batch: 4*, dim: 2]<dp: batch>,
    %d.layer.1.up.contract: grad f64[dim: 2, hidden: 3]<dp: +> param layer.1.up as layer.1.up,
    %d.layer.1.down.contract: grad f64[hidden: 3, dim: 2]<dp: +> param layer.1.down as layer.1.down) {
  %layer.0.add = port f64[batch: 4*, dim: 2]<dp: batch>
  %layer.1.contract = port f64[batch: 4*, hidden: 3]<dp: batch>
  %layer.1.gelu = port f64[batch: 4*, hidden: 3]<dp: batch>
  %d.sub.mul = port f64[batch: 4*, dim: 2]<dp: batch>
  %layer.1.up = port f64[dim: 2, hidden: 3]
  %layer.1.down = port f64[hidden: 3, dim: 2]
  %d.layer.1.gelu.contract = contract(%d.sub.mul, %layer.1.down) {dims: [dim]} : f64[batch: 4*, hidden: 3]<dp: batch> @BI #6
  %d.layer.1.down.contract = contract(%layer.1.gelu, %d.sub.mul) {dims: [batch]} : f64[hidden: 3, dim: 2]<dp: +> @BW #6
  %d.layer.1.contract.gelu_grad = gelu_grad(%layer.1.contract, %d.layer.1.gelu.contract) : f64[batch: 4*, hidden: 3]<dp: batch> @BI #6
  %d.layer.0.add.contract = contract(%d.layer.1.contract.gelu_grad, %layer.1.up) {dims: [hidden]} : f64[batch: 4*, dim: 2]<dp: batch> @BI #6
  %d.layer.1.up.contract = contract(%layer.0.add, %d.layer.1.contract.gelu_grad) {dims: [batch]} : f64[dim: 2, hidden: 3]<dp: +> @BW #6
  %d.layer.0.add.add = add(%d.sub.mul, %d.layer.0.add.contract) : f64[batch: 4*, dim: 2]<dp: batch> @BI #5
}
body @stage1.F(%target: data f64[batch: 4*, dim: 2]<dp: batch> input target,
    %layer.1.add: data f64[batch: 4*, dim: 2]<dp: batch>)
    -> (%sub: saved f64[batch: 4*, dim: 2]<dp: batch>,
    %sum: loss_sum f64[]<dp: +> loss mlp.loss.0) {
  %target = port f64[batch: 4*, dim: 2]<dp: batch>
  %layer.1.add = port f64[batch: 4*, dim: 2]<dp: batch>
  %sub = sub(%layer.1.add, %target) : f64[batch: 4*, dim: 2]<dp: batch> @F #8
  %square = square(%sub) : f64[batch: 4*, dim: 2]<dp: batch> @F #8
  %sum = sum(%square) {dims: [batch, dim]} : f64[]<dp: +> @F #8
}
body @stage1.B(%sub: saved f64[batch: 4*, dim: 2]<dp: batch>)
    -> (%d.sub.mul: data f64[batch: 4*, dim: 2]<dp: batch>) {
  %sub = port f64[batch: 4*, dim: 2]<dp: batch>
  %d.square.fill = fill() {scalar: 0.041666666666666664, shape: f64[batch: 4*, dim: 2]} : f64[batch: 4*, dim: 2]<dp: batch> @BI #8
  %d.sub.scale = scale(%d.square.fill) {scalar: 2} : f64[batch: 4*, dim: 2]<dp: batch> @BI #8
  %d.sub.mul = mul(%d.sub.scale, %sub) : f64[batch: 4*, dim: 2]<dp: batch> @BI #8
}
graph {
  all_gather.stage0.layer0.0 = all_gather bucket stage0.layer0.0 (param update.stage0.layer0.0) over dp on cluster[pp: 0] stream gather.pp0 #5
  all_gather.stage1.layer1.0 = all_gather bucket stage1.layer1.0 (param update.stage1.layer1.0) over dp on cluster[pp: 1] stream gather.pp1 #6
  load.x.mb0.pp0 = load x [mb: 0] on cluster[pp: 0] <dp: batch> stream compute #7
  F.stage0.layer0.mb0 = F stage0.layer0 [mb: 0] @stage0.layer0.F (load.x.mb0.pp0, all_gather.stage0.layer0.0, all_gather.stage0.layer0.0:1) on cluster[pp: 0] stream compute #11
  send.F.stage0.layer0.mb0.pp1 = send F stage0.layer0 [mb: 0] (F.stage0.layer0.mb0:2) to recv.F.stage0.layer0.mb0.pp1 on cluster[pp: 0] stream act.pp0.to.pp1 #5
  recv.F.stage0.layer0.mb0.pp1 = recv F stage1.layer1 [mb: 0] from send.F.stage0.layer0.mb0.pp1 on cluster[pp: 1] stream act.pp0.to.pp1 #5
  load.x.mb1.pp0 = load x [mb: 1] on cluster[pp: 0] <dp: batch> stream compute #7
  F.stage0.layer0.mb1 = F stage0.layer0 [mb: 1] @stage0.layer0.F (load.x.mb1.pp0, all_gather.stage0.layer0.0, all_gather.stage0.layer0.0:1) on cluster[pp: 0] stream compute after F.stage0.layer0.mb0 #12
  F.stage1.layer1.mb0 = F stage1.layer1 [mb: 0] @stage1.layer1.F (recv.F.stage0.layer0.mb0.pp1, all_gather.stage1.layer1.0, all_gather.stage1.layer1.0:1) on cluster[pp: 1] stream compute #13
  send.F.stage0.layer0.mb1.pp1 = send F stage0.layer0 [mb: 1] (F.stage0.layer0.mb1:2) to recv.F.stage0.layer0.mb1.pp1 on cluster[pp: 0] stream act.pp0.to.pp1 #5
  recv.F.stage0.layer0.mb1.pp1 = recv F stage1.layer1 [mb: 1] from send.F.stage0.layer0.mb1.pp1 on cluster[pp: 1] stream act.pp0.to.pp1 #5
  load.x.mb2.pp0 = load x [mb: 2] on cluster[pp: 0] <dp: batch> stream compute #7
  load.target.mb0.pp1 = load target [mb: 0] on cluster[pp: 1] <dp: batch> stream compute #7
  F.stage0.layer0.mb2 = F stage0.layer0 [mb: 2] @stage0.layer0.F (load.x.mb2.pp0, all_gather.stage0.layer0.0, all_gather.stage0.layer0.0:1) on cluster[pp: 0] stream compute after F.stage0.layer0.mb1 #14
  F.stage1.mb0 = F stage1 [mb: 0] @stage1.F (load.target.mb0.pp1, F.stage1.layer1.mb0:2) on cluster[pp: 1] stream compute after F.stage1.layer1.mb0 #13
  send.F.stage0.layer0.mb2.pp1 = send F stage0.layer0 [mb: 2] (F.stage0.layer0.mb2:2) to recv.F.stage0.layer0.mb2.pp1 on cluster[pp: 0] stream act.pp0.to.pp1 #5
  recv.F.stage0.layer0.mb2.pp1 = recv F stage1.layer1 [mb: 2] from send.F.stage0.layer0.mb2.pp1 on cluster[pp: 1] stream act.pp0.to.pp1 #5
  F.stage1.layer1.mb1 = F stage1.layer1 [mb: 1] @stage1.layer1.F (recv.F.stage0.layer0.mb1.pp1, all_gather.stage1.layer1.0, all_gather.stage1.layer1.0:1) on cluster[pp: 1] stream compute after F.stage1.mb0 #15
  load.target.mb1.pp1 = load target [mb: 1] on cluster[pp: 1] <dp: batch> stream compute #7
  F.stage1.mb1 = F stage1 [mb: 1] @stage1.F (load.target.mb1.pp1, F.stage1.layer1.mb1:2) on cluster[pp: 1] stream compute after F.stage1.layer1.mb1 #15
  F.stage1.layer1.mb2 = F stage1.layer1 [mb: 2] @stage1.layer1.F (recv.F.stage0.layer0.mb2.pp1, all_gather.stage1.layer1.0, all_gather.stage1.layer1.0:1) on cluster[pp: 1] stream compute after F.stage1.mb1 #16
  load.target.mb2.pp1 = load target [mb: 2] on cluster[pp: 1] <dp: batch> stream compute #7
  F.stage1.mb2 = F stage1 [mb: 2] @stage1.F (load.target.mb2.pp1, F.stage1.layer1.mb2:2) on cluster[pp: 1] stream compute after F.stage1.layer1.mb2 #16
  all_reduce.mlp.loss.0.pp1 = all_reduce loss mlp.loss.0 (F.stage1.mb0:1, F.stage1.mb1:1, F.stage1.mb2:1) over dp on cluster[pp: 1] stream sum.pp1 #8
  B.stage1.mb0 = B stage1 [mb: 0] @stage1.B (F.stage1.mb0) on cluster[pp: 1] stream compute after F.stage1.mb2 #17
  B.stage1.layer1.mb0 = B stage1.layer1 [mb: 0] @stage1.layer1.B (recv.F.stage0.layer0.mb0.pp1, F.stage1.layer1.mb0, F.stage1.layer1.mb0:1, B.stage1.mb0, all_gather.stage1.layer1.0, all_gather.stage1.layer1.0:1) on cluster[pp: 1] stream compute after B.stage1.mb0 #17
  send.B.stage1.layer1.mb0.pp0 = send B stage1.layer1 [mb: 0] (B.stage1.layer1.mb0) to recv.B.stage1.layer1.mb0.pp0 on cluster[pp: 1] stream grad.pp1.to.pp0 #6
  recv.B.stage1.layer1.mb0.pp0 = recv B stage0.layer0 [mb: 0] from send.B.stage1.layer1.mb0.pp0 on cluster[pp: 0] stream grad.pp1.to.pp0 #6
  B.stage1.mb1 = B stage1 [mb: 1] @stage1.B (F.stage1.mb1) on cluster[pp: 1] stream compute after B.stage1.layer1.mb0 #18
  B.stage0.layer0.mb0 = B stage0.layer0 [mb: 0] @stage0.layer0.B (load.x.mb0.pp0, F.stage0.layer0.mb0, F.stage0.layer0.mb0:1, recv.B.stage1.layer1.mb0.pp0, all_gather.stage0.layer0.0:1) on cluster[pp: 0] stream compute after F.stage0.layer0.mb2 #19
  B.stage1.layer1.mb1 = B stage1.layer1 [mb: 1] @stage1.layer1.B (recv.F.stage0.layer0.mb1.pp1, F.stage1.layer1.mb1, F.stage1.layer1.mb1:1, B.stage1.mb1, all_gather.stage1.layer1.0, all_gather.stage1.layer1.0:1) on cluster[pp: 1] stream compute after B.stage1.mb1 #18
  send.B.stage1.layer1.mb1.pp0 = send B stage1.layer1 [mb: 1] (B.stage1.layer1.mb1) to recv.B.stage1.layer1.mb1.pp0 on cluster[pp: 1] stream grad.pp1.to.pp0 #6
  recv.B.stage1.layer1.mb1.pp0 = recv B stage0.layer0 [mb: 1] from send.B.stage1.layer1.mb1.pp0 on cluster[pp: 0] stream grad.pp1.to.pp0 #6
  B.stage1.mb2 = B stage1 [mb: 2] @stage1.B (F.stage1.mb2) on cluster[pp: 1] stream compute after B.stage1.layer1.mb1 #20
  B.stage0.layer0.mb1 = B stage0.layer0 [mb: 1] @stage0.layer0.B (load.x.mb1.pp0, F.stage0.layer0.mb1, F.stage0.layer0.mb1:1, recv.B.stage1.layer1.mb1.pp0, all_gather.stage0.layer0.0:1) on cluster[pp: 0] stream compute after B.stage0.layer0.mb0 #21
  B.stage1.layer1.mb2 = B stage1.layer1 [mb: 2] @stage1.layer1.B (recv.F.stage0.layer0.mb2.pp1, F.stage1.layer1.mb2, F.stage1.layer1.mb2:1, B.stage1.mb2, all_gather.stage1.layer1.0, all_gather.stage1.layer1.0:1) on cluster[pp: 1] stream compute after B.stage1.mb2 #20
  accumulate.stage1.layer1.0 = accumulate bucket stage1.layer1.0 (grad B.stage1.layer1.mb0:1 + B.stage1.layer1.mb1:1 + B.stage1.layer1.mb2:1, grad B.stage1.layer1.mb0:2 + B.stage1.layer1.mb1:2 + B.stage1.layer1.mb2:2) on cluster[pp: 1] #6
  send.B.stage1.layer1.mb2.pp0 = send B stage1.layer1 [mb: 2] (B.stage1.layer1.mb2) to recv.B.stage1.layer1.mb2.pp0 on cluster[pp: 1] stream grad.pp1.to.pp0 #6
  recv.B.stage1.layer1.mb2.pp0 = recv B stage0.layer0 [mb: 2] from send.B.stage1.layer1.mb2.pp0 on cluster[pp: 0] stream grad.pp1.to.pp0 #6
  reduce_scatter.stage1.layer1.0 = reduce_scatter bucket stage1.layer1.0 (accumulate.stage1.layer1.0, accumulate.stage1.layer1.0:1) over dp on cluster[pp: 1] stream reduce.pp1 #6
  report.mlp.loss.0 = report loss mlp.loss.0 (all_reduce.mlp.loss.0.pp1, all_reduce.mlp.loss.0.pp1:1, all_reduce.mlp.loss.0.pp1:2) on cluster[pp: 1] stream compute #8
  B.stage0.layer0.mb2 = B stage0.layer0 [mb: 2] @stage0.layer0.B (load.x.mb2.pp0, F.stage0.layer0.mb2, F.stage0.layer0.mb2:1, recv.B.stage1.layer1.mb2.pp0, all_gather.stage0.layer0.0:1) on cluster[pp: 0] stream compute after B.stage0.layer0.mb1 #22
  accumulate.stage0.layer0.0 = accumulate bucket stage0.layer0.0 (grad B.stage0.layer0.mb0 + B.stage0.layer0.mb1 + B.stage0.layer0.mb2, grad B.stage0.layer0.mb0:1 + B.stage0.layer0.mb1:1 + B.stage0.layer0.mb2:1) on cluster[pp: 0] #5
  sum_squares.stage1.layer1.0 = sum_squares bucket stage1.layer1.0 (reduce_scatter.stage1.layer1.0) on cluster[pp: 1] stream compute #6
  update.stage1.layer1.0 = update bucket stage1.layer1.0 (reduce_scatter.stage1.layer1.0) on cluster[pp: 1] stream compute #6
  all_reduce.norm.dp.pp1 = all_reduce (sum_squares.stage1.layer1.0) over dp on cluster[pp: 1] stream sum.pp1 #2
  reduce_scatter.stage0.layer0.0 = reduce_scatter bucket stage0.layer0.0 (accumulate.stage0.layer0.0, accumulate.stage0.layer0.0:1) over dp on cluster[pp: 0] stream reduce.pp0 #5
  sum_squares.stage0.layer0.0 = sum_squares bucket stage0.layer0.0 (reduce_scatter.stage0.layer0.0) on cluster[pp: 0] stream compute #5
  update.stage0.layer0.0 = update bucket stage0.layer0.0 (reduce_scatter.stage0.layer0.0) on cluster[pp: 0] stream compute #5
  all_reduce.norm.dp.pp0 = all_reduce (sum_squares.stage0.layer0.0) over dp on cluster[pp: 0] stream sum.pp0 #2
  all_gather_v.norm.pp0 = all_gather_v (all_reduce.norm.dp.pp0) over () with (all_gather_v.norm.pp0, all_gather_v.norm.pp1) on cluster[pp: 0] stream gather.pp0.2 #2
  all_gather_v.norm.pp1 = all_gather_v (all_reduce.norm.dp.pp1) over () with (all_gather_v.norm.pp0, all_gather_v.norm.pp1) on cluster[pp: 1] stream gather.pp0.2 #2
  norm.pp0 = norm (all_gather_v.norm.pp0, all_gather_v.norm.pp0:1) on cluster[pp: 0] stream compute #2
  norm.pp1 = norm (all_gather_v.norm.pp1, all_gather_v.norm.pp1:1) on cluster[pp: 1] stream compute #2
  report.norm = report norm (norm.pp0) on cluster[pp: 0] stream compute #2
}
gathers {
  all_gather.stage0.layer0.0 for F.stage0.layer0.mb2 after F.stage0.layer0.mb1 #14
  all_gather.stage1.layer1.0 for F.stage1.layer1.mb2 after F.stage1.mb1 #16
}
locations {
  1 "sample.pipe":2:1-2:9
  2 "sample.pipe":3:1-3:9
  3 "sample.pipe":1:1-1:9
  4 "sample.pipe":5:1-5:9
  5 "model.pipe":2:1-2:9
  6 "model.pipe":4:1-4:9
  7 "model.pipe":1:1-1:9
  8 "model.pipe":5:1-5:9
  9 "sample.pipe":10:1-10:9
  10 "sample.pipe":17:1-17:9
  11 "sample.pipe":11:1-11:9
  12 "sample.pipe":12:1-12:9
  13 "sample.pipe":18:1-18:9
  14 "sample.pipe":13:1-13:9
  15 "sample.pipe":19:1-19:9
  16 "sample.pipe":20:1-20:9
  17 "sample.pipe":21:1-21:9
  18 "sample.pipe":22:1-22:9
  19 "sample.pipe":14:1-14:9
  20 "sample.pipe":23:1-23:9
  21 "sample.pipe":15:1-15:9
  22 "sample.pipe":16:1-16:9
}
