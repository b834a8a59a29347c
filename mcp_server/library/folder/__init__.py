"""What does the workspace itself say, and how much of it counts?"""

from mcp_server.library.folder.own import FILE, FOLDER, PROMPTS, Own, own_of

__all__ = ["FILE", "FOLDER", "PROMPTS", "Own", "own_of"]
