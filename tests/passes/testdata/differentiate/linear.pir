tensor linear {
  %x = input f32[batch: 4*, dim: 8] "x"
  %linear.0.w = weight f32[dim: 8, hidden: 2] "linear.0.w" normal(0.02)
  %linear.0.contract = contract(%x, %linear.0.w) {dims: [dim]} : f32[batch: 4*, hidden: 2] @F region linear[0]
  %sum = sum(%linear.0.contract) {dims: [batch, hidden]} : f32[] @F
  loss "linear.loss.0" elements %linear.0.contract sum %sum count 8
}
