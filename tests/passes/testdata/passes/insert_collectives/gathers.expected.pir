pir 2 ordered
train "" #1 {
  steps 3
  dtype f64
  seed 0
  optim adamw(lr: constant(0.01, warmup: 0, floor: 0), beta1: 0.9, beta2: 0.999, eps: 1e-08, weight_decay: 0.1) #2
}
mesh cluster(pp: 1, dp: 2) #3
stages stage
split batch into mb: 3 #4
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
  split batch into mb: 3 #4
  place stage[0] #11 on cluster[pp: 0] #11
  replicate model #8 over dp with zero: 3 #8
  order {
    rank cluster[pp: 0] #9 {
      F stage[0] mb[0] #12
      F stage[0] mb[1] #13
      F stage[0] mb[2] .gather #14
      F stage[0] mb[2] #15
      B stage[0] mb[0] #16
      B stage[0] mb[1] #17
      B stage[0] mb[2] #18
    }
  } #19
}
body @stage0.layer0.F(%x: data f64[batch: 4*, in: 2]<dp: batch> input x,
    %layer.0.w: param f64[in: 2, out: 2] param layer.0.w)
    -> (%layer.0.contract: data f64[batch: 4*, out: 2]<dp: batch>) {
  %x = port f64[batch: 4*, in: 2]<dp: batch>
  %layer.0.w = port f64[in: 2, out: 2]
  %layer.0.contract = contract(%x, %layer.0.w) {dims: [in]} : f64[batch: 4*, out: 2]<dp: batch> @F #5
}
body @stage0.layer0.B(%x: data f64[batch: 4*, in: 2]<dp: batch> input x,
    %d.sub.mul: data f64[batch: 4*, out: 2]<dp: batch>)
    -> (%d.layer.0.w.contract: grad f64[in: 2, out: 2]<dp: +> param layer.0.w as layer.0.w) {
  %x = port f64[batch: 4*, in: 2]<dp: batch>
  %d.sub.mul = port f64[batch: 4*, out: 2]<dp: batch>
  %d.layer.0.w.contract = contract(%x, %d.sub.mul) {dims: [batch]} : f64[in: 2, out: 2]<dp: +> @BW #5
}
body @stage0.F(%target: data f64[batch: 4*, out: 2]<dp: batch> input target,
    %layer.0.contract: data f64[batch: 4*, out: 2]<dp: batch>)
    -> (%sub: saved f64[batch: 4*, out: 2]<dp: batch>,
    %sum: loss_sum f64[]<dp: +> loss line.loss.0) {
  %target = port f64[batch: 4*, out: 2]<dp: batch>
  %layer.0.contract = port f64[batch: 4*, out: 2]<dp: batch>
  %sub = sub(%layer.0.contract, %target) : f64[batch: 4*, out: 2]<dp: batch> @F #7
  %square = square(%sub) : f64[batch: 4*, out: 2]<dp: batch> @F #7
  %sum = sum(%square) {dims: [batch, out]} : f64[]<dp: +> @F #7
}
body @stage0.B(%sub: saved f64[batch: 4*, out: 2]<dp: batch>)
    -> (%d.sub.mul: data f64[batch: 4*, out: 2]<dp: batch>) {
  %sub = port f64[batch: 4*, out: 2]<dp: batch>
  %d.square.fill = fill() {scalar: 0.041666666666666664, shape: f64[batch: 4*, out: 2]} : f64[batch: 4*, out: 2]<dp: batch> @BI #7
  %d.sub.scale = scale(%d.square.fill) {scalar: 2} : f64[batch: 4*, out: 2]<dp: batch> @BI #7
  %d.sub.mul = mul(%d.sub.scale, %sub) : f64[batch: 4*, out: 2]<dp: batch> @BI #7
}
graph {
  load.x.mb0.cluster = load x [mb: 0] on cluster[] <dp: batch> stream compute #6
  all_gather.stage0.layer0.0.F.stage0.layer0.mb0 = all_gather bucket stage0.layer0.0 F stage0.layer0 [mb: 0] (param update.stage0.layer0.0) over dp on cluster[] stream gather.cluster #8
  F.stage0.layer0.mb0 = F stage0.layer0 [mb: 0] @stage0.layer0.F (load.x.mb0.cluster, all_gather.stage0.layer0.0.F.stage0.layer0.mb0) on cluster[] stream compute #12
  load.target.mb0.cluster = load target [mb: 0] on cluster[] <dp: batch> stream compute #7
  F.stage0.mb0 = F stage0 [mb: 0] @stage0.F (load.target.mb0.cluster, F.stage0.layer0.mb0) on cluster[] stream compute after F.stage0.layer0.mb0 #12
  load.x.mb1.cluster = load x [mb: 1] on cluster[] <dp: batch> stream compute #6
  all_gather.stage0.layer0.0.F.stage0.layer0.mb1 = all_gather bucket stage0.layer0.0 F stage0.layer0 [mb: 1] (param update.stage0.layer0.0) over dp on cluster[] stream gather.cluster #8
  F.stage0.layer0.mb1 = F stage0.layer0 [mb: 1] @stage0.layer0.F (load.x.mb1.cluster, all_gather.stage0.layer0.0.F.stage0.layer0.mb1) on cluster[] stream compute after F.stage0.mb0 #13
  load.target.mb1.cluster = load target [mb: 1] on cluster[] <dp: batch> stream compute #7
  F.stage0.mb1 = F stage0 [mb: 1] @stage0.F (load.target.mb1.cluster, F.stage0.layer0.mb1) on cluster[] stream compute after F.stage0.layer0.mb1 #13
  all_gather.stage0.layer0.0.F.stage0.layer0.mb2 = all_gather bucket stage0.layer0.0 F stage0.layer0 [mb: 2] (param update.stage0.layer0.0) over dp at #8 on cluster[] stream gather.cluster after F.stage0.mb1 #14
  load.x.mb2.cluster = load x [mb: 2] on cluster[] <dp: batch> stream compute #6
  F.stage0.layer0.mb2 = F stage0.layer0 [mb: 2] @stage0.layer0.F (load.x.mb2.cluster, all_gather.stage0.layer0.0.F.stage0.layer0.mb2) on cluster[] stream compute after F.stage0.mb1 #15
  load.target.mb2.cluster = load target [mb: 2] on cluster[] <dp: batch> stream compute #7
  F.stage0.mb2 = F stage0 [mb: 2] @stage0.F (load.target.mb2.cluster, F.stage0.layer0.mb2) on cluster[] stream compute after F.stage0.layer0.mb2 #15
  all_reduce.line.loss.0.cluster = all_reduce loss line.loss.0 (F.stage0.mb0:1, F.stage0.mb1:1, F.stage0.mb2:1) over dp on cluster[] stream sum.cluster #8
  B.stage0.mb0 = B stage0 [mb: 0] @stage0.B (F.stage0.mb0) on cluster[] stream compute after F.stage0.mb2 #16
  B.stage0.layer0.mb0 = B stage0.layer0 [mb: 0] @stage0.layer0.B (load.x.mb0.cluster, B.stage0.mb0) on cluster[] stream compute after B.stage0.mb0 #16
  accumulate.stage0.layer0.0.B.stage0.layer0.mb0 = accumulate bucket stage0.layer0.0 B stage0.layer0 [mb: 0] (grad B.stage0.layer0.mb0) on cluster[] #8
  reduce_scatter.stage0.layer0.0.B.stage0.layer0.mb0 = reduce_scatter bucket stage0.layer0.0 B stage0.layer0 [mb: 0] (accumulate.stage0.layer0.0.B.stage0.layer0.mb0) over dp on cluster[] stream reduce.cluster #8
  B.stage0.mb1 = B stage0 [mb: 1] @stage0.B (F.stage0.mb1) on cluster[] stream compute after B.stage0.layer0.mb0 #17
  B.stage0.layer0.mb1 = B stage0.layer0 [mb: 1] @stage0.layer0.B (load.x.mb1.cluster, B.stage0.mb1) on cluster[] stream compute after B.stage0.mb1 #17
  accumulate.stage0.layer0.0.B.stage0.layer0.mb1 = accumulate bucket stage0.layer0.0 B stage0.layer0 [mb: 1] (grad B.stage0.layer0.mb1) on cluster[] #8
  reduce_scatter.stage0.layer0.0.B.stage0.layer0.mb1 = reduce_scatter bucket stage0.layer0.0 B stage0.layer0 [mb: 1] (accumulate.stage0.layer0.0.B.stage0.layer0.mb1) over dp on cluster[] stream reduce.cluster #8
  B.stage0.mb2 = B stage0 [mb: 2] @stage0.B (F.stage0.mb2) on cluster[] stream compute after B.stage0.layer0.mb1 #18
  B.stage0.layer0.mb2 = B stage0.layer0 [mb: 2] @stage0.layer0.B (load.x.mb2.cluster, B.stage0.mb2) on cluster[] stream compute after B.stage0.mb2 #18
  accumulate.stage0.layer0.0.B.stage0.layer0.mb2 = accumulate bucket stage0.layer0.0 B stage0.layer0 [mb: 2] (grad B.stage0.layer0.mb2) on cluster[] #8
  reduce_scatter.stage0.layer0.0.B.stage0.layer0.mb2 = reduce_scatter bucket stage0.layer0.0 B stage0.layer0 [mb: 2] (accumulate.stage0.layer0.0.B.stage0.layer0.mb2) over dp on cluster[] stream reduce.cluster #8
  accumulate.stage0.layer0.0 = accumulate bucket stage0.layer0.0 (grad reduce_scatter.stage0.layer0.0.B.stage0.layer0.mb0 + reduce_scatter.stage0.layer0.0.B.stage0.layer0.mb1 + reduce_scatter.stage0.layer0.0.B.stage0.layer0.mb2) on cluster[] #8
  report.line.loss.0 = report loss line.loss.0 (all_reduce.line.loss.0.cluster, all_reduce.line.loss.0.cluster:1, all_reduce.line.loss.0.cluster:2) on cluster[] stream compute #7
  sum_squares.stage0.layer0.0 = sum_squares bucket stage0.layer0.0 (accumulate.stage0.layer0.0) on cluster[] stream compute #8
  update.stage0.layer0.0 = update bucket stage0.layer0.0 (accumulate.stage0.layer0.0) on cluster[] stream compute #8
  all_reduce.norm.dp.cluster = all_reduce (sum_squares.stage0.layer0.0) over dp on cluster[] stream sum.cluster #8
  norm.cluster = norm (all_reduce.norm.dp.cluster) on cluster[] stream compute #2
  report.norm = report norm (norm.cluster) on cluster[] stream compute #2
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
  16 "sample.pipe":14:1-14:9
  17 "sample.pipe":15:1-15:9
  18 "sample.pipe":16:1-16:9
  19 "sample.pipe":8:1-8:9
}
