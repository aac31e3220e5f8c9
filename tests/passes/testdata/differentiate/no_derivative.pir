tensor no_derivative {
  %x = input f32[batch: 4*, dim: 8] "x"
  %v = weight f32[dim: 8] "v" ones
  %y = relu_grad(%x, %v) : f32[batch: 4*, dim: 8] @F #1
  %sum = sum(%y) {dims: [batch, dim]} : f32[] @F
  loss "l" elements %y sum %sum count 32
}
locations {
  1 "a.pipe":4:9-4:20
}
