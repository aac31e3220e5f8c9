// train short
tensor mixed {
  %tokens = input i64[batch: 4*, seq: 4] "tokens"
  %targets = input i64[batch: 4*, seq: 4] "targets"
  %token = weight f32[classes: 16, dim: 8] "token" normal(0.02)
  %out = weight f32[dim: 8, classes: 16] "out" normal(0.02)
  %lookup = lookup(%token, %tokens) : f32[batch: 4*, seq: 4, dim: 8] @F
  %block.0.q = weight f32[dim: 8, heads: 2, width: 4] "block.0.q" normal(0.02)
  %block.0.k = weight f32[dim: 8, kv_heads: 1, width: 4] "block.0.k" normal(0.02)
  %block.0.v = weight f32[dim: 8, kv_heads: 1, width: 4] "block.0.v" normal(0.02)
  %block.0.out = weight f32[heads: 2, width: 4, dim: 8] "block.0.out" normal(0.02)
  %block.0.shift = shift(%lookup) {dims: [seq], from: 1} : f32[batch: 4*, seq: 4, dim: 8] @F region block[0]
  %block.0.slice = slice(%block.0.shift) {dims: [dim], from: 0, extent: 4} : f32[batch: 4*, seq: 4, dim: 4] @F region block[0]
  %block.0.slice.1 = slice(%lookup) {dims: [dim], from: 4, extent: 4} : f32[batch: 4*, seq: 4, dim: 4] @F region block[0]
  %block.0.concat = concat(%block.0.slice, %block.0.slice.1) {dims: [dim]} : f32[batch: 4*, seq: 4, dim: 8] @F region block[0]
  %block.0.contract = contract(%block.0.concat, %block.0.q) {dims: [dim]} : f32[batch: 4*, seq: 4, heads: 2, width: 4] @F region block[0]
  %block.0.iota = iota() {scalar: 1, scalar2: 0, shape: f64[seq: 4]} : f64[seq: 4] @F region block[0]
  %block.0.iota.1 = iota() {scalar: -4.605170185988092, scalar2: 0, shape: f64[width: 2]} : f64[width: 2] @F region block[0]
  %block.0.exp = exp(%block.0.iota.1) : f64[width: 2] @F region block[0]
  %block.0.mul = mul(%block.0.iota, %block.0.exp) : f64[seq: 4, width: 2] @F region block[0]
  %block.0.cos = cos(%block.0.mul) : f64[seq: 4, width: 2] @F region block[0]
  %block.0.cast = cast(%block.0.cos) {dtype: f32} : f32[seq: 4, width: 2] @F region block[0]
  %block.0.sin = sin(%block.0.mul) : f64[seq: 4, width: 2] @F region block[0]
  %block.0.cast.1 = cast(%block.0.sin) {dtype: f32} : f32[seq: 4, width: 2] @F region block[0]
  %block.0.rotary = rotary(%block.0.contract, %block.0.cast, %block.0.cast.1) {dims: [width]} : f32[batch: 4*, seq: 4, heads: 2, width: 4] @F region block[0]
  %block.0.contract.1 = contract(%block.0.concat, %block.0.k) {dims: [dim]} : f32[batch: 4*, seq: 4, kv_heads: 1, width: 4] @F region block[0]
  %block.0.iota.2 = iota() {scalar: 1, scalar2: 0, shape: f64[seq: 4]} : f64[seq: 4] @F region block[0]
  %block.0.iota.3 = iota() {scalar: -4.605170185988092, scalar2: 0, shape: f64[width: 2]} : f64[width: 2] @F region block[0]
  %block.0.exp.1 = exp(%block.0.iota.3) : f64[width: 2] @F region block[0]
  %block.0.mul.1 = mul(%block.0.iota.2, %block.0.exp.1) : f64[seq: 4, width: 2] @F region block[0]
  %block.0.cos.1 = cos(%block.0.mul.1) : f64[seq: 4, width: 2] @F region block[0]
  %block.0.cast.2 = cast(%block.0.cos.1) {dtype: f32} : f32[seq: 4, width: 2] @F region block[0]
  %block.0.sin.1 = sin(%block.0.mul.1) : f64[seq: 4, width: 2] @F region block[0]
  %block.0.cast.3 = cast(%block.0.sin.1) {dtype: f32} : f32[seq: 4, width: 2] @F region block[0]
  %block.0.rotary.1 = rotary(%block.0.contract.1, %block.0.cast.2, %block.0.cast.3) {dims: [width]} : f32[batch: 4*, seq: 4, kv_heads: 1, width: 4] @F region block[0]
  %block.0.contract.2 = contract(%block.0.concat, %block.0.v) {dims: [dim]} : f32[batch: 4*, seq: 4, kv_heads: 1, width: 4] @F region block[0]
  %block.0.attend, %block.0.attend.lse = attend(%block.0.rotary, %block.0.rotary.1, %block.0.contract.2) {scalar: 0.5, causal: true} : f32[batch: 4*, seq: 4, heads: 2, width: 4], f32[batch: 4*, heads: 2, seq: 4] @F region block[0]
  %block.0.contract.3 = contract(%block.0.attend, %block.0.out) {dims: [heads, width]} : f32[batch: 4*, seq: 4, dim: 8] @F region block[0]
  %contract = contract(%block.0.contract.3, %out) {dims: [dim]} : f32[batch: 4*, seq: 4, classes: 16] @F
  %cross_entropy = cross_entropy(%contract, %targets) {dims: [classes]} : f32[batch: 4*, seq: 4] @F
  %sum = sum(%cross_entropy) {dims: [batch, seq]} : f32[] @F
  loss "loss.0" elements %cross_entropy sum %sum count 16
}
