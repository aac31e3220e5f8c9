tensor sum_of_products {
  %x = input f32[batch: 4*, dim: 8] "x"
  %net.0.w = weight f32[dim: 8, hidden: 8] "net.0.w" normal(0.02)
  %net.0.h = contract(%x, %net.0.w) {dims: [dim]} : f32[batch: 4*, hidden: 8] @F region net[0]
  %a.q = weight f32[hidden: 8, out: 6] "a.q" normal(0.02)
  %a.k = weight f32[hidden: 8, out: 6] "a.k" normal(0.02)
  %a.v = weight f32[out: 6, hidden: 8] "a.v" normal(0.02)
  %b.w = weight f32[hidden: 8, out: 6] "b.w" normal(0.02)
  %a.0 = contract(%net.0.h, %a.q) {dims: [hidden]} : f32[batch: 4*, out: 6] @F region net[0].a[0]
  %a.1 = contract(%net.0.h, %a.k) {dims: [hidden]} : f32[batch: 4*, out: 6] @F region net[0].a[0]
  %a.2 = contract(%net.0.h, %a.v) {dims: [hidden]} : f32[batch: 4*, out: 6] @F region net[0].a[0]
  %b.0 = contract(%net.0.h, %b.w) {dims: [hidden]} : f32[batch: 4*, out: 6] @F region net[0].b[0]
  %s.0 = mul(%a.0, %a.1) : f32[batch: 4*, out: 6] @F region net[0]
  %s.1 = mul(%a.2, %b.0) : f32[batch: 4*, out: 6] @F region net[0]
  %s.2 = add(%s.0, %s.1) : f32[batch: 4*, out: 6] @F region net[0]
  %sum = sum(%s.2) {dims: [batch, out]} : f32[] @F
  loss "net.loss.0" elements %s.2 sum %sum count 24
}
