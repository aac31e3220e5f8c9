// Comments and spaces are free.
tensor mlp {
  %x = input f32[batch: 4*, dim: 8] "x"   // data
  %mlp.0.up = weight f32[dim: 8, hidden: 16] "mlp.0.up" normal(0.02)
  %mlp.0.contract = contract(%x, %mlp.0.up) {dims: [dim]} : f32[batch: 4*, hidden: 16] @F region mlp[0] #1
  %mlp.0.sum = sum(%mlp.0.contract)
    {dims: [batch, hidden]} : f32[] @F region mlp[0]
  loss "mlp.loss.0" elements %mlp.0.contract sum %mlp.0.sum count 64
  %d.mlp.0.contract.fill = fill() {shape: f32[batch: 4*, hidden: 16], scalar: 0.015625} : f32[batch: 4*, hidden: 16] @BI region mlp[0] of %mlp.0.sum
  %d.mlp.0.up.contract = contract(%x, %d.mlp.0.contract.fill) {dims: [batch]} : f32[dim: 8, hidden: 16] @BW region mlp[0] of %mlp.0.contract
  grad "mlp.0.up" %d.mlp.0.up.contract
}
locations {
  1 "a.pipe":3:5-3:12
}
