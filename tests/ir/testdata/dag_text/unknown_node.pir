pir 2 built
loss l: 4
graph {
  report.l = report loss l (F.net)
//                          ^^^^^ error P4151: `F.net` is not a node of this text
}
