pir 2 built
train t {
  steps 1
  dtype f32
  seed 1
  optim sgd(lr: constant(0.1, warmup: 0, floor: 0), beta1: 0.9, weight_decay: 0)
//                                                  ^^^^^ error P4151: the optimizer has no setting `beta1`
}
