pir 2 built
train t {
  steps 1
  dtype f32
  seed 1
  data tokens("a.bin", seq: 8)
//                           ^ error P4150: the data says no `batch`
}
