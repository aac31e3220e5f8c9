tensor t {
  %q = port f32[s: 2, h: 1, w: 2]
  %o, %o = attend(%q, %q, %q) {causal: true, scalar: 1} : f32[s: 2, h: 1, w: 2], f32[h: 1, s: 2] @F
}
