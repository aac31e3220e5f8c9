; Captures of nvim-treesitter (`indent.begin`, `indent.branch`) and of Helix (`indent`, `outdent`).
[(block) (parameters) (call) (list) (index) (parenthesized) (coordinate)] @indent.begin @indent
[(let) (var) (assignment) (pair) (cursor) (weight) (input) (loss) (return) (require) (partition) (split) (place) (replicate) (shard) (stream)] @indent.begin @indent
["}" ")" "]"] @indent.branch @outdent
