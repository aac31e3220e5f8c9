tensor t {
  %x = port f16[a: 2]
}
