[(block) (definition) (schedule) (model)] @local.scope
(let name: (name) @local.definition.var)
(var name: (name) @local.definition.var)
(cursor name: (name) @local.definition.var)
(binding name: (name) @local.definition.var)
(parameter name: (name) @local.definition.parameter)
(primary . (name) @local.reference)
