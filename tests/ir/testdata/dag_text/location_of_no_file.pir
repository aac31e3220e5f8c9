pir 2 built
graph {
}
locations {
  1 unknown from unknown
//^ error P4156: location `1` names no file
}
