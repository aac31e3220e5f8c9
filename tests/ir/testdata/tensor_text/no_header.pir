graph t {
}
