pir 2 planned
mesh line(pp: 2)
stream compute
graph {
}
role pp0 at line[pp: 1] arena 0 live 0 {
//   ^^^ error P4154: the role called `pp0` is `pp1` by its devices
}
