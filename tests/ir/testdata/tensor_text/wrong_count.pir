tensor t {
  %x = port f32[a: 2]
  %z = add(%x) : f32[a: 2] @F
}
