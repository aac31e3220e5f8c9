tensor t {
  %x = port f32[a: 2]
  %y = port f32[a: 3]
  %z = add(%x, %y) : f32[a: 2] @F
}
