pir 2 built
graph {
}
locations {
  1 library std:9:1-9:16
//          ^^^ error P4156: expected the name of a file in quotes, found `std`
}
