tensor t {
  %y = tanh(%x) : f32[] @F
  %x = port f32[]
}
