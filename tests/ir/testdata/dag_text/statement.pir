pir 2 built
model gpt
// @1-6 error P4150: `model` begins no statement
