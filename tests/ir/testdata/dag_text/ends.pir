pir 2 built
mesh line(pp: 2)
// @+1:1-+1:1 error P4150: the text ends where `graph` is expected
