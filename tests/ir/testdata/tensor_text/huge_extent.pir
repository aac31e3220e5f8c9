tensor t {
  %x = port f32[a: 99999999999999999999]
}
