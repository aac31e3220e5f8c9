pir 2 planned
train "" #1 {
  steps 3
  dtype f64
  seed 0
  optim adamw(lr: constant(0.01, warmup: 0, floor: 0), beta1: 0.9, beta2: 0.999, eps: 1e-08, weight_decay: 0.1) #2
}
mesh cluster(pp: 1, dp: 2) #3
stages stage
split batch into mb: 2 #4
param layer.0.w: f64[in: 2, out: 2] = normal(0.3) #5
input x: f64[batch: 12*, in: 2] #6
input target: f64[batch: 12*, out: 2] #7
loss line.loss.0: 24 #7
chunk stage0.layer0 of stage[0].layer[0] F @stage0.layer0.F B @stage0.layer0.B #5
chunk stage0 of stage[0] F @stage0.F B @stage0.B #7
bucket stage0.layer0.0 (layer.0.w) on cluster[] unreduced <dp: +> state <dp: flat> gradients <dp: flat> parameters <dp: flat> by unit #8
stream compute
stream reduce.cluster
stream sum.cluster
stream gather.cluster
claim cluster[pp: 0] #9
directives {
  partition model into stage: 1 #10
  split batch into mb: 2 #4
  place stage[0] #11 on cluster[pp: 0] #11
  replicate model #8 over dp with zero: 3 #8
  order {
    rank cluster[pp: 0] #9 {
      F stage[0] mb[0] #12
      B stage[0] mb[0] #13
      F stage[0] mb[1] #14
      B stage[0] mb[1] #15
    }
  } #16
}
body @stage0.layer0.F(%x: data f64[batch: 6*, in: 2]<dp: batch> input x,
    %layer.0.w: param f64[in: 2, out: 2] param layer.0.w)
    -> (%layer.0.contract: data f64[batch: 6*, out: 2]<dp: batch>) {
  %x = port f64[batch: 6*, in: 2]<dp: batch>
  %layer.0.w = port f64[in: 2, out: 2]
  %layer.0.contract = contract(%x, %layer.0.w) {dims: [in]} : f64[batch: 6*, out: 2]<dp: batch> @F #5
}
body @stage0.layer0.B(%x: data f64[batch: 6*, in: 2]<dp: batch> input x,
    %d.sub.mul: data f64[batch: 6*, out: 2]<dp: batch>)
    -> (%d.layer.0.w.contract: grad f64[in: 2, out: 2]<dp: +> param layer.0.w as layer.0.w) {
  %x = port f64[batch: 6*, in: 2]<dp: batch>
  %d.sub.mul = port f64[batch: 6*, out: 2]<dp: batch>
  %d.layer.0.w.contract = contract(%x, %d.sub.mul) {dims: [batch]} : f64[in: 2, out: 2]<dp: +> @BW #5
}
body @stage0.F(%target: data f64[batch: 6*, out: 2]<dp: batch> input target,
    %layer.0.contract: data f64[batch: 6*, out: 2]<dp: batch>)
    -> (%sub: saved f64[batch: 6*, out: 2]<dp: batch>,
    %sum: loss_sum f64[]<dp: +> loss line.loss.0) {
  %target = port f64[batch: 6*, out: 2]<dp: batch>
  %layer.0.contract = port f64[batch: 6*, out: 2]<dp: batch>
  %sub = sub(%layer.0.contract, %target) : f64[batch: 6*, out: 2]<dp: batch> @F #7
  %square = square(%sub) : f64[batch: 6*, out: 2]<dp: batch> @F #7
  %sum = sum(%square) {dims: [batch, out]} : f64[]<dp: +> @F #7
}
body @stage0.B(%sub: saved f64[batch: 6*, out: 2]<dp: batch>)
    -> (%d.sub.mul: data f64[batch: 6*, out: 2]<dp: batch>) {
  %sub = port f64[batch: 6*, out: 2]<dp: batch>
  %d.square.fill = fill() {scalar: 0.041666666666666664, shape: f64[batch: 6*, out: 2]} : f64[batch: 6*, out: 2]<dp: batch> @BI #7
  %d.sub.scale = scale(%d.square.fill) {scalar: 2} : f64[batch: 6*, out: 2]<dp: batch> @BI #7
  %d.sub.mul = mul(%d.sub.scale, %sub) : f64[batch: 6*, out: 2]<dp: batch> @BI #7
}
graph {
  load.x.mb0.cluster = load x [mb: 0] on cluster[] <dp: batch> stream compute #6
  all_gather.stage0.layer0.0.F.stage0.layer0.mb0 = all_gather bucket stage0.layer0.0 F stage0.layer0 [mb: 0] (param update.stage0.layer0.0) over dp on cluster[] stream gather.cluster #8
  F.stage0.layer0.mb0 = F stage0.layer0 [mb: 0] @stage0.layer0.F (load.x.mb0.cluster, all_gather.stage0.layer0.0.F.stage0.layer0.mb0) on cluster[] stream compute #12
  load.target.mb0.cluster = load target [mb: 0] on cluster[] <dp: batch> stream compute #7
  F.stage0.mb0 = F stage0 [mb: 0] @stage0.F (load.target.mb0.cluster, F.stage0.layer0.mb0) on cluster[] stream compute after F.stage0.layer0.mb0 #12
  B.stage0.mb0 = B stage0 [mb: 0] @stage0.B (F.stage0.mb0) on cluster[] stream compute after F.stage0.mb0 #13
  B.stage0.layer0.mb0 = B stage0.layer0 [mb: 0] @stage0.layer0.B (load.x.mb0.cluster, B.stage0.mb0) on cluster[] stream compute after B.stage0.mb0 #13
  accumulate.stage0.layer0.0.B.stage0.layer0.mb0 = accumulate bucket stage0.layer0.0 B stage0.layer0 [mb: 0] (grad B.stage0.layer0.mb0) on cluster[] #8
  reduce_scatter.stage0.layer0.0.B.stage0.layer0.mb0 = reduce_scatter bucket stage0.layer0.0 B stage0.layer0 [mb: 0] (accumulate.stage0.layer0.0.B.stage0.layer0.mb0) over dp on cluster[] stream reduce.cluster #8
  load.x.mb1.cluster = load x [mb: 1] on cluster[] <dp: batch> stream compute #6
  all_gather.stage0.layer0.0.F.stage0.layer0.mb1 = all_gather bucket stage0.layer0.0 F stage0.layer0 [mb: 1] (param update.stage0.layer0.0) over dp on cluster[] stream gather.cluster #8
  F.stage0.layer0.mb1 = F stage0.layer0 [mb: 1] @stage0.layer0.F (load.x.mb1.cluster, all_gather.stage0.layer0.0.F.stage0.layer0.mb1) on cluster[] stream compute after B.stage0.layer0.mb0 #14
  load.target.mb1.cluster = load target [mb: 1] on cluster[] <dp: batch> stream compute #7
  F.stage0.mb1 = F stage0 [mb: 1] @stage0.F (load.target.mb1.cluster, F.stage0.layer0.mb1) on cluster[] stream compute after F.stage0.layer0.mb1 #14
  all_reduce.line.loss.0.cluster = all_reduce loss line.loss.0 (F.stage0.mb0:1, F.stage0.mb1:1) over dp on cluster[] stream sum.cluster #8
  B.stage0.mb1 = B stage0 [mb: 1] @stage0.B (F.stage0.mb1) on cluster[] stream compute after F.stage0.mb1 #15
  B.stage0.layer0.mb1 = B stage0.layer0 [mb: 1] @stage0.layer0.B (load.x.mb1.cluster, B.stage0.mb1) on cluster[] stream compute after B.stage0.mb1 #15
  accumulate.stage0.layer0.0.B.stage0.layer0.mb1 = accumulate bucket stage0.layer0.0 B stage0.layer0 [mb: 1] (grad B.stage0.layer0.mb1) on cluster[] #8
  reduce_scatter.stage0.layer0.0.B.stage0.layer0.mb1 = reduce_scatter bucket stage0.layer0.0 B stage0.layer0 [mb: 1] (accumulate.stage0.layer0.0.B.stage0.layer0.mb1) over dp on cluster[] stream reduce.cluster #8
  accumulate.stage0.layer0.0 = accumulate bucket stage0.layer0.0 (grad reduce_scatter.stage0.layer0.0.B.stage0.layer0.mb0 + reduce_scatter.stage0.layer0.0.B.stage0.layer0.mb1) on cluster[] #8
  report.line.loss.0 = report loss line.loss.0 (all_reduce.line.loss.0.cluster, all_reduce.line.loss.0.cluster:1) on cluster[] stream compute #7
  sum_squares.stage0.layer0.0 = sum_squares bucket stage0.layer0.0 (accumulate.stage0.layer0.0) on cluster[] stream compute #8
  update.stage0.layer0.0 = update bucket stage0.layer0.0 (accumulate.stage0.layer0.0) on cluster[] stream compute #8
  all_reduce.norm.dp.cluster = all_reduce (sum_squares.stage0.layer0.0) over dp on cluster[] stream sum.cluster #8
  norm.cluster = norm (all_reduce.norm.dp.cluster) on cluster[] stream compute #2
  report.norm = report norm (norm.cluster) on cluster[] stream compute #2
}
communicator group.cluster group (cluster[]) over dp stream reduce.cluster #8 {
  reduce_scatter.stage0.layer0.0.B.stage0.layer0.mb0
  reduce_scatter.stage0.layer0.0.B.stage0.layer0.mb1
}
communicator group.cluster.no2 group (cluster[]) over dp stream sum.cluster #8 {
  all_reduce.line.loss.0.cluster
  all_reduce.norm.dp.cluster
}
communicator group.cluster.no3 group (cluster[]) over dp stream gather.cluster #8 {
  all_gather.stage0.layer0.0.F.stage0.layer0.mb0
  all_gather.stage0.layer0.0.F.stage0.layer0.mb1
}
role pp0 at cluster[pp: 0] arena 704 live 704 {
  buffer %parameters.stage0.layer0.0 = parameters bucket stage0.layer0.0 at 0 bytes 64
  buffer %gradients.stage0.layer0.0 = gradients bucket stage0.layer0.0 at 64 bytes 64
  buffer %optimizer.stage0.layer0.0 = optimizer bucket stage0.layer0.0 at 128 bytes 128
  buffer %scalars = scalars at 256 bytes 64
  buffer %load.x.mb0.cluster:0 = activations at 320 bytes 48
  buffer %all_gather.stage0.layer0.0.F.stage0.layer0.mb0:0 = gathered at 384 bytes 128
  buffer %F.stage0.layer0.mb0:0 = activations at 512 bytes 48
  buffer %load.target.mb0.cluster:0 = activations at 384 bytes 48
  buffer %F.stage0.mb0:0 = activations at 448 bytes 48
  buffer %F.stage0.mb0:1 = activations at 576 bytes 8
  buffer %B.stage0.mb0:0 = activations at 384 bytes 48
  buffer %accumulate.stage0.layer0.0.B.stage0.layer0.mb0:0 = unreduced at 448 bytes 128
  buffer %load.x.mb1.cluster:0 = activations at 320 bytes 48
  buffer %all_gather.stage0.layer0.0.F.stage0.layer0.mb1:0 = gathered at 384 bytes 128
  buffer %F.stage0.layer0.mb1:0 = activations at 512 bytes 48
  buffer %load.target.mb1.cluster:0 = activations at 384 bytes 48
  buffer %F.stage0.mb1:0 = activations at 448 bytes 48
  buffer %F.stage0.mb1:1 = activations at 640 bytes 8
  buffer %B.stage0.mb1:0 = activations at 384 bytes 48
  buffer %accumulate.stage0.layer0.0.B.stage0.layer0.mb1:0 = unreduced at 448 bytes 128
  buffer %sum_squares.stage0.layer0.0:0 = activations at 320 bytes 8
  buffer %norm.cluster:0 = activations at 384 bytes 16
  load.x.mb0.cluster on compute writes (%load.x.mb0.cluster:0)
  all_gather.stage0.layer0.0.F.stage0.layer0.mb0 on gather.cluster via group.cluster.no3 after previous report.norm reads (%parameters.stage0.layer0.0) writes (%all_gather.stage0.layer0.0.F.stage0.layer0.mb0:0)
  F.stage0.layer0.mb0 on compute after all_gather.stage0.layer0.0.F.stage0.layer0.mb0 reads (%load.x.mb0.cluster:0, %all_gather.stage0.layer0.0.F.stage0.layer0.mb0:0) writes (%F.stage0.layer0.mb0:0)
  load.target.mb0.cluster on compute writes (%load.target.mb0.cluster:0)
  F.stage0.mb0 on compute reads (%load.target.mb0.cluster:0, %F.stage0.layer0.mb0:0) writes (%F.stage0.mb0:0, %F.stage0.mb0:1)
  B.stage0.mb0 on compute reads (%F.stage0.mb0:0) writes (%B.stage0.mb0:0)
  B.stage0.layer0.mb0 on compute reads (%load.x.mb0.cluster:0, %B.stage0.mb0:0) writes (%accumulate.stage0.layer0.0.B.stage0.layer0.mb0:0)
  reduce_scatter.stage0.layer0.0.B.stage0.layer0.mb0 on reduce.cluster via group.cluster after B.stage0.layer0.mb0 reads (%accumulate.stage0.layer0.0.B.stage0.layer0.mb0:0) writes (%gradients.stage0.layer0.0)
  load.x.mb1.cluster on compute writes (%load.x.mb1.cluster:0)
  all_gather.stage0.layer0.0.F.stage0.layer0.mb1 on gather.cluster via group.cluster.no3 after reduce_scatter.stage0.layer0.0.B.stage0.layer0.mb0 reads (%parameters.stage0.layer0.0) writes (%all_gather.stage0.layer0.0.F.stage0.layer0.mb1:0)
  F.stage0.layer0.mb1 on compute after all_gather.stage0.layer0.0.F.stage0.layer0.mb1 reads (%load.x.mb1.cluster:0, %all_gather.stage0.layer0.0.F.stage0.layer0.mb1:0) writes (%F.stage0.layer0.mb1:0)
  load.target.mb1.cluster on compute writes (%load.target.mb1.cluster:0)
  F.stage0.mb1 on compute reads (%load.target.mb1.cluster:0, %F.stage0.layer0.mb1:0) writes (%F.stage0.mb1:0, %F.stage0.mb1:1)
  all_reduce.line.loss.0.cluster on sum.cluster via group.cluster.no2 after F.stage0.mb1 reads (%F.stage0.mb0:1, %F.stage0.mb1:1) writes (%F.stage0.mb0:1, %F.stage0.mb1:1)
  B.stage0.mb1 on compute reads (%F.stage0.mb1:0) writes (%B.stage0.mb1:0)
  B.stage0.layer0.mb1 on compute reads (%load.x.mb1.cluster:0, %B.stage0.mb1:0) writes (%accumulate.stage0.layer0.0.B.stage0.layer0.mb1:0)
  reduce_scatter.stage0.layer0.0.B.stage0.layer0.mb1 on reduce.cluster via group.cluster after B.stage0.layer0.mb1 reads (%accumulate.stage0.layer0.0.B.stage0.layer0.mb1:0) writes (+%gradients.stage0.layer0.0)
  report.line.loss.0 on compute after all_reduce.line.loss.0.cluster reads (%F.stage0.mb0:1, %F.stage0.mb1:1)
  sum_squares.stage0.layer0.0 on compute after reduce_scatter.stage0.layer0.0.B.stage0.layer0.mb1 reads (%gradients.stage0.layer0.0) writes (%sum_squares.stage0.layer0.0:0)
  update.stage0.layer0.0 on compute reads (%gradients.stage0.layer0.0) writes (%parameters.stage0.layer0.0)
  all_reduce.norm.dp.cluster on sum.cluster via group.cluster.no2 after sum_squares.stage0.layer0.0 reads (%sum_squares.stage0.layer0.0:0) writes (%sum_squares.stage0.layer0.0:0)
  norm.cluster on compute after all_reduce.norm.dp.cluster reads (%sum_squares.stage0.layer0.0:0) writes (%norm.cluster:0)
  report.norm on compute reads (%norm.cluster:0)
}
locations {
  1 "sample.pipe":2:1-2:9
  2 "sample.pipe":3:1-3:9
  3 "sample.pipe":1:1-1:9
  4 "sample.pipe":5:1-5:9
  5 "model.pipe":2:1-2:9
  6 "model.pipe":1:1-1:9
  7 "model.pipe":3:1-3:9
  8 "sample.pipe":7:1-7:9
  9 "sample.pipe":9:1-9:9
  10 "sample.pipe":4:1-4:9
  11 "sample.pipe":6:1-6:9
  12 "sample.pipe":10:1-10:9
  13 "sample.pipe":11:1-11:9
  14 "sample.pipe":12:1-12:9
  15 "sample.pipe":13:1-13:9
  16 "sample.pipe":8:1-8:9
}
