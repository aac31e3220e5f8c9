// train both
tensor towers {
  %left = input f32[batch: 2*, pixels: 3] "left"
  %right = input f32[batch: 2*, sounds: 2] "right"
  %label = input i64[batch: 2*] "label"
  %tower.0.rename = rename(%left) {dims: [pixels], dims2: [features]} : f32[batch: 2*, features: 3] @F region tower[0]
  %tower.0.w = weight f32[features: 3, dim: 4] "tower.0.w" normal(0.1)
  %tower.0.scaled.0.rename = rename(%tower.0.rename) {dims: [features], dims2: [any]} : f32[batch: 2*, any: 3] @F region tower[0].scaled[0]
  %tower.0.scaled.0.gain = weight f32[any: 3] "tower.0.scaled.0.gain" ones
  %tower.0.scaled.0.mul = mul(%tower.0.scaled.0.rename, %tower.0.scaled.0.gain) : f32[batch: 2*, any: 3] @F region tower[0].scaled[0]
  %tower.0.scaled.0.rename.1 = rename(%tower.0.scaled.0.mul) {dims: [any], dims2: [features]} : f32[batch: 2*, features: 3] @F region tower[0].scaled[0]
  %tower.0.contract = contract(%tower.0.scaled.0.rename.1, %tower.0.w) {dims: [features]} : f32[batch: 2*, dim: 4] @F region tower[0]
  %tower.0.tanh = tanh(%tower.0.contract) : f32[batch: 2*, dim: 4] @F region tower[0]
  %tower.1.rename = rename(%right) {dims: [sounds], dims2: [features]} : f32[batch: 2*, features: 2] @F region tower[1]
  %tower.1.w = weight f32[features: 2, dim: 4] "tower.1.w" normal(0.1)
  %tower.1.scaled.0.rename = rename(%tower.1.rename) {dims: [features], dims2: [any]} : f32[batch: 2*, any: 2] @F region tower[1].scaled[0]
  %tower.1.scaled.0.gain = weight f32[any: 2] "tower.1.scaled.0.gain" ones
  %tower.1.scaled.0.mul = mul(%tower.1.scaled.0.rename, %tower.1.scaled.0.gain) : f32[batch: 2*, any: 2] @F region tower[1].scaled[0]
  %tower.1.scaled.0.rename.1 = rename(%tower.1.scaled.0.mul) {dims: [any], dims2: [features]} : f32[batch: 2*, features: 2] @F region tower[1].scaled[0]
  %tower.1.contract = contract(%tower.1.scaled.0.rename.1, %tower.1.w) {dims: [features]} : f32[batch: 2*, dim: 4] @F region tower[1]
  %tower.1.tanh = tanh(%tower.1.contract) : f32[batch: 2*, dim: 4] @F region tower[1]
  %match.0.sign = weight f32[outcome: 2] "match.0.sign" constant(0.5)
  %match.0.mul = mul(%tower.0.tanh, %tower.1.tanh) : f32[batch: 2*, dim: 4] @F region match[0]
  %match.0.sum = sum(%match.0.mul) {dims: [dim]} : f32[batch: 2*] @F region match[0]
  %match.0.mul.1 = mul(%match.0.sum, %match.0.sign) : f32[batch: 2*, outcome: 2] @F region match[0]
  %match.0.cross_entropy = cross_entropy(%match.0.mul.1, %label) {dims: [outcome]} : f32[batch: 2*] @F region match[0]
  %sum = sum(%match.0.cross_entropy) {dims: [batch]} : f32[] @F region match[0]
  loss "loss.0" elements %match.0.cross_entropy sum %sum count 2
}
