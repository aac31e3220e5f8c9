tensor t {
  %x = port f32[a: 2]
  %y = rms_norm(%x) {dims: [a]} : f32[a: 2] @F
}
