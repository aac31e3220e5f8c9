; The later of two patterns that take one node wins.
(name) @variable
(comment) @comment
(doc_comment) @comment.documentation
(number) @number
(string) @string
(boolean) @boolean
(pass) @constant.builtin

["as" "at" "backward" "by" "cursor" "freeze" "fuse" "in" "input" "into" "let" "loss" "machine" "mesh" "model" "names" "offload" "on" "order" "over" "param" "partition" "place" "rank"
 "recompute" "region" "replicate" "require" "shard" "split" "stream" "train" "tune" "var" "weight" "with"] @keyword
["def" "schedule"] @keyword.function
"use" @keyword.import
["for" "repeat"] @keyword.repeat
["if" "then" "else"] @keyword.conditional
"return" @keyword.return
["and" "or" "not"] @keyword.operator
["=" "->" ".." "==" "!=" "<" "<=" ">" ">=" "+" "-" "*" "/" "%" "@" "&"] @operator
["(" ")" "[" "]" "{" "}"] @punctuation.bracket
["," ":" ";" "."] @punctuation.delimiter

(use (name) @module)
(param_declaration name: (name) @constant)
(mesh name: (name) @constant)
(mesh (pair name: (name) @property))
(definition name: (name) @function)
(schedule name: (name) @function)
(model name: (name) @function)
(train name: (name) @constant)
(machine name: (name) @constant)
(names name: (name) @constant)
(path (name) @variable.member)
(facts word: (name) @keyword)
(ignored word: (name) @keyword)
(parameter name: (name) @variable.parameter)
(kind name: (name) @type)
((kind name: (name) @type.builtin)
 (#any-of? @type.builtin "int" "float" "bool" "string" "bytes" "axis" "devices" "selector" "steps" "tensor" "f32" "f64" "bf16" "i64"))
(dimension name: (name) @property)
(pair name: (name) @property)
(settings (pair name: (name) @property))
(argument name: (name) @variable.parameter)
(weight_declaration name: (name) @variable.member)
(region name: (name) @label)
(coordinate name: (name) @label)
(field (name) @variable.member)
(primary . (name) @function.call . (call))
(whole_model) @label
