tensor t {
  %x = port f32[]
  %y = tanh(%x) : f32[] @B
}
