pir 2 built
input x: f32[batch: 281474976710656*, d: 281474976710656]
//                                    ^ error P4153: this type has more than `281474976710656` elements
