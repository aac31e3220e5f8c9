pir 2 built
graph {
}
locations {
  1 "two.pipe":9:1
  2 "two.pipe":9:1-9:16
//^ error P4156: expected `-` and the end of the range, found `2`
}
