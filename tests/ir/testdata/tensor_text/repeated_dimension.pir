tensor t {
  %x = port f32[a: 2, a: 2]
}
