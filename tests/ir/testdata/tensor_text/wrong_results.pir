tensor t {
  %q = port f32[s: 2, h: 1, w: 2]
  %o = attend(%q, %q, %q) {causal: true, scalar: 1} : f32[s: 2, h: 1, w: 2] @F
}
