tensor t {
  %x = port f32[]
  %y = tang(%x) : f32[] @F
}
