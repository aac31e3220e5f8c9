-- Neovim with the set-up of editors/nvim, without a window: nvim --clean --headless -l nvim_test.lua ROOT FOLDER
local root, folder = arg[1], arg[2]
local program = table.concat(vim.fn.readfile(root .. "/tests/editors/net.pipe"), "\n") .. "\n"
local path = folder .. "/net.pipe"
vim.fn.writefile(vim.split(program, "\n", { plain = true }), path, "b")

vim.cmd("filetype plugin indent on")
vim.cmd("syntax on")
dofile(root .. "/editors/nvim/piper.lua")
vim.cmd.edit(path)
local buffer = vim.api.nvim_get_current_buf()

local function wait(what, condition)
  local last
  local met = vim.wait(30000, function()
    last = condition()
    return last
  end, 5)
  assert(met, "waited for: " .. what .. ", not " .. vim.inspect(last))
  return last
end
local function equal(found, expected, what)
  assert(vim.deep_equal(found, expected), what .. ": " .. vim.inspect(found) .. " instead of " .. vim.inspect(expected))
end
local function text() return table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), "\n") .. "\n" end
local function reset()
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split(program:sub(1, -2), "\n", { plain = true }))
end
-- The cursor on `^` in a piece of the text.
local function go(marked)
  local piece = marked:gsub("%^", "")
  local at = assert(text():find(piece, 1, true), piece) + marked:find("^", 1, true) - 2
  local before = text():sub(1, at)
  local _, line = before:gsub("\n", "")
  vim.api.nvim_win_set_cursor(0, { line + 1, at - #(before:match("^(.*\n)") or "") })
end
local function type_keys(keys) vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes(keys, true, false, true), "xt", false) end
local function diagnostics() return vim.diagnostic.get(buffer) end

local tests = {}

function tests.attaches_by_itself()
  equal(vim.bo.filetype, "pipe", "file type")
  local client = wait("a client", function() return vim.lsp.get_clients({ bufnr = buffer, name = "piper" })[1] end)
  wait("initialize", function() return client.initialized end)
  equal(client.root_dir ~= nil or client.workspace_folders == nil, true, "root")
end

function tests.diagnostics_follow_what_is_typed()
  go("plain(^pp, 4)")
  type_keys("iq<Esc>")
  local found = wait("a diagnostic", function() return diagnostics()[1] end)
  equal(found.code, "P2010", "code")
  equal(vim.api.nvim_buf_get_text(buffer, found.lnum, found.col, found.end_lnum, found.end_col, {}), { "qpp" }, "range")
  go("^qpp")
  vim.lsp.buf.code_action({ apply = true, filter = function(action) return action.title:find("pp", 1, true) ~= nil end })
  wait("the fix", function() return text() == program end)
  wait("no diagnostic", function() return #diagnostics() == 0 end)
end

-- In a second Neovim, which has a loop of its own: keys are pressed while answers arrive.
function tests.completes_while_keys_are_pressed()
  local child = vim.fn.jobstart({ vim.v.progpath, "--clean", "--embed", "--headless" }, { rpc = true })
  local function ask(method, ...) return vim.rpcrequest(child, method, ...) end
  ask("nvim_exec_lua", "vim.opt.completeopt = 'menuone'; dofile(...)", { root .. "/editors/nvim/piper.lua" })
  ask("nvim_command", "edit " .. folder .. "/second.pipe")
  ask("nvim_buf_set_lines", 0, 0, -1, false, vim.split(program, "\n", { plain = true }))
  wait("omnifunc", function() return ask("nvim_eval", "&omnifunc") == "v:lua.vim.lsp.omnifunc" end)
  ask("nvim_input", "/plain(pp<CR>orep<C-x><C-o>")
  wait("the menu", function() return ask("nvim_call_function", "pumvisible", {}) == 1 end)
  local words = vim.tbl_map(function(item) return item.word end, ask("nvim_call_function", "complete_info", { { "items" } }).items)
  equal(words, { "repeat", "replicate" }, "words")
  ask("nvim_input", "<C-y><Esc>")
  wait("the word in the text", function() return ask("nvim_get_current_line") == "    repeat" end)
  ask("nvim_input", "cc    place model on p<C-x><C-o>")
  wait("devices", function() return ask("nvim_call_function", "pumvisible", {}) == 1 end)
  words = vim.tbl_map(function(item) return item.word end, ask("nvim_call_function", "complete_info", { { "items" } }).items)
  assert(vim.tbl_contains(words, "pp") and not vim.tbl_contains(words, "plain"), vim.inspect(words))
  vim.fn.jobstop(child)
end

function tests.colours_folds_and_indents()
  local highlighter = wait("the grammar", function() return vim.treesitter.highlighter.active[buffer] end)
  assert(highlighter)
  equal(vim.treesitter.get_parser(buffer):lang(), "piper", "grammar")
  vim.treesitter.get_parser(buffer):parse(true)  -- what a redraw does
  go("^plain(p: axis")
  local captures = vim.treesitter.get_captures_at_cursor(0)
  assert(vim.tbl_contains(captures, "function"), vim.inspect(captures))
  vim.cmd("normal! zx")
  local first = vim.api.nvim_win_get_cursor(0)[1]
  wait("folds", function() return vim.fn.foldlevel(first) > 0 end)
  equal(vim.fn.foldlevel(1), 0, "fold of the first line")
  -- All lines to the left and indented again.
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split((program:sub(1, -2):gsub("\n +", "\n")), "\n", { plain = true }))
  vim.cmd("silent normal! gg=G")
  equal(text(), program, "indented")
  -- Half typed: the brace has no end yet.
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, { "schedule s(p: axis) {", "    order {" })
  vim.api.nvim_win_set_cursor(0, { 2, 0 })
  type_keys("orank r in p {<CR>F a<Esc>")
  equal(text(), "schedule s(p: axis) {\n    order {\n        rank r in p {\n            F a\n", "typed")
  reset()
