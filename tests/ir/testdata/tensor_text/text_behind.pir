tensor t {
}
}
