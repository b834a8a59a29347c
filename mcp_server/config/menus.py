"""Which modes do the menu files define, and in which order? A new mode, or a change to one, is one more YAML file.

A file without `extends` is a mode. With `extends` and `name` it is a new mode that starts with the contents of the
other. With only `extends` it changes the other mode. Files are read folder by folder, sorted by name, so that the same
files always give the same menu."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from mcp_server.config.faults import ConfigFault, FaultCollector, SourceLocation
from mcp_server.config.reader import Fields, Leaf, read_yaml_file
from mcp_server.config.shapes import (
    BoolField,
    IntField,
    KeySpec,
    LineField,
    ListField,
    RecordField,
    fit,
    get_flag,
    get_leaf,
    get_leaves,
    get_number,
)
from mcp_server.model.menus import Mode
from mcp_server.model.text import quote_exactly

TABLES = ("stages.yaml", "work_modes.yaml", "hosts.yaml")
"""Files beside the shipped modes that are not modes. In any other folder these names are refused."""
MODE_FILES = (".yaml", ".yml")
MOST_FILES = 200
LONGEST_DESCRIPTION = 600
LAST = 1000
CARRYING = ("", "name", "extends", "tools", "add")
"""The keys that decide which mode a file's tools belong to."""
OWN = ("title", "when")
"""What a mode never inherits, because the two modes would be indistinguishable."""

NAME = LineField(
    40, r"(?!root$)[a-z][a-z0-9]*([_-][a-z0-9]+)*", "lower-case letters, digits, single `-` or `_`, not `root`"
)
TOOL = LineField(
    300,
    r"[A-Za-z0-9_-]+|[A-Za-z0-9._-]+:[A-Za-z0-9_.*?/\[\]!-]+",
    "a tool's name: letters, digits, `_` and `-`, or `server:tool`, in which `*` stands for anything",
)
TITLE = LineField(40, r".*[^0-9].*", "more than a number")
SENTENCE = LineField(240, r".*\.", "a sentence that ends with a full stop")
CLAUSE = LineField(90, r"(?![Uu]se ).*[^.]", "what follows `Use it`, such as `to read code`, without a full stop")
TRIGGERS = ListField(LineField(40, r".*[^0-9].*", "more than a number"), max_items=20)
TOOLS = ListField(TOOL, min_items=1, max_items=1000)

TEXTS = {
    "title": KeySpec(TITLE, "what people see instead of the name", required=True),
    "role": KeySpec(SENTENCE, "one sentence: the role of the model in this mode", required=True),
    "goal": KeySpec(SENTENCE, "one sentence: what to achieve", required=True),
    "offers": KeySpec(SENTENCE, "one sentence: what the tools can do", required=True),
    "when": KeySpec(
        CLAUSE, "when to use it: the words that follow `Use it`, shown next to the name at ROOT", required=True
    ),
    "remember": KeySpec(SENTENCE, "one sentence: the rule most easily forgotten", required=True),
}
ORDER = KeySpec(IntField(1, LAST), f"the mode's position in the menu, lowest first; {LAST} if left out")
EVERYWHERE = KeySpec(BoolField(), "true: its tools are listed at ROOT and in every other mode as well")
MORE = KeySpec(TRIGGERS, "other words that enter the mode")
CHANGES = {
    "add": KeySpec(TOOLS, "tools to add after the existing ones"),
    "remove": KeySpec(TOOLS, "tools to remove"),
}

WHOLE = RecordField(
    {
        "name": KeySpec(NAME, "the name to pass to `menu_enter`", required=True),
        **TEXTS,
        "order": ORDER,
        "everywhere": EVERYWHERE,
        "triggers": MORE,
        "tools": KeySpec(TOOLS, "the tools, in the order in which they are listed", required=True),
    },
    "A mode.",
)
DERIVED = RecordField(
    {
        "name": KeySpec(NAME, "the new mode's name", required=True),
        "extends": KeySpec(NAME, "the mode whose tools and texts are copied", required=True),
        **{name: key._replace(required=name in OWN) for name, key in TEXTS.items()},
        "order": ORDER,
        "everywhere": EVERYWHERE,
        "triggers": MORE,
        **CHANGES,
    },
    "A new mode that starts with another mode's tools and texts.",
)
CHANGE = RecordField(
    {
        "extends": KeySpec(NAME, "the mode to change", required=True),
        "triggers": MORE,
        **CHANGES,
    },
    "A change to a mode that another file defines.",
)


