pir 2 planned
mesh line(pp: 1)
input x: f32[batch: 4*]
stream compute
graph {
  load.x.line = load x on line[] stream compute
}
role line at line[] arena 64 live 64 {
  buffer %load.x.line:0 = activations at 0 bytes 16
  load.x.line on compute reads (%load.x.line:0)
//^^^^^^^^^^^ error P4154: `load.x.line` reads `1` operands from number `0` on; its node has `0` such, from number `0` on
}
