tensor t {
  %x = input f32[] "x\q"
}