class ModeDraft(Struct, frozen=True):
    """A mode as it stands in the files, with the place of every word."""

    name: Leaf
    texts: dict[str, Leaf]
    triggers: tuple[Leaf, ...]
    tools: tuple[Leaf, ...]
    order: int
    everywhere: bool = False

    @property
    def mode(self) -> Mode | None:
        """None if a text is missing, which has already been reported."""
        if self.texts.keys() != TEXTS.keys():
            return None
        words = {name: word.text for name, word in self.texts.items()}
        tools = tuple(tool.text for tool in self.tools)
        triggers = tuple(word.text for word in self.triggers)
        return Mode(self.name.text, tools=tools, triggers=triggers, behind=(), everywhere=self.everywhere, **words)


class ModeDrafts(Struct, frozen=True):
    modes: tuple[ModeDraft, ...]
    complete: bool
    """False if a fault may have removed tools from a menu, so that a tool on no menu is not reported as well."""


def load_mode_drafts(folders: Sequence[Path], findings: FaultCollector) -> ModeDrafts:
    """Load the modes of all folders, in menu order. The first folder is the shipped one."""
    before = findings.get_mark()
    pages = [
        page
        for number, folder in enumerate(folders)
        for page in _read_pages(folder, shipped=number == 0, findings=findings)
    ]
    files = _ModeFiles(findings)
    for page in pages:
        files.add_page(page)
    drafts = files.resolve_drafts()
    complete = not any(_may_hide_tools(fault) for fault in findings.get_faults_since(before))
    for draft in drafts:
        _check_length(draft, findings)
    return ModeDrafts(tuple(sorted(drafts, key=lambda draft: draft.order)), complete)


def _may_hide_tools(fault: ConfigFault) -> bool:
    """Whether this fault may have removed tools from a menu. A fault without a key concerns the whole file."""
    return fault.key.split("[")[0] in CARRYING or fault.nearest in CARRYING[1:]


def list_mode_files(folder: Path) -> list[Path]:
    """List the files that modes are read from; none if the folder cannot be read."""
    try:
        return sorted(path for path in folder.iterdir() if path.suffix in MODE_FILES and path.name[0] != ".")
    except OSError:
        return []


def _read_pages(folder: Path, shipped: bool, findings: FaultCollector) -> list[Fields]:
    try:
        names = sorted(path.name for path in folder.iterdir() if path.suffix in MODE_FILES)
    except OSError as error:
        reason = (error.strerror or "no reason given").lower()
        findings.add(SourceLocation(str(folder)), f"the menus folder cannot be read: {reason}")
        return []
    files = [name for name in names if not name.startswith(".") and not (shipped and name in TABLES)]
    if len(files) > MOST_FILES:
        findings.add(SourceLocation(str(folder)), f"there are {len(files)} files; the limit is {MOST_FILES}")
    return [page for name in files[:MOST_FILES] if (page := _read_page(folder / name, findings)) is not None]


def _read_page(path: Path, findings: FaultCollector) -> Fields | None:
    if path.name in TABLES:
        findings.add(
            SourceLocation(str(path)),
            "this table is menugate's own; add hosts under `hosts` in the configuration",
        )
        return None
    node = read_yaml_file(path, findings)
    if not isinstance(node, Fields):
        return None if node is None else _report_no_mode(node.place, findings)
    shape = WHOLE if "extends" not in node.keys else DERIVED if "name" in node.keys else CHANGE
    fields = fit(node, shape, findings)
    return fields if isinstance(fields, Fields) else None


def _report_no_mode(place: SourceLocation, findings: FaultCollector) -> None:
    findings.add(place, "a mode is written as `key: value` lines, beginning with `name: ...`")


