pir 2 built
train t {
  steps 1
  stops 3
//^^^^^ error P4151: the train has no setting `stops`
}
