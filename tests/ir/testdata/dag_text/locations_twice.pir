pir 2 built
graph {
}
locations {
// @1-10 error P4156: the table of locations ends the text
  1 "two.pipe":9:1-9:16
}
locations {
  1 "two.pipe":9:1-9:16
}
