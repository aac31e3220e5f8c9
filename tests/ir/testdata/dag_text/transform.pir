pir 2 built
mesh line(pp: 2)
directives {
  order {
    shuffle
//  ^^^^^^^ error P4151: no transform of orders is called `shuffle`
  }
}
graph {
}
