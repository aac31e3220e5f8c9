pir 2 built
graph {
}
locations {
  1 "two.pipe":9:1-9:0
//                   ^ error P4156: expected a column of at least `1`, found `0`
}
