"""What does the conformance suite expect of a server? A pack with every tool, prompt and resource it asks for."""

from pathlib import Path

from mcp_server.model.tool_packs import Pack
from tests.conformance import contents, questions, readings

MODE = "conformance"
FIXTURES = Pack(
    name=MODE,
    tools=(*contents.TOOLS, *questions.TOOLS),
    prompts=readings.PROMPTS,
    resources=readings.RESOURCES,
    templates=readings.TEMPLATES,
    menus=(str(Path(__file__).parent / "menus"),),
    longest_name=42,
)
