tensor t {
  %x = port f32[]
  %x = tanh(%x) : f32[] @F
}
