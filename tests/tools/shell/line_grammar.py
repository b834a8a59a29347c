"""Writes lines of shell at random: harmless ones, and ones that hide a command, an option or a write."""

from dataclasses import dataclass
from random import Random

HOSTILE_TEXT = (
    "a[$(canary)]",
    "canary",
    "-delete",
    "-exec",
    "$(canary)",
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
SETTINGS = (
    *("x=3", "x=0", "x='a[$(canary)]'", "x=$y", "y=$x", "x=$((x + 1))", "y=$((x))", "x+=1", "x+=']'", "x=", "x=-f"),
    *("read -r x < a.txt", "read x y < a.txt", "x=$(cat a.txt)", "x=$(wc -l < a.txt)", "x=$(seq 2)", "x=$(ls | wc -l)"),
    *("declare -i x", "declare -n x=y", "local x", "local x=3", "readonly x=3", "declare x=5", "mapfile x < a.txt"),
    *("printf -v x %s 'a[$(canary)]'", "unset x", "unset f", "x=canary", "x=ls", "x='a b'", "x='*'", "x=a.txt", "y=3"),
    *("a=(1 2)", "a=('a[$(canary)]' canary)", "a+=(3)", "a[x]=1", "a[0]=5", "a=($x)", "a=([x]=1)", "a=($(cat a.txt))"),
    *(": ${x:=3}", ": ${x:='a[$(canary)]'}", "((x = 3))", "((x++))", "let x=3", "let 'x = y'", "x=$?", "x=$!", "x=$$"),
    *("command read x < a.txt", "time read x < a.txt", "export x=3", "x=3 true", "x=$RANDOM", 'x="$y"', "i=0"),
    *(
        "d=$(mktemp -d)",
        "t=$(mktemp)",
        "d=src",
        "d=$PWD",
        "trap 'canary' EXIT",
        "trap 'x=3; rm -rf \"$d\"' EXIT",
        "set -- $x",
    ),
    *("y='([$(canary)]=1)'", 'declare -a x="$y"', 'declare x="$y"', 'f() { local x="$1"; }; f "$y"', "local x=$y"),
    *("eval x=3", "source a.txt", "getopts a x", "IFS=3", "shift", "f() { x='a[$(canary)]'; }", "f() { x=3; }", "f"),
    *("f() { local x; g; }", "g() { echo $((x)); }", "f() { canary; }", "ls() { canary; }", "g", "cd src", 'cd "$d"'),
)
USES = (
    *(
        "[ $x = 3 ]",
        "[ $x -lt 3 ]",
        "[[ $x -eq 3 ]]",
        "[[ $x == a* ]]",
        "echo $((x + 1))",
        "((x++))",
        "((x > 2))",
        "let x++",
    ),
    *(
        "echo ${y:$x:1}",
        "echo ${y:x:1}",
        "echo ${a[$x]}",
        "echo ${a[x]}",
        'echo "${a[@]}"',
        "echo ${a[0]}",
        "echo ${!a[@]}",
    ),
    *("test $x = 3", 'cat < "$x"', "cat < $x", 'wc -l < "$x"', "find . -name $x", "find . $x", "sort $x", 'sort "$x"'),
    *("$x a.txt", '"$x"', "f $x", "g", 'echo hi > "$x"', "echo hi > $x.txt", 'echo hi > "$d/o"', 'rm -rf "$d"'),
    *(
        'rm -rf "${d}x"',
        'rm -f "$t"',
        "kill $x",
        "kill $!",
        "kill %1",
        "echo ${x:-$y}",
        "echo ${x//a/$y}",
        "echo ${x@P}",
    ),
    *(
        "echo ${y:$x}",
        "echo $(($x))",
        "echo $((a[x]))",
        "echo ${x:?no}",
        "[ $x ]",
        "[ -f $x ]",
        "[ ! $x ]",
        "command $x",
    ),
    *(
        "bash -c 'echo $((x))'",
        "xargs $x",
        "cd $x",
        'cd "$d/b"',
        "for x in $x; do echo $((x)); done",
        "echo $(( (x+1) * 2 ))",
    ),
    *(
        "case $x in 3) canary;; esac",
        "case $x in a|$y) ls;; *) echo $((x));; esac",
        "cat <<E\nit's $x $((x)) `ls` $(ls)\nE\n",
    ),
    *("cat <<E\nit's `canary`\nE\n", "cat <<E\nit's ${x:-'}'$(canary)}\nE\n", "echo $((x) + (x))", "((x) * (canary))"),
)
LOOPS = (
    *(
        "for x in 1 2; do {}; done",
        "for x in *; do {}; done",
        "for x in $(cat a.txt); do {}; done",
        "for x in {{1..3}}; do {}; done",
    ),
    *(
        'for x in "${{a[@]}}"; do {}; done',
        "k=0; for ((x=0; x<2; x++)); do {}; ((k++)) && break; done",
        "for ((x=y; x<2; x++)); do {}; break; done",
    ),
    *(
        "while read -r x; do {}; break; done < a.txt",
        "x=0; while [ $x -lt 2 ]; do {}; x=$((x+1)); break; done",
        "if true; then {}; fi",
    ),
    *(
        "false && {{ {}; }}",
        "({})",
        "{{ {}; }} | cat",
        "f() {{ {}; }}; f",
        "{{ {}; }} &",
        "case a in b) {};; esac",
        "! {}",
    ),
    *(
        "until true; do {}; done",
        "true || {}",
        "time {}",
        "if false; then :; else {}; fi",
        "x=3 && {}",
        "function g {{ {}; }}; g 1",
    ),
)
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
        return self.values() if self.depth == 0 and self.random.random() < 0.35 else self.commands()

    def values(self) -> str:
        """Write a line that sets variables in one way and uses them in another."""
        choose = self.random.choice
        parts = [choose(choose((SETTINGS, SETTINGS, USES))) for _ in range(choose((1, 2, 2, 3, 4)))]
        for _ in range(choose((0, 1, 1, 2))):
            at = self.random.randrange(len(parts))
            parts[at] = choose(LOOPS).format(parts[at])
        signs = ("; ", "; ", "; ", "; ", "\n", " && ", " || ", " | ", " & ")
        return "".join(part + ("\n" if "\nE" in part else choose(signs)) for part in parts) + choose(USES)

    def commands(self) -> str:
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
