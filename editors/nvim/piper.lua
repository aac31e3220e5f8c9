-- Piper for Neovim 0.11: `dofile` this file where it is.
vim.filetype.add({ extension = { pipe = "pipe" } })
vim.lsp.config("piper", {
  cmd = { "piper", "lsp" },
  filetypes = { "pipe" },
  root_markers = { ".git" },
  settings = { piper = { values = vim.empty_dict(), train = "" } }, -- such as { layers = 4 }, as `-D` gives them; the train whose values are shown
})
vim.lsp.enable("piper")

-- The tree-sitter grammar colours and folds; it is compiled once, where there is a C compiler.
local grammar = vim.fs.normalize(vim.fs.joinpath(vim.fs.dirname(vim.fs.abspath(debug.getinfo(1, "S").source:sub(2))), "..", "tree-sitter-piper"))
local parser = vim.fs.joinpath(vim.fn.stdpath("data"), "piper", "piper.so")
local function add_grammar()
  local made, source = vim.uv.fs_stat(parser), vim.uv.fs_stat(grammar .. "/src/parser.c")
  if not made or (source and made.mtime.sec < source.mtime.sec) then
    local compiler = vim.iter({ "cc", "gcc", "clang" }):find(function(name) return vim.fn.executable(name) == 1 end)
    if not compiler or not source then return false end
    vim.fn.mkdir(vim.fs.dirname(parser), "p")
    local aside = parser .. "." .. vim.uv.os_getpid()
    local done = vim.system({ compiler, "-O2", "-shared", "-fPIC", "-I", grammar .. "/src", grammar .. "/src/parser.c", grammar .. "/src/scanner.c", "-o", aside }):wait()
    if done.code ~= 0 or not vim.uv.fs_rename(aside, parser) then return false end
  end
  if not vim.treesitter.language.add("piper", { path = parser }) then return false end
  vim.treesitter.language.register("piper", "pipe")
  for name in vim.fs.dir(grammar .. "/queries") do
    vim.treesitter.query.set("piper", (name:gsub("%.scm$", "")), table.concat(vim.fn.readfile(grammar .. "/queries/" .. name), "\n"))
  end
  return true
end

-- By open brackets; it also holds for text that is half typed.
function _G.piper_indent()
  local above = vim.fn.prevnonblank(vim.v.lnum - 1)
  local function code(line) return (vim.fn.getline(line):gsub('"[^"]*"', ""):gsub("//.*", "")) end
  local before = code(above):gsub("^%s*[%]%)}]+", "")
  local _, opened = before:gsub("[%[({]", "")
  local _, closed = before:gsub("[%])}]", "")
  local closes = code(vim.v.lnum):match("^%s*[%]%)}]") and 1 or 0
  return math.max(0, vim.fn.indent(above) + vim.fn.shiftwidth() * (math.max(-1, math.min(1, opened - closed)) - closes))
end

local has_grammar
vim.api.nvim_create_autocmd("FileType", {
  pattern = "pipe",
  callback = function()
    vim.bo.commentstring = "// %s"
    vim.bo.comments = ":///,://"
    vim.bo.shiftwidth = 4
    vim.bo.expandtab = true
    vim.bo.indentexpr = "v:lua.piper_indent()"
    vim.bo.indentkeys = "0},0],0),o,O"
    if has_grammar == nil then has_grammar = add_grammar() end
    if not has_grammar then return end
    vim.treesitter.start(0, "piper")
    vim.wo[0][0].foldmethod = "expr"
    vim.wo[0][0].foldexpr = "v:lua.vim.treesitter.foldexpr()"
    vim.wo[0][0].foldlevel = 99
  end,
})

-- The command of the lens above trains and schedules: the grid in a window of its own.
vim.lsp.commands["piper.grid"] = function(command, context)
  local client = vim.lsp.get_client_by_id(context.client_id)
  client:request("workspace/executeCommand", { command = command.command, arguments = command.arguments }, function(error, result)
    if error then return vim.notify(error.message, vim.log.levels.WARN) end
    vim.lsp.util.open_floating_preview(vim.split(result.text, "\n"), "text", { wrap = false })
  end)
end
