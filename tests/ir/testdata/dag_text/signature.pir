pir 2 built
body @b(%x: data f32[d: 4]) -> (%y: data f32[d: 5]) {
//                              ^ error P4154: the signature says that `%y` is `f32[d: 5]`, the body that it is `f32[d: 4]`
  %x = port f32[d: 4]
  %y = neg(%x) : f32[d: 4] @F
}
graph {
}