class _ModeFiles:
    """Collects the files, and builds each mode from its own file, the one it extends and the changes to it."""

    def __init__(self, findings: FaultCollector) -> None:
        self._findings = findings
        self._pages: dict[str, Fields] = {}
        self._changes: dict[str, list[Fields]] = {}
        self._drafts: dict[str, ModeDraft | None] = {}

    def add_page(self, page: Fields) -> None:
        name, parent = get_leaf(page, "name"), get_leaf(page, "extends")
        if name is None:
            if parent is not None and "name" not in page.keys:
                self._changes.setdefault(parent.text, []).append(page)
            return
        if name.text in self._pages:
            first = self._pages[name.text].place.file
            hint = f"; to change that one, write `extends: {name.text}` and leave out `name`" if parent is None else ""
            self._findings.add(name.place, f"there is already a mode `{name.text}`, in {first}{hint}")
            return
        self._pages[name.text] = page

    def resolve_drafts(self) -> list[ModeDraft]:
        for name, changes in self._changes.items():
            if name not in self._pages:
                for change in changes:
                    self._report_unknown_parent(change)
        drafts = [self._resolve_draft(name, ()) for name in self._pages]
        return [draft for draft in drafts if draft is not None]

    def _report_unknown_parent(self, page: Fields) -> None:
        parent = get_leaf(page, "extends")
        if parent is not None:
            message = f"there is no mode {quote_exactly(parent.text)} to extend"
            self._findings.add(parent.place, message, parent.text, self._pages)

    def _resolve_draft(self, name: str, path: tuple[str, ...]) -> ModeDraft | None:
        if name not in self._drafts:
            draft = self._build_draft(self._pages[name], (*path, name))
            for change in self._changes.get(name, ()) if draft else ():
                draft = draft and self._apply_change(draft, change)
            self._drafts[name] = draft
        return self._drafts[name]

    def _build_draft(self, page: Fields, path: tuple[str, ...]) -> ModeDraft | None:
        name, parent = get_leaf(page, "name"), get_leaf(page, "extends")
        if name is None or ("extends" in page.keys and parent is None):
            return None
        texts = {text: word for text in TEXTS if (word := get_leaf(page, text)) is not None}
        order, everywhere = get_number(page, "order") or LAST, get_flag(page, "everywhere", False)
        if parent is None:
            triggers, tools = get_leaves(page, "triggers"), get_leaves(page, "tools")
            return ModeDraft(name, texts, triggers, tools, order, everywhere)
        if parent.text in path:
            circle = " -> ".join((*path[path.index(parent.text) :], parent.text))
            self._findings.add(parent.place, f"modes extend each other in a circle: {circle}")
            return None
        if parent.text not in self._pages:
            self._report_unknown_parent(page)
            return None
        base = self._resolve_draft(parent.text, path)
        if base is None:
            return None
        inherited = {text: word for text, word in base.texts.items() if text not in OWN}
        return self._apply_change(ModeDraft(name, inherited | texts, (), base.tools, order, everywhere), page)

    def _apply_change(self, draft: ModeDraft, page: Fields) -> ModeDraft:
        present = {tool.text for tool in draft.tools}
        removed: set[str] = set()
        for tool in get_leaves(page, "remove"):
            if tool.text not in present:
                message = f"the mode `{draft.name.text}` has no tool {quote_exactly(tool.text)} to remove"
                self._findings.add(tool.place, message, tool.text, present)
            removed.add(tool.text)
        kept = tuple(tool for tool in draft.tools if tool.text not in removed)
        return replace(
            draft,
            tools=kept + get_leaves(page, "add"),
            triggers=draft.triggers + get_leaves(page, "triggers"),
        )


def _check_length(draft: ModeDraft, findings: FaultCollector) -> None:
    mode = draft.mode
    if mode is not None and len(mode.description) > LONGEST_DESCRIPTION:
        length = len(mode.description)
        message = f"the mode's sentences make {length} characters together; the limit is {LONGEST_DESCRIPTION}"
        findings.add(draft.name.place, message)
