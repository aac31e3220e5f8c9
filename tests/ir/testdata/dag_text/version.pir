pir 2 planned
//  ^ error P4155: version `2` of the text is not known; this is version `1`
