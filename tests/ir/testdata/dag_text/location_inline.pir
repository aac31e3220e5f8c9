pir 2 built
mesh line(pp: 2) loc("two.pipe":9:1-9:16)
//               ^^^ error P4156: a line refers to its location by a number: write `#1`, and `locations { 1 "net.pipe":7:5-7:30 }` at the end of the text
graph {
}
