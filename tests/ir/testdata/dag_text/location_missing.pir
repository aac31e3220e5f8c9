pir 2 built
mesh line(pp: 2) #2
//                ^ error P4156: the table of locations has no `2`
graph {
}
locations {
  1 "two.pipe":9:1-9:16
}
