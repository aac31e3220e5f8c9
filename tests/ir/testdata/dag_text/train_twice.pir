pir 2 built
train toy {
  steps 10
  dtype f32
  seed 0
}
train toy {
//    ^^^ error P4152: a text has one train
  steps 20
}
graph {
}
