pir 1 ordered forward_only
train "" loc("sample.pipe":2:1-2:9) {
  steps 3
  dtype f64
  seed 0
  optim adamw(lr: constant(0.01, warmup: 0, floor: 0), beta1: 0.9, beta2: 0.999, eps: 1e-08, weight_decay: 0.1) loc("sample.pipe":3:1-3:9)
}
mesh cluster(pp: 2, dp: 2) loc("sample.pipe":1:1-1:9)
stages stage
split batch into mb: 2 loc("sample.pipe":5:1-5:9)
param layer.0.up: f64[dim: 2, hidden: 3] = normal(0.3) loc("model.pipe":2:1-2:9)
param layer.0.down: f64[hidden: 3, dim: 2] = normal(0.3) loc("model.pipe":2:1-2:9)
param layer.1.up: f64[dim: 2, hidden: 3] = normal(0.3) loc("model.pipe":4:1-4:9)
param layer.1.down: f64[hidden: 3, dim: 2] = normal(0.3) loc("model.pipe":4:1-4:9)
input x: f64[batch: 8*, dim: 2] loc("model.pipe":1:1-1:9)
input target: f64[batch: 8*, dim: 2] loc("model.pipe":1:1-1:9)
loss mlp.loss.0: 16 loc("model.pipe":5:1-5:9)
chunk stage0 of stage[0] F @stage0.F loc("model.pipe":2:1-2:9)
chunk stage1 of stage[1] F @stage1.F loc("model.pipe":4:1-4:9)
bucket stage0.0 (layer.0.up, layer.0.down) on cluster[pp: 0] loc("model.pipe":2:1-2:9)
bucket stage1.0 (layer.1.up, layer.1.down) on cluster[pp: 1] loc("model.pipe":4:1-4:9)
stream compute
stream act.pp0.to.pp1
stream sum.pp1
directives {
  partition model into stage: 2 loc("sample.pipe":4:1-4:9)
  split batch into mb: 2 loc("sample.pipe":5:1-5:9)
  place stage[0] loc("sample.pipe":6:1-6:9) on cluster[pp: 0] loc("sample.pipe":6:1-6:9)
  place stage[1] loc("sample.pipe":7:1-7:9) on cluster[pp: 1] loc("sample.pipe":7:1-7:9)
  replicate model loc("sample.pipe":8:1-8:9) over dp with zero: 0 loc("sample.pipe":8:1-8:9)
}
body @stage0.F(%x: data f64[batch: 2*, dim: 2]<dp: batch> input x,
    %layer.0.up: param f64[dim: 2, hidden: 3] param layer.0.up,
    %layer.0.down: param f64[hidden: 3, dim: 2] param layer.0.down)
    -> (%layer.0.add: data f64[batch: 2*, dim: 2]<dp: batch>) {
  %x = port f64[batch: 2*, dim: 2]<dp: batch>
  %layer.0.up = port f64[dim: 2, hidden: 3]
  %layer.0.down = port f64[hidden: 3, dim: 2]
  %layer.0.contract = contract(%x, %layer.0.up) {dims: [dim]} : f64[batch: 2*, hidden: 3]<dp: batch> @F loc("model.pipe":2:1-2:9)
  %layer.0.gelu = gelu(%layer.0.contract) : f64[batch: 2*, hidden: 3]<dp: batch> @F loc("model.pipe":2:1-2:9)
  %layer.0.contract.1 = contract(%layer.0.gelu, %layer.0.down) {dims: [hidden]} : f64[batch: 2*, dim: 2]<dp: batch> @F loc("model.pipe":2:1-2:9)
  %layer.0.add = add(%x, %layer.0.contract.1) : f64[batch: 2*, dim: 2]<dp: batch> @F loc("model.pipe":2:1-2:9)
}
body @stage1.F(%target: data f64[batch: 2*, dim: 2]<dp: batch> input target,
    %layer.0.add: data f64[batch: 2*, dim: 2]<dp: batch>,
    %layer.1.up: param f64[dim: 2, hidden: 3] param layer.1.up,
    %layer.1.down: param f64[hidden: 3, dim: 2] param layer.1.down)
    -> (%sum: loss_sum f64[]<dp: +> loss mlp.loss.0) {
  %target = port f64[batch: 2*, dim: 2]<dp: batch>
  %layer.0.add = port f64[batch: 2*, dim: 2]<dp: batch>
  %layer.1.up = port f64[dim: 2, hidden: 3]
  %layer.1.down = port f64[hidden: 3, dim: 2]
  %layer.1.contract = contract(%layer.0.add, %layer.1.up) {dims: [dim]} : f64[batch: 2*, hidden: 3]<dp: batch> @F loc("model.pipe":4:1-4:9)
  %layer.1.gelu = gelu(%layer.1.contract) : f64[batch: 2*, hidden: 3]<dp: batch> @F loc("model.pipe":4:1-4:9)
  %layer.1.contract.1 = contract(%layer.1.gelu, %layer.1.down) {dims: [hidden]} : f64[batch: 2*, dim: 2]<dp: batch> @F loc("model.pipe":4:1-4:9)
  %layer.1.add = add(%layer.0.add, %layer.1.contract.1) : f64[batch: 2*, dim: 2]<dp: batch> @F loc("model.pipe":4:1-4:9)
  %sub = sub(%layer.1.add, %target) : f64[batch: 2*, dim: 2]<dp: batch> @F loc("model.pipe":5:1-5:9)
  %square = square(%sub) : f64[batch: 2*, dim: 2]<dp: batch> @F loc("model.pipe":5:1-5:9)
  %sum = sum(%square) {dims: [batch, dim]} : f64[]<dp: +> @F loc("model.pipe":5:1-5:9)
}
graph {
  load.x.mb0.pp0 = load x [mb: 0] on cluster[pp: 0] <dp: batch> stream compute loc("model.pipe":1:1-1:9)
  F.stage0.mb0 = F stage0 [mb: 0] @stage0.F (load.x.mb0.pp0, param _:0, param _:1) on cluster[pp: 0] stream compute loc("model.pipe":2:1-2:9)
  send.F.stage0.mb0.pp1 = send F stage0 [mb: 0] (F.stage0.mb0) to recv.F.stage0.mb0.pp1 on cluster[pp: 0] stream act.pp0.to.pp1 loc("model.pipe":2:1-2:9)
  recv.F.stage0.mb0.pp1 = recv F stage1 [mb: 0] from send.F.stage0.mb0.pp1 on cluster[pp: 1] stream act.pp0.to.pp1 loc("model.pipe":2:1-2:9)
  load.x.mb1.pp0 = load x [mb: 1] on cluster[pp: 0] <dp: batch> stream compute loc("model.pipe":1:1-1:9)
  load.target.mb0.pp1 = load target [mb: 0] on cluster[pp: 1] <dp: batch> stream compute loc("model.pipe":1:1-1:9)
  F.stage0.mb1 = F stage0 [mb: 1] @stage0.F (load.x.mb1.pp0, param _:0, param _:1) on cluster[pp: 0] stream compute after F.stage0.mb0 loc("model.pipe":2:1-2:9)
  F.stage1.mb0 = F stage1 [mb: 0] @stage1.F (load.target.mb0.pp1, recv.F.stage0.mb0.pp1, param _:0, param _:1) on cluster[pp: 1] stream compute loc("model.pipe":4:1-4:9)
  send.F.stage0.mb1.pp1 = send F stage0 [mb: 1] (F.stage0.mb1) to recv.F.stage0.mb1.pp1 on cluster[pp: 0] stream act.pp0.to.pp1 loc("model.pipe":2:1-2:9)
  recv.F.stage0.mb1.pp1 = recv F stage1 [mb: 1] from send.F.stage0.mb1.pp1 on cluster[pp: 1] stream act.pp0.to.pp1 loc("model.pipe":2:1-2:9)
  load.target.mb1.pp1 = load target [mb: 1] on cluster[pp: 1] <dp: batch> stream compute loc("model.pipe":1:1-1:9)
  F.stage1.mb1 = F stage1 [mb: 1] @stage1.F (load.target.mb1.pp1, recv.F.stage0.mb1.pp1, param _:0, param _:1) on cluster[pp: 1] stream compute after F.stage1.mb0 loc("model.pipe":4:1-4:9)
  all_reduce.mlp.loss.0.pp1 = all_reduce loss mlp.loss.0 (F.stage1.mb0, F.stage1.mb1) over dp on cluster[pp: 1] stream sum.pp1 loc("model.pipe":5:1-5:9)
  report.mlp.loss.0 = report loss mlp.loss.0 (all_reduce.mlp.loss.0.pp1, all_reduce.mlp.loss.0.pp1:1) on cluster[pp: 1] stream compute loc("model.pipe":5:1-5:9)
}
