"""Which developers' programs only look, and with which words? They run where nothing can be written.

Left out: options that load a plugin, run a program, take more options from a file, or write.
"""

import re
from collections.abc import Sequence

from tools.shell.allowed_words import (
    allow_any_of,
    allow_exactly,
    allow_first_word,
    allow_names,
    allow_only,
    allow_version,
    has_no_words,
    require_word,
    without_response_files,
)
from tools.shell.program_arguments import Fits, is_certain

FILE = r"(?!-)[\w./@%:+,=~^-]+"
SYSTEM_FILE = r"/(?:usr/)?(?:s?bin|lib\w*)/(?!.*\.\.)[\w./+-]+"
READING_SQL = re.compile(r"\s*(?:select|explain|with|pragma|values)\b", re.IGNORECASE)
SELECTING = re.compile(r"\s*select\b[^;]*;?\s*", re.IGNORECASE)
ACTING_SQL = re.compile(
    r"\bedit\b|load_extension|writefile|readfile|fsdir|attach|detach|vacuum|into|tokenizer|journal|writable|temp_store|lsmode",
    re.IGNORECASE,
)
"""Functions of `sqlite3` start programs, load code and touch other files; a name in it may be quoted, but not spelled
otherwise."""
SQLITE_FLAGS = re.compile(
    "--?(?:readonly|safe|bail|batch|box|column|csv|header|noheader|html|json|line|list|markdown|quote|table)"
)
SHOWING_TABLES = re.compile(r"\.(?:tables|schema|fullschema|indexes|databases|dbinfo)(?: [\w%]+)?")


def is_reading_database(words: Sequence[str]) -> bool:
    """Without a statement, `sqlite3` runs what it reads, and with it commands that begin with a dot."""
    flags = [word for word in words if word.startswith("-")]
    names = words[len(flags) :]
    if len(names) < 2 or not all(map(is_certain, words)) or not all(map(SQLITE_FLAGS.fullmatch, flags)):
        return False
    if any(name.startswith("-") for name in names) or not re.fullmatch(r"[\w./-]+|:memory:", names[0]):
        return False
    is_read_only = any(flag.lstrip("-") == "readonly" for flag in flags)
    return all(_is_reading_statement(one, is_read_only) for one in names[1:])


def _is_reading_statement(text: str, is_read_only: bool) -> bool:
    if text.startswith("."):
        return SHOWING_TABLES.fullmatch(text) is not None
    begins = READING_SQL.match(text) if is_read_only else SELECTING.fullmatch(text)
    return begins is not None and not ACTING_SQL.search(text) and not re.search(r"\n\s*[./]", text)


def is_checking_syntax(words: Sequence[str]) -> bool:
    """`ruby -c FILE`, `php -l FILE` and the like parse the file and do not run it."""
    return len(words) > 1 and allow_names(words[1:])


