tensor t {
  %x = weight f32[] "w" ones
  %y = weight f32[] "w" ones
}
