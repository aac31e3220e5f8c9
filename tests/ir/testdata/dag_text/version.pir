pir 3 planned
//  ^ error P4155: version `3` of the text is not known; this is version `2`
