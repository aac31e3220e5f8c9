pir 1 built
train toy {
  steps 10
}
train toy {
//    ^^^ error P4152: a text has one train
  steps 20
}
graph {
}
