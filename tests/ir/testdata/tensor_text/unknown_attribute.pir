tensor t {
  %x = port f32[a: 2]
  %y = sum(%x) {along: [a]} : f32[] @F
}
