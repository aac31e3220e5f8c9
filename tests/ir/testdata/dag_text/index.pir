pir 2 split
split batch into mb: 2
input x: f32[batch: 4*]
graph {
  load.x.mb2 = load x [mb: 2]
//                         ^ error P4153: an index is `2`, outside `0` to `1`
}
