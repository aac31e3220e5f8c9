pir 2 built
graph {
}
locations {
  1 "two.pipe":9:16-9:1
//                 ^^ error P4156: a range ends before it begins
}
