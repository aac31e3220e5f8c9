tensor t {
  %x = weight f32[] "w" gauss(1)
}
