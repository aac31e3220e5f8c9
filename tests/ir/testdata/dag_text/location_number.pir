pir 2 built
mesh line(pp: 2) #0
//                ^ error P4156: expected a location number of at least `1`, found `0`
graph {
}
