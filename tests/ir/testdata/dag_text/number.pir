pir 2 built
loss l: 99999999999999999999
//      ^^^^^^^^^^^^^^^^^^^^ error P4153: `99999999999999999999` is not an integer of 64 bits
