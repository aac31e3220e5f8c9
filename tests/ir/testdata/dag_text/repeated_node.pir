pir 2 built
input x: f32[batch: 4*]
graph {
  load.x = load x
  load.x = load x
//^^^^^^ error P4152: node `load.x` was declared before
}
