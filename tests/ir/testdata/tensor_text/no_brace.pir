tensor t {
  %x = port f32[]
