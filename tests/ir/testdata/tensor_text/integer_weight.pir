tensor t {
  %x = weight i64[] "w" zeros
}
