tensor no_loss {
  %w = weight f32[dim: 8] "w" ones
  %s = scale(%w) {scalar: 2} : f32[dim: 8] @F region a[0]
}
