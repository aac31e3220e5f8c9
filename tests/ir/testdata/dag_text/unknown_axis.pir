pir 2 built
mesh line(pp: 2)
claim line[dp: 0]
//         ^^ error P4151: no axis is named `dp`
graph {
}
