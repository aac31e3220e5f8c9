// %h is used twice: its adjoints are added where it stands. %s does not depend on data, so its adjoint is BW.
tensor two_uses {
  %x = input f32[batch: 4*, dim: 8] "x"
  %w = weight f32[dim: 8] "w" ones
  %s = scale(%w) {scalar: 2} : f32[dim: 8] @F region a[0]
  %h = mul(%x, %s) : f32[batch: 4*, dim: 8] @F region a[0]
  %t = tanh(%h) : f32[batch: 4*, dim: 8] @F region b[0]
  %y = add(%t, %h) : f32[batch: 4*, dim: 8] @F region c[0]
  %sum = sum(%y) {dims: [batch, dim]} : f32[] @F
  loss "l" elements %y sum %sum count 32
}
