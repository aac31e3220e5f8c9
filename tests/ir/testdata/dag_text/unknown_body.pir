pir 2 built
chunk model of model F @net.F
//                      ^^^^^ error P4151: `net.F` is not a body of this text
graph {
}
