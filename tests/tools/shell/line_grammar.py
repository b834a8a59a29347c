"""Writes lines of shell at random: harmless ones, and ones that hide a command, an option or a write."""

from dataclasses import dataclass
from random import Random

HOSTILE_TEXT = (
    "canary",
    "-delete",
    "-exec",
    "$(canary)",
    "a[$(canary)]",
    "`canary`",
    "; canary",
    "-i",
    "-o",
    "*",
    "-v",
)
READERS = "ls cat head wc sort uniq grep cut tr stat du basename git rg jq diff date file tree".split()  # noqa: SIM905
BUILDERS = "python3 pytest make npm ruff mkdir touch node chmod".split()  # noqa: SIM905
CANARIES = "canary rm cp curl python perl sudo".split()  # noqa: SIM905
BUILTIN_NAMES = """
echo printf test [ [[ read unset set export exit true : cd type command wait jobs shift eval exec let declare trap alias
. source
"""
BUILTINS = BUILTIN_NAMES.split()
NAMES = ("x", "y", "X", "PATH", "IFS", "line", "a[$(canary)]", "BASH_ENV", "PYTHONPATH", "CI")
OPTIONS = (
    *(
        "-l",
        "-n",
        "-r",
        "-c",
        "1",
        "-type",
        "f",
        "-name",
        "-print0",
        "-maxdepth",
        "-n1",
        "-I{}",
        "{}",
        "-0",
        "-e",
        "-E",
    ),
    *("-delete", "-o", "-i", "-s", "-p", "-x", "-w", "--output=fired", "-exec", "-execdir", "+", "\\;", "';'", "-ok"),
    *("-fprint", "-f", "-m", "--pre", "-v", "-a", "-eq", "=", "!", "]", "]]", "status", "log", "push", "config"),
    *("-C", "--", "install", "test", "+x", "777", "-R", "-nt", "\\(", "\\)"),
)
AWK = (
    *("'{print $1}'", "'NR<3'", "'/a|b/{n++} END{print n/2}'", "'{system(\"canary\")}'", "'{print > \"fired\"}'"),
    *("'{print | \"canary\"}'", "'BEGIN{\"canary\" | getline}'", "'$1 > 2 {print}'", '"{print \\$1}"', '"$x"'),
    *("'{print 1,\n2 > \"fired\"}'", '\'BEGIN{print /"/; system("canary"); y=/"/}\'', "'{x = 1 /2/ 3}'", "-f", "a.txt"),
    *('\'{printf "%s\\n", $2 > "fired"}\'', "'BEGIN{while((getline l < \"a.txt\") > 0) print l}'", "-v", "x=1", "-F:"),
)
SED = (
    *("'s/a/b/'", "-n", "1p", "'$!N;p'", "'1e canary'", "'s/a/canary/e'", "'w fired'", "'s/a/b/w fired'", "-i", "-e"),
    *("'/[/]/e canary'", "'a x\n1e canary'", "'y/abc/xyz/'", "': a;N;$!ba'", "'s|a|b|gI'", "'/a/,/b/{p;d}'", "'r x'"),
    *(
        "-E",
        "-f",
        "'1!G;h;$!d'",
        "'s/[/]/w fired/'",
        "'i\\\ne canary'",
        "'{e canary\n}'",
        "'s/a/b\\\n/e'",
        "-s",
        "'#n'",
    ),
)


