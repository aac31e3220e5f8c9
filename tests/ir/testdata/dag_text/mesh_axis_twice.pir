pir 2 built
mesh line(pp: 2, pp: 2)
//               ^^ error P4152: axis `pp` occurs twice
graph {
}
