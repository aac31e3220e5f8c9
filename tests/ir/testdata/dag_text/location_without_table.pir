pir 2 built
mesh line(pp: 2) #1
//                ^ error P4156: the text has no table of locations, and so no location `1`
graph {
}