@dataclass
class LineGrammar:
    random: Random
    depth: int = 0

    def line(self) -> str:
        count = self.random.choices((1, 2, 3), (6, 3, 1))[0]
        parts = [self.command() for _ in range(count)]
        signs = (";", " &&", " ||", " |", "\n", " |&", " &")
        return "".join(part + self.random.choice(signs) + " " for part in parts[:-1]) + parts[-1]

    def inner(self) -> str:
        if self.depth > 2:
            return "canary" if self.random.random() < 0.2 else "ls"
        self.depth += 1
        line = self.line()
        self.depth -= 1
        return line

    def command(self) -> str:
        kind = self.random.random()
        if kind < 0.7 or self.depth > 2:
            return self.simple()
        loop = f"for {self.random.choice(NAMES)} in {self.words()}; do {self.inner()}; done"
        return self.random.choice(
            (
                f"({self.inner()})",
                f"{{ {self.inner()}; }}{self.redirection()}",
                f"! {self.simple()}",
                f"if {self.inner()}; then {self.inner()}; else {self.simple()}; fi",
                f"while read -r {self.random.choice(NAMES)}; do {self.inner()}; break; done < a.txt",
                loop,
                loop,
                f"{self.random.choice(('f', 'ls', 'cat'))}() {{ {self.inner()}; }}",
                f"case x in a) {self.inner()};; *) {self.inner()};; esac",
                f"time {self.simple()}",
            )
        )

    def simple(self) -> str:
        setting = "".join(f"{self.assignment()} " for _ in range(self.random.choices((0, 1, 2), (8, 2, 1))[0]))
        if self.random.random() < 0.08:
            return setting or "ls"
        return setting + self.program() + self.redirection()

    def program(self) -> str:
        kind = self.random.random()
        choose = self.random.choice
        if kind < 0.35:
            return f"{choose(READERS)} {self.words()}"
        if kind < 0.5:
            return f"{choose(BUILTINS)} {self.words()}"
        if kind < 0.56:
            return f"{choose(BUILDERS)} {self.words()}"
        if kind < 0.62:
            return f"{choose((*CANARIES, '$x', '*', 'c[a]nary', './canary'))} {self.words()}"
        if kind < 0.68:
            return f"awk {' '.join(choose(AWK) for _ in range(choose((1, 2))))} a.txt"
        if kind < 0.74:
            return f"sed {' '.join(choose(SED) for _ in range(choose((1, 2, 3))))} a.txt"
        if kind < 0.8:
            return f"find {choose(('.', 'src', '$x', '-'))} {self.words()} {choose(('', '-print0', '-exec ls {} +'))}"
        starter = choose(
            (
                *(
                    "timeout 5",
                    "nice",
                    "nice -n 5",
                    "env",
                    "env CI=1",
                    "env PATH=. ",
                    "xargs",
                    "xargs -0",
                    "xargs -I{}",
                ),
                *("xargs -n1", "stdbuf -oL", "command", "time", "exec", "builtin", "find . -exec", "bash -c", "sh -c"),
            )
        )
        if starter.endswith("-c"):
            return f"{starter} '{self.inner().replace(chr(39), chr(34))}' {self.words()}"
        return f"{starter} {self.program()}{choose(('', ' {} ' + chr(92) + ';'))}"

    def words(self) -> str:
        return " ".join(self.word() for _ in range(self.random.choice((0, 1, 1, 2, 3))))

    def word(self) -> str:
        kind, choose = self.random.random(), self.random.choice
        if kind < 0.3:
            return choose(("a.txt", "src", "b", "'a b'", '"a b"', "'*.txt'", "src/a", "5", '"x$"', '"a\\.b"', "-"))
        if kind < 0.6:
            return choose(OPTIONS)
        if kind < 0.75:
            return choose(('"$x"', "$x", "${x}", '"src/$x"', "src/$x", "$?", "$#", '"$@"', "${x%.py}", "${x:-y}", "$$"))
        if kind < 0.82:
            return choose(
                ("*", "*.txt", "src/*", "?", "src/{a,b}", "{a,b}", ".{env,x}", "~", "{1..3}", '""*', "-{o,u}")
            )
        if kind < 0.88:
            return choose((*(f"'{text}'" for text in HOSTILE_TEXT), "'a[$(canary)]'"))
        if kind < 0.94:
            return choose((f"$({self.inner()})", f'"$({self.inner()})"', f"<({self.inner()})", f"`{self.inner()}`"))
        return choose(
            ("${x@P}", "${!x}", "$((x))", "${x:y}", "${x:=y}", "$[x]", "${x:-$(canary)}", "$'\\x63anary'", "${y[x]}")
        )

    def assignment(self) -> str:
        values = ("5", "'$(canary)'", "'a[$(canary)]'", "canary", "-delete", ".", "$x", "$(ls)", "'-exec canary {} ;'")
        return f"{self.random.choice(NAMES)}={self.random.choice(values)}"

    def redirection(self) -> str:
        if self.random.random() < 0.7:
            return ""
        choose = self.random.choice
        body = choose(
            ("text", "$x", "${x@P}", "$(canary)", "`canary`", "${x%.py} it", "$((x))", "\\$(canary)", "canary")
        )
        end = choose(("EOF", "'EOF'"))
        return choose(
            (
                *(" 2>&1", " > /dev/null", " 2>/dev/null", " < a.txt", ' <<< "$x"', f" <<{end}\n{body}\nEOF\n"),
                *(" > fired", " >> src/fired", " > ../fired", ' > "$x"', " &> fired", " > .mcp.json", " <> fired"),
                *(" > >(canary)", " < <(canary)", " < $x", " >| fired", " 3> fired", " >&fired"),
            )
        )
