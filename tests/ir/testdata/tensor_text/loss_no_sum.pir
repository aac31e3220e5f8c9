tensor t {
  %x = port f32[a: 2]
  %y = tanh(%x) : f32[a: 2] @F
  loss "l" elements %x sum %y count 2
}