DOCKER_SHOWS = allow_only(
    r"-[aqst]+|-n\d*|--(?:all|quiet|no-trunc|size|latest|timestamps|digests|no-color|services|volumes|images|profiles)",
    "--(?:format|filter|last|tail|since|until|status|type)(?:=.*)?",
)
COMPOSE = {
    **dict.fromkeys(("ps", "logs", "images", "top", "ls", "version", "port"), DOCKER_SHOWS),
}
DOCKER = {
    **dict.fromkeys(
        ("ps", "images", "logs", "top", "port", "history", "version", "info", "diff", "stats"), DOCKER_SHOWS
    ),
    **{
        name: allow_first_word({"ls": DOCKER_SHOWS, "list": DOCKER_SHOWS})
        for name in ("container", "image", "volume", "network", "context")
    },
    "compose": allow_first_word(COMPOSE),
}
KUBECTL_SHOWS = allow_exactly(
    r"(?!.*(?i:secret))[\w./,:-]*|-[AwL]|-n|-l|-c|--(?:all-namespaces|show-labels|no-headers|watch|previous|short|client)"
    r"|--(?:namespace|selector|field-selector|tail|since|sort-by|container)(?:=(?!.*(?i:secret))[\w./,=:!{}-]*)?"
    r"|-o=?(?:wide|name|json|yaml)?|--output=(?:wide|name|json|yaml)"
)
KUBECTL = {
    **dict.fromkeys(
        ("get", "describe", "logs", "top", "version", "cluster-info", "api-resources", "explain"), KUBECTL_SHOWS
    ),
    "config": allow_exactly("current-context|get-contexts", 1, 1),
}
CERTIFICATE = allow_exactly(
    rf"-(?:in|inform|noout|text|subject|issuer|dates|startdate|enddate|fingerprint|serial|pubkey|modulus|purpose|hash|email"
    rf"|sha1|sha256|ext|checkend|checkhost|verify|nameopt)|{FILE}"
)
OPENSSL = {
    # Without `-noout`, it prints the same once more.
    **dict.fromkeys(("x509", "req", "crl"), require_word(CERTIFICATE, "-in")),
    "version": allow_exactly("-[abdefpv]"),
    **dict.fromkeys(("dgst", "sha256", "md5"), allow_exactly(rf"-(?:sha1|sha256|sha384|sha512|md5|r|hex)|{FILE}")),
    "rand": allow_exactly(r"-(?:hex|base64)|\d{1,4}", 1, 2),
}
LOOKING: dict[str, Fits] = {
    "shellcheck": allow_only(
        "-[axCV]+|-[sefoPSW].*",
        "--(?:shell|severity|exclude|include|enable|format|color|source-path|external-sources|norc|list-optional)(?:=.*)?",
    ),
    "hadolint": allow_only(
        "-[ft]|--(?:format|ignore|failure-threshold|no-color|no-fail|trusted-registry|verbose)(?:=.*)?"
    ),
    "yq": allow_only(
        r"-[rePMCcjn0]+|-[oIp].*",
        "--(?:output-format|input-format|indent|unwrapScalar|prettyPrint|no-colors|colors|exit-status|null-input"
        "|raw-output|raw-input|compact-output|tab|arg|argjson|yaml-output)(?:=.*)?",
    ),
    "nm": without_response_files(
        allow_only("-[aABCDglnoprSu]+", "--(?:demangle|defined-only|undefined-only|dynamic|size-sort)")
    ),
    "objdump": without_response_files(
        allow_only(
            "-[adDfhHprRsStTxCwlz]+",
            "-[jM].*",
            "--(?:disassemble(?:-all|-zeroes)?|demangle|syms|dynamic-syms|headers|all-headers|section|(?:no-)?show-raw-insn"
            "|no-addresses|source|line-numbers|reloc|wide|full-contents|start-address|stop-address)(?:=.*)?",
        )
    ),
    "readelf": without_response_files(
        allow_only(
            "-[ahlSgtesnrudVADcWI]+", r"-[xpR][\w.]+", "--(?:all|headers|symbols|dynamic|wide|sections|segments|notes)"
        )
    ),
    "bc": allow_only("-[lqs]+"),
    "uuidgen": allow_only("-[rt]"),
    "size": without_response_files(allow_only("-[ABdoxt]+")),
    "c++filt": without_response_files(allow_only("-[_nprt]+")),
    "addr2line": without_response_files(allow_only("-[aCfips]+|-e.*")),
    # It starts the program's own loader, so only files of the system.
    "ldd": allow_exactly(SYSTEM_FILE, 1),
    "openssl": allow_first_word(OPENSSL),
    "sqlite3": is_reading_database,
    **dict.fromkeys(("bzcat", "xzcat", "zstdcat", "lz4cat"), allow_names),
    "gunzip": lambda words: (
        words[:1] in (("-c",), ("-cd",), ("-dc",), ("--stdout",), ("-l",)) and allow_names(words[1:])
    ),
    **dict.fromkeys(
        ("bzip2", "xz", "zstd"),
        lambda words: words[:1] in (("-dc",), ("-cd",), ("-l",)) and allow_names(words[1:]),
    ),
    "clang-format": allow_only(
        "-n|--dry-run|--?(?:style|fallback-style|lines|assume-filename|Werror|verbose)(?:=.*)?", "--list-ignored"
    ),
    "gofmt": allow_only("-[ldse]+"),
    # `--dry-run` neither writes nor starts the editor that a patch may be meant for.
    "patch": require_word(
        allow_only(
            r"-p\d*|-[NRsulE]+|-i|--(?:dry-run|forward|reverse|strip=\d+|verbose|silent|quiet|unified|batch|input=.*)"
        ),
        "--dry-run",
    ),
    "docker": allow_first_word(DOCKER),
    "docker-compose": allow_first_word(COMPOSE),
    "podman": allow_first_word({name: fits for name, fits in DOCKER.items() if name != "compose"}),
    "kubectl": allow_first_word(KUBECTL),
    "helm": allow_first_word(
        {
            "lint": allow_only("--(?:strict|quiet|with-subcharts)|--(?:values|set|set-string)(?:=.*)?|-f.*"),
            "version": has_no_words,
        }
    ),
    "terraform": allow_first_word(
        {
            "fmt": require_word(
                allow_exactly(rf"-(?:check|diff|recursive|list=\w+|write=false|no-color)|{FILE}"), "-check"
            ),
            "version": allow_exactly("-json"),
        }
    ),
    "ss": allow_exactly(r"-[ltnpuaxo46seimrHw]+|(?:sport|dport|state|and|or|=|:?\w+)"),
    "netstat": allow_exactly("-[tulpnaresi46wxc]+"),
    "lsof": allow_exactly(rf"-[inPtlUaw]+|-[ipcus][\w:@.,]*|{FILE}"),
    "pgrep": allow_only("-[aflnoxcvwiu]+|-[uPgst].*"),
    **dict.fromkeys(
        ("lscpu", "lsblk", "locale", "vmstat", "who", "w", "users", "getconf"), allow_only("-[abdhilmnoptwJSxT]+")
    ),
    # Pages are text; `man ./x` would format a file.
    "man": allow_any_of(allow_exactly(r"[\w][\w.+:-]*", 1, 2), allow_exactly(r"-[kf]|[\w][\w.+:-]*", 2, 2)),
    **dict.fromkeys(("whatis", "apropos", "whereis"), allow_exactly(r"[\w.+-]+", 1)),
    "tput": allow_exactly("cols|lines|colors|sgr0|bold|dim|smul|rmul|rev|cup|el|clear|setaf|setab|[0-9]+", 1),
    "look": allow_names,
    "tsort": allow_names,
    "shuf": allow_only("-n.*|-[ez]|-i.*"),
    "factor": allow_names,
    "cal": allow_names,
    "numfmt": allow_only("--(?:to|from|suffix|padding|field)(?:=.*)?"),
    "iconv": allow_only("-[ft].*|-[cl]|--(?:from-code|to-code|list)(?:=.*)?"),
    "xmllint": require_word(
        allow_exactly(rf"--(?:noout|format|xpath|html|nonet)|(?!https?:|ftp:){FILE}|[/@\w\[(][/@\w\[\]()='*:. -]*"),
        "--noout",
        "--format",
        "--xpath",
    ),
    "ruby": allow_any_of(
        allow_version("-v", "--version"), lambda words: words[:1] in (("-c",), ("-wc",)) and is_checking_syntax(words)
    ),
    "php": allow_any_of(
        allow_version("-v", "-m", "--version"), lambda words: words[:1] == ("-l",) and is_checking_syntax(words)
    ),
    "perl": allow_version("-v", "--version"),
    **dict.fromkeys(("java", "javac"), allow_version("-version", "--version")),
    "swift": allow_version("--version"),
}
"""`--version` and `--help` alone are known for every program."""
