// Three regions on two replicas, parameters in shares: those of the second region are frozen, gathered and never reduced.
pir 2 planned
train small #1 {
  steps 3
  dtype f32
  seed 0
  data synthetic(classes: 0, batch: 8, dim: 5) #2
  optim sgd(lr: constant(0.1, warmup: 0, floor: 0), momentum: 0, weight_decay: 0) #3
}
mesh grid(dp: 2) #4
split batch into mb: 2 #5
param first.0.w: f32[dim: 5, e: 5] = normal(0.2) rate 0.5 #6
param middle.0.w: f32[dim: 5, e: 5] = normal(0.2) frozen #7
param last.0.gain: f32[dim: 5] = ones(1) rate 2 decay 0 #8
input x: f32[batch: 8*, dim: 5] #9
loss loss.0: 40 #10
chunk first0 of first[0] F @first0.F B @first0.B #11
chunk middle0 of middle[0] F @middle0.F B @middle0.B #12
chunk last0 of last[0] F @last0.F B @last0.B #13
chunk model of model F @model.F B @model.B #14
bucket first0.0 (first.0.w) on grid[] unreduced <dp: +> state <dp: flat> gradients <dp: flat> parameters <dp: flat> by unit prefetch 1 #6
bucket last0.0 (last.0.gain) on grid[] unreduced <dp: +> state <dp: flat> gradients <dp: flat> parameters <dp: flat> by unit prefetch 1 #8
bucket middle0.0 (middle.0.w) on grid[] parameters <dp: flat> by unit prefetch 1 #7
stream compute
stream reduce.grid
stream sum.grid
stream gather.grid
body @first0.F(%x: data f32[batch: 4*, dim: 5]<dp: batch> input x,
    %first.0.w: param f32[dim: 5, e: 5] param first.0.w)
    -> (%first.0.rename.1: data f32[batch: 4*, dim: 5]<dp: batch>) {
  %x = port f32[batch: 4*, dim: 5]<dp: batch>
  %first.0.w = port f32[dim: 5, e: 5]
  %first.0.contract = contract(%x, %first.0.w) {dims: [dim]} : f32[batch: 4*, e: 5]<dp: batch> @F #11
  %first.0.rename = rename(%first.0.contract) {dims: [e], dims2: [dim]} : f32[batch: 4*, dim: 5]<dp: batch> @F #15
  %first.0.rename.1 = broadcast(%first.0.rename) {shape: f32[batch: 4*, dim: 5]} : f32[batch: 4*, dim: 5]<dp: batch> @F
}
body @first0.B(%x: data f32[batch: 4*, dim: 5]<dp: batch> input x,
    %d.first.0.rename.contract: data f32[batch: 4*, dim: 5]<dp: batch>)
    -> (%d.first.0.w.contract: grad f32[dim: 5, e: 5]<dp: +> param first.0.w as first.0.w) {
  %x = port f32[batch: 4*, dim: 5]<dp: batch>
  %d.first.0.rename.contract = port f32[batch: 4*, dim: 5]<dp: batch>
  %d.first.0.contract.rename = rename(%d.first.0.rename.contract) {dims: [dim], dims2: [e]} : f32[batch: 4*, e: 5]<dp: batch> @BI #15
  %d.first.0.w.contract = contract(%x, %d.first.0.contract.rename) {dims: [batch]} : f32[dim: 5, e: 5]<dp: +> @BW #11
}
body @middle0.F(%first.0.rename: data f32[batch: 4*, dim: 5]<dp: batch> as first.0.rename.1,
    %middle.0.w: param f32[dim: 5, e: 5] param middle.0.w)
    -> (%middle.0.rename.1: data f32[batch: 4*, dim: 5]<dp: batch>) {
  %first.0.rename = port f32[batch: 4*, dim: 5]<dp: batch>
  %middle.0.w = port f32[dim: 5, e: 5]
  %middle.0.contract = contract(%first.0.rename, %middle.0.w) {dims: [dim]} : f32[batch: 4*, e: 5]<dp: batch> @F #12
  %middle.0.rename = rename(%middle.0.contract) {dims: [e], dims2: [dim]} : f32[batch: 4*, dim: 5]<dp: batch> @F #16
  %middle.0.rename.1 = broadcast(%middle.0.rename) {shape: f32[batch: 4*, dim: 5]} : f32[batch: 4*, dim: 5]<dp: batch> @F
}
body @middle0.B(%d.middle.0.rename.mul: data f32[batch: 4*, dim: 5]<dp: batch>,
    %middle.0.w: param f32[dim: 5, e: 5] param middle.0.w)
    -> (%d.first.0.rename.contract: data f32[batch: 4*, dim: 5]<dp: batch>) {
  %d.middle.0.rename.mul = port f32[batch: 4*, dim: 5]<dp: batch>
  %middle.0.w = port f32[dim: 5, e: 5]
  %d.middle.0.contract.rename = rename(%d.middle.0.rename.mul) {dims: [dim], dims2: [e]} : f32[batch: 4*, e: 5]<dp: batch> @BI #16
  %d.first.0.rename.contract = contract(%d.middle.0.contract.rename, %middle.0.w) {dims: [e]} : f32[batch: 4*, dim: 5]<dp: batch> @BI #12
}
body @last0.F(%middle.0.rename: data f32[batch: 4*, dim: 5]<dp: batch> as middle.0.rename.1,
    %last.0.gain: param f32[dim: 5] param last.0.gain)
    -> (%last.0.mul: data f32[batch: 4*, dim: 5]<dp: batch>) {
  %middle.0.rename = port f32[batch: 4*, dim: 5]<dp: batch>
  %last.0.gain = port f32[dim: 5]
  %last.0.mul = mul(%middle.0.rename, %last.0.gain) : f32[batch: 4*, dim: 5]<dp: batch> @F #13
}
body @last0.B(%middle.0.rename: saved f32[batch: 4*, dim: 5]<dp: batch> as middle.0.rename.1,
    %d.last.0.mul.mul: data f32[batch: 4*, dim: 5]<dp: batch>,
    %last.0.gain: param f32[dim: 5] param last.0.gain)
    -> (%d.middle.0.rename.mul: data f32[batch: 4*, dim: 5]<dp: batch>,
    %d.last.0.gain.sum: grad f32[dim: 5]<dp: +> param last.0.gain as last.0.gain) {
  %middle.0.rename = port f32[batch: 4*, dim: 5]<dp: batch>
  %d.last.0.mul.mul = port f32[batch: 4*, dim: 5]<dp: batch>
  %last.0.gain = port f32[dim: 5]
  %d.middle.0.rename.mul = mul(%d.last.0.mul.mul, %last.0.gain) : f32[batch: 4*, dim: 5]<dp: batch> @BI #13
  %d.last.0.gain.mul = mul(%d.last.0.mul.mul, %middle.0.rename) : f32[batch: 4*, dim: 5]<dp: batch> @BW #13
  %d.last.0.gain.sum = sum(%d.last.0.gain.mul) {dims: [batch]} : f32[dim: 5]<dp: +> @BW #13
}
body @model.F(%last.0.mul: data f32[batch: 4*, dim: 5]<dp: batch>)
    -> (%sum: loss_sum f32[]<dp: +> loss loss.0) {
  %last.0.mul = port f32[batch: 4*, dim: 5]<dp: batch>
  %square = square(%last.0.mul) : f32[batch: 4*, dim: 5]<dp: batch> @F #14
  %sum = sum(%square) {dims: [batch, dim]} : f32[]<dp: +> @F #10
}
body @model.B(%last.0.mul: saved f32[batch: 4*, dim: 5]<dp: batch>)
    -> (%d.last.0.mul.mul: data f32[batch: 4*, dim: 5]<dp: batch>) {
  %last.0.mul = port f32[batch: 4*, dim: 5]<dp: batch>
  %d.square.fill = fill() {scalar: 0.025, shape: f32[batch: 4*, dim: 5]} : f32[batch: 4*, dim: 5]<dp: batch> @BI #10
  %d.last.0.mul.scale = scale(%d.square.fill) {scalar: 2} : f32[batch: 4*, dim: 5]<dp: batch> @BI #14
  %d.last.0.mul.mul = mul(%d.last.0.mul.scale, %last.0.mul) : f32[batch: 4*, dim: 5]<dp: batch> @BI #14
}
graph {
  all_gather.first0.0.F.first0.mb0 = all_gather bucket first0.0 F first0 [mb: 0] (param update.first0.0) over dp on grid[] stream gather.grid #6
  load.x.mb0.grid = load x [mb: 0] on grid[] <dp: batch> stream compute #9
  all_gather.middle0.0.F.middle0.mb0 = all_gather bucket middle0.0 F middle0 [mb: 0] (param _:0) over dp on grid[] stream gather.grid #7
  F.first0.mb0 = F first0 [mb: 0] @first0.F (load.x.mb0.grid, all_gather.first0.0.F.first0.mb0) on grid[] stream compute #11
  all_gather.last0.0.F.last0.mb0 = all_gather bucket last0.0 F last0 [mb: 0] (param update.last0.0) over dp on grid[] stream gather.grid #8
  F.middle0.mb0 = F middle0 [mb: 0] @middle0.F (F.first0.mb0, all_gather.middle0.0.F.middle0.mb0) on grid[] stream compute after F.first0.mb0 #12
  F.last0.mb0 = F last0 [mb: 0] @last0.F (F.middle0.mb0, all_gather.last0.0.F.last0.mb0) on grid[] stream compute after F.middle0.mb0 #13
  F.model.mb0 = F model [mb: 0] @model.F (F.last0.mb0) on grid[] stream compute after F.last0.mb0 #14
  B.model.mb0 = B model [mb: 0] @model.B (F.last0.mb0) on grid[] stream compute after F.model.mb0 #14
  all_gather.middle0.0.B.middle0.mb0 = all_gather bucket middle0.0 B middle0 [mb: 0] (param _:0) over dp on grid[] stream gather.grid #7
  B.last0.mb0 = B last0 [mb: 0] @last0.B (F.middle0.mb0, B.model.mb0, all_gather.last0.0.F.last0.mb0) on grid[] stream compute after B.model.mb0 #13
  accumulate.last0.0.B.last0.mb0 = accumulate bucket last0.0 B last0 [mb: 0] (grad B.last0.mb0:1) on grid[] #8
  reduce_scatter.last0.0.B.last0.mb0 = reduce_scatter bucket last0.0 B last0 [mb: 0] (accumulate.last0.0.B.last0.mb0) over dp on grid[] stream reduce.grid #8
  all_gather.first0.0.F.first0.mb1 = all_gather bucket first0.0 F first0 [mb: 1] (param update.first0.0) over dp on grid[] stream gather.grid #6
  B.middle0.mb0 = B middle0 [mb: 0] @middle0.B (B.last0.mb0, all_gather.middle0.0.B.middle0.mb0) on grid[] stream compute after B.last0.mb0 #12
  B.first0.mb0 = B first0 [mb: 0] @first0.B (load.x.mb0.grid, B.middle0.mb0) on grid[] stream compute after B.middle0.mb0 #11
  accumulate.first0.0.B.first0.mb0 = accumulate bucket first0.0 B first0 [mb: 0] (grad B.first0.mb0) on grid[] #6
  reduce_scatter.first0.0.B.first0.mb0 = reduce_scatter bucket first0.0 B first0 [mb: 0] (accumulate.first0.0.B.first0.mb0) over dp on grid[] stream reduce.grid #6
  load.x.mb1.grid = load x [mb: 1] on grid[] <dp: batch> stream compute #9
  all_gather.middle0.0.F.middle0.mb1 = all_gather bucket middle0.0 F middle0 [mb: 1] (param _:0) over dp on grid[] stream gather.grid #7
  F.first0.mb1 = F first0 [mb: 1] @first0.F (load.x.mb1.grid, all_gather.first0.0.F.first0.mb1) on grid[] stream compute after B.first0.mb0 #11
  all_gather.last0.0.F.last0.mb1 = all_gather bucket last0.0 F last0 [mb: 1] (param update.last0.0) over dp on grid[] stream gather.grid #8
  F.middle0.mb1 = F middle0 [mb: 1] @middle0.F (F.first0.mb1, all_gather.middle0.0.F.middle0.mb1) on grid[] stream compute after F.first0.mb1 #12
  F.last0.mb1 = F last0 [mb: 1] @last0.F (F.middle0.mb1, all_gather.last0.0.F.last0.mb1) on grid[] stream compute after F.middle0.mb1 #13
  F.model.mb1 = F model [mb: 1] @model.F (F.last0.mb1) on grid[] stream compute after F.last0.mb1 #14
  all_reduce.loss.0.grid = all_reduce loss loss.0 (F.model.mb0, F.model.mb1) over dp on grid[] stream sum.grid #10
  B.model.mb1 = B model [mb: 1] @model.B (F.last0.mb1) on grid[] stream compute after F.model.mb1 #14
  all_gather.middle0.0.B.middle0.mb1 = all_gather bucket middle0.0 B middle0 [mb: 1] (param _:0) over dp on grid[] stream gather.grid #7
  B.last0.mb1 = B last0 [mb: 1] @last0.B (F.middle0.mb1, B.model.mb1, all_gather.last0.0.F.last0.mb1) on grid[] stream compute after B.model.mb1 #13
  accumulate.last0.0.B.last0.mb1 = accumulate bucket last0.0 B last0 [mb: 1] (grad B.last0.mb1:1) on grid[] #8
  reduce_scatter.last0.0.B.last0.mb1 = reduce_scatter bucket last0.0 B last0 [mb: 1] (accumulate.last0.0.B.last0.mb1) over dp on grid[] stream reduce.grid #8
  accumulate.last0.0 = accumulate bucket last0.0 (grad reduce_scatter.last0.0.B.last0.mb0 + reduce_scatter.last0.0.B.last0.mb1) on grid[] #8
  B.middle0.mb1 = B middle0 [mb: 1] @middle0.B (B.last0.mb1, all_gather.middle0.0.B.middle0.mb1) on grid[] stream compute after B.last0.mb1 #12
  B.first0.mb1 = B first0 [mb: 1] @first0.B (load.x.mb1.grid, B.middle0.mb1) on grid[] stream compute after B.middle0.mb1 #11
  accumulate.first0.0.B.first0.mb1 = accumulate bucket first0.0 B first0 [mb: 1] (grad B.first0.mb1) on grid[] #6
  reduce_scatter.first0.0.B.first0.mb1 = reduce_scatter bucket first0.0 B first0 [mb: 1] (accumulate.first0.0.B.first0.mb1) over dp on grid[] stream reduce.grid #6
  accumulate.first0.0 = accumulate bucket first0.0 (grad reduce_scatter.first0.0.B.first0.mb0 + reduce_scatter.first0.0.B.first0.mb1) on grid[] #6
  sum_squares.last0.0 = sum_squares bucket last0.0 (accumulate.last0.0) on grid[] stream compute #8
  update.last0.0 = update bucket last0.0 (accumulate.last0.0) on grid[] stream compute #8
  report.loss.0 = report loss loss.0 (all_reduce.loss.0.grid, all_reduce.loss.0.grid:1) on grid[] stream compute #10
  sum_squares.first0.0 = sum_squares bucket first0.0 (accumulate.first0.0) on grid[] stream compute #6
  update.first0.0 = update bucket first0.0 (accumulate.first0.0) on grid[] stream compute #6
  all_reduce.norm.dp.grid = all_reduce (sum_squares.first0.0, sum_squares.last0.0) over dp on grid[] stream sum.grid #3
  norm.grid = norm (all_reduce.norm.dp.grid, all_reduce.norm.dp.grid:1) on grid[] stream compute #3
  report.norm = report norm (norm.grid) on grid[] stream compute #3
}
communicator group.grid group (grid[]) over dp stream reduce.grid #8 {
  reduce_scatter.last0.0.B.last0.mb0
  reduce_scatter.first0.0.B.first0.mb0
  reduce_scatter.last0.0.B.last0.mb1
  reduce_scatter.first0.0.B.first0.mb1
}
communicator group.grid.no2 group (grid[]) over dp stream sum.grid #10 {
  all_reduce.loss.0.grid
  all_reduce.norm.dp.grid
}
communicator group.grid.no3 group (grid[]) over dp stream gather.grid #6 {
  all_gather.first0.0.F.first0.mb0
  all_gather.middle0.0.F.middle0.mb0
  all_gather.last0.0.F.last0.mb0
  all_gather.middle0.0.B.middle0.mb0
  all_gather.first0.0.F.first0.mb1
  all_gather.middle0.0.F.middle0.mb1
  all_gather.last0.0.F.last0.mb1
  all_gather.middle0.0.B.middle0.mb1
}
role grid at grid[] arena 1152 live 1152 {
  buffer %parameters.first0.0 = parameters bucket first0.0 at 0 bytes 64
  buffer %gradients.first0.0 = gradients bucket first0.0 at 64 bytes 64
  buffer %parameters.last0.0 = parameters bucket last0.0 at 128 bytes 64
  buffer %gradients.last0.0 = gradients bucket last0.0 at 192 bytes 64
  buffer %parameters.middle0.0 = parameters bucket middle0.0 at 256 bytes 64
  buffer %scalars = scalars at 320 bytes 64
  buffer %all_gather.first0.0.F.first0.mb0:0 = gathered at 384 bytes 128
  buffer %load.x.mb0.grid:0 = activations at 512 bytes 40
  buffer %all_gather.middle0.0.F.middle0.mb0:0 = gathered at 576 bytes 128
  buffer %F.first0.mb0:0 = activations at 704 bytes 40
  buffer %workspace = workspace at 768 bytes 64
  buffer %all_gather.last0.0.F.last0.mb0:0 = gathered at 384 bytes 128
  buffer %F.middle0.mb0:0 = activations at 768 bytes 40
  buffer %workspace#2 = workspace at 832 bytes 64
  buffer %F.last0.mb0:0 = activations at 832 bytes 40
  buffer %F.model.mb0:0 = activations at 576 bytes 4
  buffer %B.model.mb0:0 = activations at 640 bytes 40
  buffer %all_gather.middle0.0.B.middle0.mb0:0 = gathered at 832 bytes 128
  buffer %B.last0.mb0:0 = activations at 704 bytes 40
  buffer %accumulate.last0.0.B.last0.mb0:0 = unreduced at 960 bytes 128
  buffer %all_gather.first0.0.F.first0.mb1:0 = gathered at 384 bytes 128
  buffer %B.middle0.mb0:0 = activations at 640 bytes 40
  buffer %accumulate.first0.0.B.first0.mb0:0 = unreduced at 704 bytes 128
  buffer %load.x.mb1.grid:0 = activations at 512 bytes 40
  buffer %all_gather.middle0.0.F.middle0.mb1:0 = gathered at 640 bytes 128
  buffer %F.first0.mb1:0 = activations at 768 bytes 40
  buffer %all_gather.last0.0.F.last0.mb1:0 = gathered at 384 bytes 128
  buffer %F.middle0.mb1:0 = activations at 832 bytes 40
  buffer %workspace#3 = workspace at 896 bytes 64
  buffer %F.last0.mb1:0 = activations at 640 bytes 40
  buffer %F.model.mb1:0 = activations at 704 bytes 4
  buffer %B.model.mb1:0 = activations at 768 bytes 40
  buffer %all_gather.middle0.0.B.middle0.mb1:0 = gathered at 896 bytes 128
  buffer %B.last0.mb1:0 = activations at 640 bytes 40
  buffer %accumulate.last0.0.B.last0.mb1:0 = unreduced at 1024 bytes 128
  buffer %B.middle0.mb1:0 = activations at 384 bytes 40
  buffer %accumulate.first0.0.B.first0.mb1:0 = unreduced at 768 bytes 128
  buffer %sum_squares.last0.0:0 = activations at 640 bytes 8
  buffer %sum_squares.first0.0:0 = activations at 384 bytes 8
  buffer %norm.grid:0 = activations at 448 bytes 16
  all_gather.first0.0.F.first0.mb0 on gather.grid via group.grid.no3 after previous report.norm reads (%parameters.first0.0) writes (%all_gather.first0.0.F.first0.mb0:0)
  load.x.mb0.grid on compute writes (%load.x.mb0.grid:0)
  all_gather.middle0.0.F.middle0.mb0 on gather.grid via group.grid.no3 reads (%parameters.middle0.0) writes (%all_gather.middle0.0.F.middle0.mb0:0)
  F.first0.mb0 on compute after all_gather.first0.0.F.first0.mb0 reads (%load.x.mb0.grid:0, %all_gather.first0.0.F.first0.mb0:0) writes (%F.first0.mb0:0) uses (%workspace)
  all_gather.last0.0.F.last0.mb0 on gather.grid via group.grid.no3 after F.first0.mb0 reads (%parameters.last0.0) writes (%all_gather.last0.0.F.last0.mb0:0)
  F.middle0.mb0 on compute after all_gather.middle0.0.F.middle0.mb0 reads (%F.first0.mb0:0, %all_gather.middle0.0.F.middle0.mb0:0) writes (%F.middle0.mb0:0) uses (%workspace#2)
  F.last0.mb0 on compute after all_gather.last0.0.F.last0.mb0 reads (%F.middle0.mb0:0, %all_gather.last0.0.F.last0.mb0:0) writes (%F.last0.mb0:0)
  F.model.mb0 on compute reads (%F.last0.mb0:0) writes (%F.model.mb0:0)
  B.model.mb0 on compute reads (%F.last0.mb0:0) writes (%B.model.mb0:0)
  all_gather.middle0.0.B.middle0.mb0 on gather.grid via group.grid.no3 after B.model.mb0 reads (%parameters.middle0.0) writes (%all_gather.middle0.0.B.middle0.mb0:0)
  B.last0.mb0 on compute reads (%F.middle0.mb0:0, %B.model.mb0:0, %all_gather.last0.0.F.last0.mb0:0) writes (%B.last0.mb0:0, %accumulate.last0.0.B.last0.mb0:0)
  reduce_scatter.last0.0.B.last0.mb0 on reduce.grid via group.grid after B.last0.mb0 reads (%accumulate.last0.0.B.last0.mb0:0) writes (%gradients.last0.0)
  all_gather.first0.0.F.first0.mb1 on gather.grid via group.grid.no3 after B.last0.mb0 reads (%parameters.first0.0) writes (%all_gather.first0.0.F.first0.mb1:0)
  B.middle0.mb0 on compute after all_gather.middle0.0.B.middle0.mb0 reads (%B.last0.mb0:0, %all_gather.middle0.0.B.middle0.mb0:0) writes (%B.middle0.mb0:0)
  B.first0.mb0 on compute reads (%load.x.mb0.grid:0, %B.middle0.mb0:0) writes (%accumulate.first0.0.B.first0.mb0:0)
  reduce_scatter.first0.0.B.first0.mb0 on reduce.grid via group.grid after B.first0.mb0 reads (%accumulate.first0.0.B.first0.mb0:0) writes (%gradients.first0.0)
  load.x.mb1.grid on compute writes (%load.x.mb1.grid:0)
  all_gather.middle0.0.F.middle0.mb1 on gather.grid via group.grid.no3 after reduce_scatter.first0.0.B.first0.mb0 reads (%parameters.middle0.0) writes (%all_gather.middle0.0.F.middle0.mb1:0)
  F.first0.mb1 on compute after reduce_scatter.first0.0.B.first0.mb0, all_gather.first0.0.F.first0.mb1 reads (%load.x.mb1.grid:0, %all_gather.first0.0.F.first0.mb1:0) writes (%F.first0.mb1:0) uses (%workspace#2)
  all_gather.last0.0.F.last0.mb1 on gather.grid via group.grid.no3 after F.first0.mb1 reads (%parameters.last0.0) writes (%all_gather.last0.0.F.last0.mb1:0)
  F.middle0.mb1 on compute after all_gather.middle0.0.F.middle0.mb1 reads (%F.first0.mb1:0, %all_gather.middle0.0.F.middle0.mb1:0) writes (%F.middle0.mb1:0) uses (%workspace#3)
  F.last0.mb1 on compute after all_gather.last0.0.F.last0.mb1 reads (%F.middle0.mb1:0, %all_gather.last0.0.F.last0.mb1:0) writes (%F.last0.mb1:0)
  F.model.mb1 on compute reads (%F.last0.mb1:0) writes (%F.model.mb1:0)
  all_reduce.loss.0.grid on sum.grid via group.grid.no2 after F.model.mb1 reads (%F.model.mb0:0, %F.model.mb1:0) writes (%F.model.mb0:0, %F.model.mb1:0)
  B.model.mb1 on compute reads (%F.last0.mb1:0) writes (%B.model.mb1:0)
  all_gather.middle0.0.B.middle0.mb1 on gather.grid via group.grid.no3 after F.middle0.mb1 reads (%parameters.middle0.0) writes (%all_gather.middle0.0.B.middle0.mb1:0)
  B.last0.mb1 on compute reads (%F.middle0.mb1:0, %B.model.mb1:0, %all_gather.last0.0.F.last0.mb1:0) writes (%B.last0.mb1:0, %accumulate.last0.0.B.last0.mb1:0)
  reduce_scatter.last0.0.B.last0.mb1 on reduce.grid via group.grid after B.last0.mb1 reads (%accumulate.last0.0.B.last0.mb1:0) writes (+%gradients.last0.0)
  B.middle0.mb1 on compute after all_gather.middle0.0.B.middle0.mb1 reads (%B.last0.mb1:0, %all_gather.middle0.0.B.middle0.mb1:0) writes (%B.middle0.mb1:0)
  B.first0.mb1 on compute reads (%load.x.mb1.grid:0, %B.middle0.mb1:0) writes (%accumulate.first0.0.B.first0.mb1:0)
  reduce_scatter.first0.0.B.first0.mb1 on reduce.grid via group.grid after B.first0.mb1 reads (%accumulate.first0.0.B.first0.mb1:0) writes (+%gradients.first0.0)
  sum_squares.last0.0 on compute after reduce_scatter.last0.0.B.last0.mb1 reads (%gradients.last0.0) writes (%sum_squares.last0.0:0)
  update.last0.0 on compute reads (%gradients.last0.0) writes (%parameters.last0.0)
  report.loss.0 on compute after all_reduce.loss.0.grid reads (%F.model.mb0:0, %F.model.mb1:0)
  sum_squares.first0.0 on compute after reduce_scatter.first0.0.B.first0.mb1 reads (%gradients.first0.0) writes (%sum_squares.first0.0:0)
  update.first0.0 on compute reads (%gradients.first0.0) writes (%parameters.first0.0)
  all_reduce.norm.dp.grid on sum.grid via group.grid.no2 after sum_squares.first0.0 reads (%sum_squares.first0.0:0, %sum_squares.last0.0:0) writes (%sum_squares.first0.0:0, %sum_squares.last0.0:0)
  norm.grid on compute after all_reduce.norm.dp.grid reads (%sum_squares.first0.0:0, %sum_squares.last0.0:0) writes (%norm.grid:0)
  report.norm on compute reads (%norm.grid:0)
}
locations {
  1 "small.pipe":18:7-18:12
  2 "small.pipe":19:12-19:39
  3 "small.pipe":20:12-20:24
  4 "small.pipe":17:1-17:17
  5 "small.pipe":24:5-24:27
  6 "small.pipe":6:12-6:26 from "small.pipe":3:29-3:37 from "small.pipe":18:15-18:20
  7 "small.pipe":10:12-10:26 from "small.pipe":3:22-3:38 from "small.pipe":18:15-18:20
  8 "small.pipe":14:12-14:21 from "small.pipe":3:17-3:39 from "small.pipe":18:15-18:20
  9 "small.pipe":2:5-2:32 from "small.pipe":18:15-18:20
  10 "small.pipe":3:5-3:40 from "small.pipe":18:15-18:20
  11 "small.pipe":7:19-7:24 from "small.pipe":3:29-3:37 from "small.pipe":18:15-18:20
  12 "small.pipe":11:19-11:24 from "small.pipe":3:22-3:38 from "small.pipe":18:15-18:20
  13 "small.pipe":15:12-15:20 from "small.pipe":3:17-3:39 from "small.pipe":18:15-18:20
  14 "small.pipe":3:10-3:40 from "small.pipe":18:15-18:20
  15 "small.pipe":7:12-7:33 from "small.pipe":3:29-3:37 from "small.pipe":18:15-18:20
  16 "small.pipe":11:12-11:33 from "small.pipe":3:22-3:38 from "small.pipe":18:15-18:20
}
