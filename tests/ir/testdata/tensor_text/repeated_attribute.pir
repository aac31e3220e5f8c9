tensor t {
  %x = port f32[a: 2]
  %y = sum(%x) {dims: [a], dims: [a]} : f32[] @F
}
