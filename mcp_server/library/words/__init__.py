"""The words a model and a person get: where they lie, what is put into them, and how they are composed."""

from mcp_server.library.words.checking import INVENTORY, faults_in
from mcp_server.library.words.composing import composed, keys_for
from mcp_server.library.words.filling import VARIABLES, filled, names_in
from mcp_server.library.words.finding import Place, Unspeakable, Words
from mcp_server.library.words.wording import objections

__all__ = [
    "INVENTORY",
    "VARIABLES",
    "Place",
    "Unspeakable",
    "Words",
    "composed",
    "faults_in",
    "filled",
    "keys_for",
    "names_in",
    "objections",
]
