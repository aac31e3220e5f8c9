tensor t {
  %w = weight f32[a: 2] "w" ones
  %y = sum(%w) {dims: [a]} : f32[] @BW
  grad "w" %y
}
