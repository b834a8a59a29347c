"""lsp_tool: what a language server knows about the code."""

from tools.lsp.offers import LSP

__all__ = ["LSP"]
