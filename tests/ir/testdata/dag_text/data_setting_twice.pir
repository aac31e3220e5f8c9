pir 2 built
train t {
  steps 1
  data synthetic(classes: 4, batch: 8, classes: 5)
//                                     ^^^^^^^ error P4152: `classes` was set before
}
