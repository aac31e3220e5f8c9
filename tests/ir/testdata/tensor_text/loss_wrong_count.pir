tensor t {
  %x = port f32[a: 2]
  %y = sum(%x) {dims: [a]} : f32[] @F
  loss "l" elements %x sum %y count 3
}
