pir 2 built
mesh line(pp: 2) #0
//                ^ error P4156: expected the number of a location, which counts from 1, found `0`
graph {
}
