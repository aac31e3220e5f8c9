tensor unreached {
  %x = input f32[batch: 4*, dim: 8] "x"
  %w = weight f32[dim: 8] "w" ones #1
  %v = weight f32[dim: 8] "v" ones
  %u = scale(%w) {scalar: 2} : f32[dim: 8] @F
  %y = mul(%x, %v) : f32[batch: 4*, dim: 8] @F
  %sum = sum(%y) {dims: [batch, dim]} : f32[] @F
  loss "l" elements %y sum %sum count 32
}
locations {
  1 "a.pipe":3:12-3:13
}
