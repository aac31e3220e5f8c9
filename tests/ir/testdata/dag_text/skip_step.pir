pir 2 built
train t {
  steps 1
  skip_step norm 3
//               ^ error P4150: expected `>`, found `3`
}
