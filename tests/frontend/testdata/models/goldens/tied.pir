// train small
tensor net {
  %tokens = input i64[batch: 2*, seq: 3] "tokens"
  %targets = input i64[batch: 2*, seq: 3] "targets"
  %token = weight f32[vocab: 7, dim: 4] "token" normal(0.02)
  %embed.0.position = weight f32[seq: 3, dim: 4] "embed.0.position" normal(0.02)
  %embed.0.lookup = lookup(%token, %tokens) : f32[batch: 2*, seq: 3, dim: 4] @F region embed[0]
  %embed.0.add = add(%embed.0.lookup, %embed.0.position) : f32[batch: 2*, seq: 3, dim: 4] @F region embed[0]
  %square = square(%embed.0.add) : f32[batch: 2*, seq: 3, dim: 4] @F
  %sum = sum(%square) {dims: [batch, seq, dim]} : f32[] @F
  %head.0.rms_norm = rms_norm(%embed.0.add) {dims: [dim], scalar: 1e-06} : f32[batch: 2*, seq: 3, dim: 4] @F region head[0]
  %head.0.contract = contract(%head.0.rms_norm, %token) {dims: [dim]} : f32[batch: 2*, seq: 3, vocab: 7] @F region head[0]
  %cross_entropy = cross_entropy(%head.0.contract, %targets) {dims: [vocab]} : f32[batch: 2*, seq: 3] @F
  %sum.1 = sum(%cross_entropy) {dims: [batch, seq]} : f32[] @F
  loss "loss.0" elements %square sum %sum count 24
  loss "loss.1" elements %cross_entropy sum %sum.1 count 6
}
