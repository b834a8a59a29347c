"""Which language servers does menugate know, for which files, and how is each started?

Only these: no name, command or setting of a server comes from the workspace. An `inert` server runs nothing of the
project, which the tests check wherever it is installed; the others run build scripts, plugins or interpreters that a
project names, and need a trusted project.
"""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from msgspec import Struct, field

from mcp_server.model import protected
from mcp_server.model.posture import Profile
from mcp_server.model.tools import Arguments, Demand, Effect


class LanguageServer(Struct, frozen=True):
    argv: tuple[str, ...]
    install: str
    """How the user gets it."""
    inert: bool = False
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The `initializationOptions` of the protocol."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """By section, for when it asks."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    encodings: tuple[str, ...] = ("utf-8", "utf-16")
    """Units for columns, in the order we prefer them."""
    ready_pattern: str = ""
    """Matches the line of its log that ends indexing, if it does not announce that otherwise."""
    note: str = ""
    """What its answers leave out."""

    @property
    def name(self) -> str:
        return self.argv[0]


class Language(Struct, frozen=True):
    name: str
    suffixes: Mapping[str, str]
    """The protocol's language id by file suffix."""
    servers: tuple[LanguageServer, ...]
    """The best first."""
    config_files: tuple[str, ...] = ()
    """Names of further files that its servers read."""

    @property
    def glob(self) -> str:
        return ";".join([*(f"*{suffix}" for suffix in self.suffixes), *self.config_files])


TY = LanguageServer(("ty", "server"), "pip install 'menugate[lsp]', or pip install ty", inert=True)
PYRIGHT = LanguageServer(
    ("pyright-langserver", "--stdio"),
    "pip install 'pyright[nodejs]', or npm install -g pyright",
    inert=True,
    settings={"python.analysis": {"diagnosticMode": "openFilesOnly"}},
    ready_pattern=r"Found \d+ source file|No source files found",
    # Keeps its launcher from looking for a newer version.
    env={"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
)
JEDI = LanguageServer(
    ("jedi-language-server",),
    "pip install 'menugate[lsp]', or pip install jedi-language-server",
    options={"diagnostics": {"enable": True}, "workspace": {"environmentPath": None}},
    # It counts in characters, even if it agrees to another encoding.
    encodings=("utf-32", "utf-16"),
    note="it reports syntax errors only",
)
GOPLS = LanguageServer(
    ("gopls",),
    "go install golang.org/x/tools/gopls@latest",
    env={"GOPROXY": "off", "GOFLAGS": "-mod=readonly", "GOTOOLCHAIN": "local"},
)
RUST = LanguageServer(
    ("rust-analyzer",),
    "rustup component add rust-analyzer",
    options={
        "cargo": {"buildScripts": {"enable": False}},
        "procMacro": {"enable": False},
        "checkOnSave": False,
    },
    env={"CARGO_NET_OFFLINE": "true"},
)
CLANGD = LanguageServer(("clangd", "--background-index"), "the package clangd of your system")
TYPESCRIPT = LanguageServer(
    ("typescript-language-server", "--stdio"), "npm install -g typescript-language-server typescript"
)

LANGUAGES = (
    Language(
        "Python",
        {".py": "python", ".pyi": "python"},
        (TY, PYRIGHT, JEDI),
        ("pyproject.toml", "ty.toml", "pyrightconfig.json"),
    ),
    Language("Go", {".go": "go"}, (GOPLS,), ("go.mod", "go.work")),
    Language("Rust", {".rs": "rust"}, (RUST,), ("Cargo.toml",)),
    Language(
        "C and C++",
        {
            **dict.fromkeys((".c",), "c"),
            **dict.fromkeys((".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx"), "cpp"),
        },
        (CLANGD,),
        ("compile_commands.json", "compile_flags.txt"),
    ),
    Language(
        "TypeScript and JavaScript",
        {
            **dict.fromkeys((".ts", ".mts", ".cts"), "typescript"),
            **dict.fromkeys((".js", ".mjs", ".cjs"), "javascript"),
            ".tsx": "typescriptreact",
            ".jsx": "javascriptreact",
        },
        (TYPESCRIPT,),
        ("tsconfig.json", "jsconfig.json", "package.json"),
    ),
)
BY_NAME = {server.name: server for language in LANGUAGES for server in language.servers}


def find_language(path: str) -> Language | None:
    suffix = PurePosixPath(path).suffix.lower()
    return next((language for language in LANGUAGES if suffix in language.suffixes), None)


def get_language_id(language: Language, path: str) -> str:
    return language.suffixes[PurePosixPath(path).suffix.lower()]


def demand_asking(args: Arguments) -> Demand:
    """Every command reads, but a server that may run the project's code needs the profile `trusted`."""
    path, server = str(args.get("path", "")), BY_NAME.get(str(args.get("server")))
    language = find_language(path)
    candidates = (server,) if server else language.servers if language else ()
    inert = not candidates or any(candidate.inert for candidate in candidates)
    return Demand(
        Effect.READ_LOCAL, Profile.RESTRICTED if inert else Profile.TRUSTED, protected.describe_read_risk(path)
    )
