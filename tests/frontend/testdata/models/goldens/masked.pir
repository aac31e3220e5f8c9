// train small
tensor net {
  %tokens = input i64[batch: 2*, seq: 3] "tokens"
  %targets = input i64[batch: 2*, seq: 3] "targets"
  %weights = input f32[batch: 2*, position: 3] "weights"
  %token = weight f32[vocab: 7, dim: 4] "token" normal(0.02)
  %lookup = lookup(%token, %tokens) : f32[batch: 2*, seq: 3, dim: 4] @F
  %contract = contract(%lookup, %token) {dims: [dim]} : f32[batch: 2*, seq: 3, vocab: 7] @F
  %cross_entropy = cross_entropy(%contract, %targets) {dims: [vocab], ignore: 0} : f32[batch: 2*, seq: 3] @F
  %sum = sum(%cross_entropy) {dims: [batch, seq]} : f32[] @F
  %loss.0.count = count f64[]
  %gelu = gelu(%lookup) : f32[batch: 2*, seq: 3, dim: 4] @F
  %contract.1 = contract(%gelu, %token) {dims: [dim]} : f32[batch: 2*, seq: 3, vocab: 7] @F
  %cross_entropy.1 = cross_entropy(%contract.1, %targets) {dims: [vocab], ignore: -1} : f32[batch: 2*, seq: 3] @F
  %rename = rename(%cross_entropy.1) {dims: [seq], dims2: [position]} : f32[batch: 2*, position: 3] @F
  %scale = scale(%rename) {scalar: 0.5} : f32[batch: 2*, position: 3] @F
  %mul = mul(%scale, %weights) : f32[batch: 2*, position: 3] @F
  %sum.1 = sum(%mul) {dims: [batch, position]} : f32[] @F
  %loss.1.count = count f64[]
  loss "loss.0" elements %cross_entropy sum %sum count 6 ignore 0 of %targets leaves %loss.0.count
  loss "loss.1" elements %mul sum %sum.1 count 6 ignore -1 of %targets leaves %loss.1.count
}
