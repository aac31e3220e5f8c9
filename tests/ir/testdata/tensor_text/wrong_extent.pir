tensor t {
  %x = port f32[a: 0]
}
