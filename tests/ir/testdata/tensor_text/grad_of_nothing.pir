tensor t {
  %w = weight f32[a: 2] "w" ones
  grad "v" %w
}
