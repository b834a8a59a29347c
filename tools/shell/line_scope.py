"""What does the line say about the variables of one command, and may the command set its own?"""

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import dropwhile, islice, product

from msgspec import Struct

from mcp_server.model.shell import ShellWord, WordRole
from mcp_server.model.text import quote_text
from tools.shell.arithmetic import judge_arithmetic, read_arithmetic
from tools.shell.expansions import require_plain_expansion
from tools.shell.line_steps import DECLARING, MOVING
from tools.shell.line_values import NO_VALUES, PASSING_ON, Values
from tools.shell.shell_builtins import BUILTIN_NAMES
from tools.shell.variables import is_own_variable, judge_assignment, judge_variable, require_own_variable
from tools.shell.verdicts import CommandKind, NeedsApproval
from tools.shell.word_values import HERE, MOST_TEXTS, SAFE, Value, evaluate_word, spell_source

REDIRECTION = re.compile(r"(?:\d*|&)(<<<|<<-?|<>|<&|>&|>>|>\||<|>)")
LOOKED_AT = re.compile(r'\d+|"?\$\$"?|"\$\w+"|"\$\{\w+\}"')
AS_WRITTEN = frozenset(("kill", "let"))
"""They are judged by the variables in their words."""


class LineScope(Struct, frozen=True):
    values: Values
    """What is known of the variables of the whole line."""
    sure: frozenset[str] = frozenset()
    """What the line has surely set by now."""

    def is_number(self, name: str, begun: frozenset[str] = frozenset()) -> bool:
        return self.values.find(name, self.sure | begun).is_counting()

    def find(self, name: str) -> Value:
        return self.values.find(name, self.sure)

    def is_defined(self, name: str) -> bool:
        """True if the line has surely defined this function, and takes it back nowhere."""
        key = f"{name}()"
        return key in self.sure and not self.values.is_open and key not in self.values.known

    def spell_all(self, words: Sequence[ShellWord]) -> Sequence[Sequence[ShellWord]]:
        """Return the words with the values of their variables: once for each choice of these, where that is known."""
        programs = dropwhile(lambda word: word.role is not WordRole.WORD or word.text in PASSING_ON, words)
        name = next(iter(programs), None)
        if name and name.text in AS_WRITTEN:
            return [words]
        # Only what stands there itself can be a builtin that sets variables.
        if name and not name.known and any(one.text in BUILTIN_NAMES for one in self._spell(name, False)):
            return [words]
        is_moving = name is not None and name.text in MOVING
        choices = list(islice(product(*(self._spell(word, is_moving) for word in words)), MOST_TEXTS + 1))
        return [words] if len(choices) > MOST_TEXTS or (is_moving and len(choices) > 1) else choices

    def _spell(self, word: ShellWord, is_moving: bool) -> Sequence[ShellWord]:
        """Write the word out, where the line itself says what its variables contain."""
        if word.known or word.role not in (WordRole.WORD, WordRole.TARGET):
            return (word,)
        sign = REDIRECTION.match(word.source) if word.role is WordRole.TARGET else None
        source = word.source[sign.end() :].lstrip() if sign else word.source
        spellings = spell_source(source, self.find)
        # Which file a number names may matter.
        if spellings is None or (sign is not None and any(one.is_number for one in spellings)):
            return (word,)
        if any(HERE in one.text for one in spellings) and not (sign or is_moving):
            return (word,)
        written = sign[0] if sign else ""
        return [ShellWord(one.text, f"{written}{one.source}", word.role) for one in spellings]

    def judge_setting(self, word: ShellWord) -> CommandKind:
        """Judge `x=5`, `a[0]=5`, or the `a=` of an array."""
        name, given, source = word.source.partition("=")
        if subscript := re.fullmatch(r"(\w+)\[([^]]*)\](\+?)", name):
            require_plain_expansion(f"${{{subscript[1]}[{subscript[2]}]}}", self.is_number)
            require_own_variable(subscript[1])
            return CommandKind.READS
        value = evaluate_word(source, self.find) if given and not word.known else None
        if value and (value.is_number or (value.texts is not None and len(value.texts) == 1)):
            text = "0" if value.is_number else next(iter(value.texts or ()))
            return judge_variable(name.removesuffix("+"), text, exported=False)
        return judge_assignment(word, exported=False)

    def judge_declaration(self, words: Sequence[ShellWord]) -> CommandKind:
        """Judge `local x=5` and the like. Other options would give the value another meaning."""
        for word in words[1:]:
            name, given, source = word.source.partition("=")
            if word.source == "-a" and words[0].text != "readonly":
                continue
            require_own_variable(name.removesuffix("+"))
            value = evaluate_word(source, self.find)
            is_plain = value.is_number or all(SAFE.fullmatch(one) for one in value.texts or ("",))
            # A text in brackets would be computed, if it becomes an array.
            is_new = words[0].text == "local" and words[1].source != "-a" and name not in self.values.arrays
            if (words[0].text == "readonly" or (source and not is_new)) and not (given and is_plain):
                raise NeedsApproval(f"bash may do more with {quote_text(word.source)} than set a variable")
        return CommandKind.READS

    def judge_kill(self, words: Sequence[ShellWord]) -> CommandKind:
        """Judge `kill $!` and `kill %1`, which end what the line has started. `kill -0` only looks for a process."""
        if len(words) == 3 and words[1].source == "-0" and LOOKED_AT.fullmatch(words[2].source):
            return CommandKind.READS
        for at, word in enumerate(words[1:]):
            name = re.fullmatch(r"\"?\$\{?([A-Za-z_]\w*)\}?\"?", word.source)
            is_own = name is not None and self.find(name[1]).is_job
            is_signal = at == 0 and re.fullmatch(r"-[A-Z0-9]+", word.source)
            if not (is_own or is_signal or re.fullmatch(r"\$!|\"\$!\"|%(?:\d+|[%+-])", word.source)):
                raise NeedsApproval(f"{quote_text(word.source)} may be a process that the line has not started")
        return CommandKind.READS

    def judge_let(self, words: Sequence[ShellWord]) -> CommandKind:
        for word in words[1:]:
            read = read_arithmetic(word.text) if word.known else None
            judge_arithmetic(word.source, read, self.is_number, is_own_variable)
        return CommandKind.READS


NO_SCOPE = LineScope(NO_VALUES)
SCOPED_BUILTINS: Mapping[str, Callable[[LineScope, Sequence[ShellWord]], CommandKind]] = {
    **dict.fromkeys(sorted(DECLARING - {"export"}), LineScope.judge_declaration),
    "kill": LineScope.judge_kill,
    "let": LineScope.judge_let,
}
