pir 2 built
mesh line(pp: 2) #1
locations {
  1 "two.pipe":9:1-9:16
}
graph {
// @1-6 error P4156: the table of locations ends the text
}
