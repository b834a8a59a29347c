"""lsp_tool: what a language server knows about the code."""
