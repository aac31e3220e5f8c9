pir 2 built
input x: f32[batch: 4*]
loss l: 4
graph {
  load.x = load x
  report.l = report loss l (load.x:1)
//                          ^^^^^^ error P4151: node `load.x` has no output `1`: it has `1`
}
