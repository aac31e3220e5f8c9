tensor t {
  value %x
}
