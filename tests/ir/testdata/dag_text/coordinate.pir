pir 2 built
mesh line(pp: 2)
claim line[pp: 2]
//             ^ error P4153: a coordinate is `2`, outside `0` to `1`
graph {
}
