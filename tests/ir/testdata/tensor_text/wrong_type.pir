tensor t {
  %x = port f32[a: 2]
  %y = tanh(%x) : f32[a: 3] @F
}
