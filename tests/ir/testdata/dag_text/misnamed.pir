pir 2 split
split batch into mb: 2
input x: f32[batch: 4*]
graph {
  load.x.mb0 = load x [mb: 1]
//^^^^^^^^^^ error P4154: the node called `load.x.mb0` is `load.x.mb1` by its fields
}
