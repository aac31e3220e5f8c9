pir 2 built
mesh line(pp: 2) #1
graph {
}
locations {
  1 "two.pipe":9:1-9:16
  1 "two.pipe":8:1-8:16
//^ error P4156: the table has location `1` twice
}
