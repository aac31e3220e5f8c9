pir 2 built
train t {
  steps 1
  init weights()
//             ^ error P4150: expected a path, found `)`
}