end

function tests.jumps()
  go("pl^ain(pp")
  vim.lsp.buf.definition()
  wait("the declaration", function() return vim.api.nvim_get_current_line():find("schedule plain", 1, true) end)
  go("= ml^p(")
  vim.lsp.buf.definition()
  wait("the library", function() return vim.api.nvim_buf_get_name(0):match("mlp%.pipe$") end)
  assert(vim.api.nvim_get_current_line():find("model mlp", 1, true))
  assert(vim.bo.readonly, "a file of the library is not to be written")
  vim.cmd.edit(path)
  vim.cmd.bdelete({ args = { "#" }, bang = true })
end

function tests.renames()
  go("let la^st")
  vim.lsp.buf.rename("final")
  local renamed = program:gsub("last", "final")
  wait("the new name", function() return text() == renamed end)
  vim.cmd.undo()
  equal(text(), program, "undone")
end

function tests.formats()
  go("let la^st")
  type_keys("I      <Esc>")
  assert(text() ~= program)
  vim.lsp.buf.format({ timeout_ms = 30000 })
  equal(text(), program, "formatted")
end

function tests.hints_tokens_hover_lenses()
  vim.lsp.inlay_hint.enable(true, { bufnr = buffer })
  wait("hints", function() return #vim.lsp.inlay_hint.get({ bufnr = buffer }) > 0 end)
  go("^schedule plain")
  local at = vim.api.nvim_win_get_cursor(0)
  wait("tokens", function()
    local tokens = vim.lsp.semantic_tokens.get_at_pos(buffer, at[1] - 1, at[2] + 10)
    return tokens and tokens[1] and tokens[1].type
  end)
  go("hidden: wid^th")
  vim.lsp.buf.hover()
  local shown = wait("the hover", function()
    for _, window in ipairs(vim.api.nvim_list_wins()) do
      if vim.api.nvim_win_get_config(window).relative ~= "" then
        return table.concat(vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, -1, false), "\n")
      end
    end
  end)
  assert(shown:find("How wide the middle is.", 1, true), shown)
  vim.cmd("fclose!")
  vim.lsp.codelens.refresh({ bufnr = buffer })
  wait("lenses", function()
    for _, lens in ipairs(vim.lsp.codelens.get(buffer)) do
      if lens.command and lens.command.title:find("bubble", 1, true) then return true end
    end
  end)
  go("^train net")
  local grid
  for _, lens in ipairs(vim.lsp.codelens.get(buffer)) do
    if lens.command and lens.command.title == "show grid" then grid = lens.command end
  end
  local client = vim.lsp.get_clients({ bufnr = buffer })[1]
  client:exec_cmd(grid, { bufnr = buffer })
  wait("the grid", function()
    for _, window in ipairs(vim.api.nvim_list_wins()) do
      if vim.api.nvim_win_get_config(window).relative ~= "" then
        return vim.api.nvim_buf_get_lines(vim.api.nvim_win_get_buf(window), 0, 1, false)[1]:find("rank 0", 1, true)
      end
    end
  end)
  vim.cmd("fclose!")
end

function tests.stops()
  local client = vim.lsp.get_clients({ bufnr = buffer })[1]
  client:stop()
  wait("the end of the server", function() return client:is_stopped() end)
end

local order = { "attaches_by_itself", "diagnostics_follow_what_is_typed", "completes_while_keys_are_pressed", "colours_folds_and_indents", "jumps", "renames", "formats", "hints_tokens_hover_lenses", "stops" }
local failed = false
for _, name in ipairs(order) do
  local passed, message = xpcall(tests[name], debug.traceback)
  io.write((passed and "ok      " or "FAILED  ") .. name .. (passed and "" or "\n" .. message) .. "\n")
  failed = failed or not passed
end
os.exit(failed and 1 or 0)
