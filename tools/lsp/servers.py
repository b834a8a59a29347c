"""Which language servers are there, for which files, and how is each started?

A server is one of these or none: no name, command or setting of one is ever taken from the workspace. `inert` says that
a server was seen to run nothing of the project it looks at, which the tests see again wherever it is installed; the
others start build scripts, plugins or interpreters that a project names, and are for a trusted project.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from mcp_server.model import protected
from mcp_server.model.posture import Profile
from mcp_server.model.tools import Arguments, Demand, Effect


@dataclass(frozen=True, slots=True)
class LanguageServer:
    argv: tuple[str, ...]
    install: str
    """How the person gets it."""
    inert: bool = False
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What it is told at its start."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What it hears when it asks, by section."""
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    encodings: tuple[str, ...] = ("utf-8", "utf-16")
    """What columns it is asked to count in, the best first."""
    ready: str = ""
    """How its log says that it has seen which files there are, where it does not announce that otherwise."""
    note: str = ""
    """What its answers leave out, for whoever reads them."""

    @property
    def name(self) -> str:
        return self.argv[0]


@dataclass(frozen=True, slots=True)
class Language:
    name: str
    suffixes: Mapping[str, str]
    """The protocol's name for each kind of file."""
    servers: tuple[LanguageServer, ...]
    """The best first."""
    watched: tuple[str, ...] = ()
    """Names of further files that its servers look at."""

    @property
    def glob(self) -> str:
        return ";".join([*(f"*{suffix}" for suffix in self.suffixes), *self.watched])


TY = LanguageServer(("ty", "server"), "pip install 'menugate[lsp]', or pip install ty", inert=True)
PYRIGHT = LanguageServer(
    ("pyright-langserver", "--stdio"),
    "pip install 'pyright[nodejs]', or npm install -g pyright",
    inert=True,
    settings={"python.analysis": {"diagnosticMode": "openFilesOnly"}},
    ready=r"Found \d+ source file|No source files found",
    # Its launcher would look for a newer one.
    env={"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
)
JEDI = LanguageServer(
    ("jedi-language-server",),
    "pip install 'menugate[lsp]', or pip install jedi-language-server",
    options={"diagnostics": {"enable": True}, "workspace": {"environmentPath": None}},
    # It counts in characters, whatever it says when it is asked for less.
    encodings=("utf-32", "utf-16"),
    note="it knows syntax errors only",
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
    """Reading, whatever is asked; but a server that may run what the project says is for a trusted project."""
    path, named = str(args.get("path", "")), BY_NAME.get(str(args.get("server")))
    language = find_language(path)
    could = (named,) if named else language.servers if language else ()
    inert = not could or any(server.inert for server in could)
    return Demand(
        Effect.READ_LOCAL, Profile.RESTRICTED if inert else Profile.TRUSTED, protected.describe_read_risk(path)
    )
