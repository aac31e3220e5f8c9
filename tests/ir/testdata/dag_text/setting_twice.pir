pir 2 built
train toy {
  steps 10
  seed 3
  steps 20
//^^^^^ error P4152: `steps` was set before
}
graph {
}
