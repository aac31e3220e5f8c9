// train small
tensor net {
  %x = input f64[batch: 6*, features: 3] "x"
  %label = input i64[batch: 6*] "label"
  %stem.0.rename = rename(%x) {dims: [features], dims2: [from]} : f64[batch: 6*, from: 3] @F region stem[0]
  %stem.0.w = weight f64[from: 3, hidden: 4] "stem.0.w" normal(0.1)
  %stem.0.contract = contract(%stem.0.rename, %stem.0.w) {dims: [from]} : f64[batch: 6*, hidden: 4] @F region stem[0]
  %layer.0.up = weight f64[hidden: 4, inner: 8] "layer.0.up" normal(0.1)
  %layer.0.down = weight f64[inner: 8, hidden: 4] "layer.0.down" normal(0.1)
  %layer.0.bias = weight f64[hidden: 4] "layer.0.bias" zeros
  %layer.0.layer_norm = layer_norm(%stem.0.contract) {dims: [hidden], scalar: 1e-05} : f64[batch: 6*, hidden: 4] @F region layer[0]
  %layer.0.contract = contract(%layer.0.layer_norm, %layer.0.up) {dims: [hidden]} : f64[batch: 6*, inner: 8] @F region layer[0]
  %layer.0.gelu = gelu(%layer.0.contract) : f64[batch: 6*, inner: 8] @F region layer[0]
  %layer.0.scale = scale(%layer.0.gelu) {scalar: 2} : f64[batch: 6*, inner: 8] @F region layer[0]
  %layer.0.contract.1 = contract(%layer.0.scale, %layer.0.down) {dims: [inner]} : f64[batch: 6*, hidden: 4] @F region layer[0]
  %layer.0.sub = sub(%layer.0.contract.1, %layer.0.bias) : f64[batch: 6*, hidden: 4] @F region layer[0]
  %layer.0.scale.1 = scale(%layer.0.sub) {scalar: 0.25} : f64[batch: 6*, hidden: 4] @F region layer[0]
  %layer.0.add = add(%stem.0.contract, %layer.0.scale.1) : f64[batch: 6*, hidden: 4] @F region layer[0]
  %layer.1.up = weight f64[hidden: 4, inner: 8] "layer.1.up" normal(0.1)
  %layer.1.down = weight f64[inner: 8, hidden: 4] "layer.1.down" normal(0.1)
  %layer.1.bias = weight f64[hidden: 4] "layer.1.bias" zeros
  %layer.1.layer_norm = layer_norm(%layer.0.add) {dims: [hidden], scalar: 1e-05} : f64[batch: 6*, hidden: 4] @F region layer[1]
  %layer.1.contract = contract(%layer.1.layer_norm, %layer.1.up) {dims: [hidden]} : f64[batch: 6*, inner: 8] @F region layer[1]
  %layer.1.gelu = gelu(%layer.1.contract) : f64[batch: 6*, inner: 8] @F region layer[1]
  %layer.1.scale = scale(%layer.1.gelu) {scalar: 2} : f64[batch: 6*, inner: 8] @F region layer[1]
  %layer.1.contract.1 = contract(%layer.1.scale, %layer.1.down) {dims: [inner]} : f64[batch: 6*, hidden: 4] @F region layer[1]
  %layer.1.sub = sub(%layer.1.contract.1, %layer.1.bias) : f64[batch: 6*, hidden: 4] @F region layer[1]
  %layer.1.scale.1 = scale(%layer.1.sub) {scalar: 0.25} : f64[batch: 6*, hidden: 4] @F region layer[1]
  %layer.1.add = add(%layer.0.add, %layer.1.scale.1) : f64[batch: 6*, hidden: 4] @F region layer[1]
  %out = weight f64[hidden: 4, class: 5] "out" uniform(0.5)
  %contract = contract(%layer.1.add, %out) {dims: [hidden]} : f64[batch: 6*, class: 5] @F region classify[0]
  %cross_entropy = cross_entropy(%contract, %label) {dims: [class]} : f64[batch: 6*] @F region classify[0]
  %sum = sum(%cross_entropy) {dims: [batch]} : f64[] @F region classify[0]
  loss "loss.0" elements %cross_entropy sum %sum count 6
}
