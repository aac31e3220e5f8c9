-- Piper for Neovim 0.11: `dofile` this file, or put it into ~/.config/nvim/lua and `require("piper")`.
vim.filetype.add({ extension = { pipe = "pipe" } })
vim.lsp.config("piper", {
  cmd = { "piper", "lsp" },
  filetypes = { "pipe" },
  root_markers = { ".git" },
  settings = { piper = { values = vim.empty_dict() } }, -- such as { layers = 4 }, as `-D` gives them
})
vim.lsp.enable("piper")
vim.api.nvim_create_autocmd("FileType", {
  pattern = "pipe",
  callback = function()
    vim.bo.commentstring = "// %s"
    vim.bo.shiftwidth = 4
    vim.bo.expandtab = true
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
