pir 2 built
loss "l: 4
//   ^^^^^ error P4150: this string has no closing quote
