pir 2 built
body @b(%x: data f32[d: 4]) -> (%y: data f32[d: 4]) {
  %x = port f32[d: 4]
  %y = negate(%x) : f32[d: 4] @F
//     ^^^^^^ error P4101: no operation is named `negate`
}
graph {
}
