pir 2 built
train t {
  steps 1
  dtype f32
  seed 1
  data bytes(batch: 8)
//           ^^^^^ error P4150: expected a path in quotes, found `batch`
}
