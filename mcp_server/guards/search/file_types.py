"""Which files belong to a type, and which are not searched because they usually hold secrets?"""

import difflib
from functools import lru_cache

from mcp_server.model.files import is_secret
from mcp_server.model.results import Code, Problem, Refusal

GLOBS_BY_TYPE: dict[str, tuple[str, ...]] = {
    "c": ("*.c", "*.h"),
    "cpp": ("*.cc", "*.cpp", "*.cxx", "*.hh", "*.hpp", "*.hxx", "*.h", "*.inl"),
    "csharp": ("*.cs",),
    "css": ("*.css", "*.scss", "*.sass", "*.less"),
    "csv": ("*.csv", "*.tsv"),
    "dart": ("*.dart",),
    "docker": ("Dockerfile", "Dockerfile.*", "*.dockerfile"),
    "elixir": ("*.ex", "*.exs", "*.heex"),
    "go": ("*.go",),
    "haskell": ("*.hs",),
    "html": ("*.html", "*.htm", "*.xhtml"),
    "java": ("*.java",),
    "js": ("*.js", "*.jsx", "*.mjs", "*.cjs", "*.vue"),
    "json": ("*.json", "*.jsonl", "*.json5", "*.jsonc"),
    "kotlin": ("*.kt", "*.kts"),
    "log": ("*.log",),
    "lua": ("*.lua",),
    "make": ("Makefile", "makefile", "GNUmakefile", "*.mk", "CMakeLists.txt", "*.cmake"),
    "md": ("*.md", "*.markdown", "*.mdx"),
    "php": ("*.php",),
    "proto": ("*.proto",),
    "py": ("*.py", "*.pyi"),
    "r": ("*.r", "*.R", "*.Rmd"),
    "ruby": ("*.rb", "*.rake", "*.gemspec", "Gemfile", "Rakefile"),
    "rust": ("*.rs",),
    "scala": ("*.scala", "*.sbt"),
    "sh": ("*.sh", "*.bash", "*.zsh", "*.fish"),
    "sql": ("*.sql",),
    "svelte": ("*.svelte",),
    "swift": ("*.swift",),
    "terraform": ("*.tf", "*.tfvars"),
    "toml": ("*.toml",),
    "ts": ("*.ts", "*.tsx", "*.mts", "*.cts"),
    "txt": ("*.txt", "*.rst"),
    "vue": ("*.vue",),
    "xml": ("*.xml", "*.xsd", "*.xsl", "*.svg"),
    "yaml": ("*.yaml", "*.yml"),
    "zig": ("*.zig",),
}
ALIASES = {
    "python": "py",
    "javascript": "js",
    "jsx": "js",
    "typescript": "ts",
    "tsx": "ts",
    "rs": "rust",
    "rb": "ruby",
    "golang": "go",
    "c++": "cpp",
    "cs": "csharp",
    "bash": "sh",
    "shell": "sh",
    "markdown": "md",
    "yml": "yaml",
    "kt": "kotlin",
    "tf": "terraform",
    "h": "c",
}


def find_type_globs(type_name: str) -> tuple[str, ...]:
    """Return the globs of a type, or refuse and name the nearest types."""
    name = type_name.lower().removeprefix(".")
    name = ALIASES.get(name, name)
    if name in GLOBS_BY_TYPE:
        return GLOBS_BY_TYPE[name]
    nearest = difflib.get_close_matches(name, [*GLOBS_BY_TYPE, *ALIASES], 3)
    raise Refusal(
        Problem(
            Code.INVALID_ARGUMENTS,
            f"`{type_name}` is not a known file type.",
            (f"Did you mean {', '.join(f'`{alias}`' for alias in nearest)}? " if nearest else "")
            + f"The types are {', '.join(GLOBS_BY_TYPE)}. For other files use `glob`, such as `*.{name}`.",
        )
    )


def may_hold_secrets(path: str) -> bool:
    """Does this file usually hold secrets? Cached by folder and by name, because those recur and whole paths do not."""
    folder, _, name = path.rpartition("/")
    return _is_secret_cached(name) or (bool(folder) and _is_secret_cached(f"{folder}/-"))


_is_secret_cached = lru_cache(1 << 14)(is_secret)
