"""What does `menugate help TOPIC` show? A short text on each subject, and the page of the manual that says more."""

from collections.abc import Mapping
from typing import NamedTuple


class HelpTopic(NamedTuple):
    text: str
    """Paragraphs separated by empty lines; indented examples are not wrapped."""
    page: str
    """The page of the manual that says more."""


TOPICS: Mapping[str, HelpTopic] = {
    "approvals": HelpTopic(
        """
Most questions are about shell lines: below the profile `trusted`, `bash` asks about every line that menugate does not
know to read, build, test or make only new files. Other calls need your approval as well: those that delete files or
change production, that touch files which control other programs, that an `ask` rule names, every effect under run
control `manual`, and every change in work mode `chat`. If your host can show a question, it does. Otherwise the model
gets APPROVAL_REQUIRED with an id, and you answer here.

  menugate approvals
  menugate approve ID
  menugate deny ID --reason "keep it"

An approval covers one call with exactly these arguments. You have an hour to answer.
""",
        "docs/approvals.md",
    ),
    "environment": HelpTopic(
        """
Every option of `menugate serve` can be set in the environment; an option on the command line wins.

  MENUGATE_WORKSPACE        the folder that tools work in
  MENUGATE_CONFIG           the operator's menugate.yaml
  MENUGATE_MENUS            folders with modes of your own, separated by colons
  MENUGATE_MODE             the only mode, for every session
  MENUGATE_LISTING          what tools/list shows
  MENUGATE_PROFILE          what may run without asking you
  MENUGATE_MAX_PROFILE      the highest profile allowed
  MENUGATE_HTTP             HOST:PORT, to serve over HTTP
  MENUGATE_NO_AUTH          1 to accept calls without a token (loopback only)
  MENUGATE_ALLOWED_HOSTS    more Host headers to accept
  MENUGATE_ALLOWED_ORIGINS  web pages that may call the server

MENUGATE_STATE_HOME names the folder for your keys. Set it for the server and for the commands you type. COLUMNS sets
the width of text, NO_COLOR turns colours off, and the OTEL_ variables turn on traces and metrics.
""",
        "docs/hosts.md",
    ),
    "hosts": HelpTopic(
        """
A host is the program that talks to the model, such as an editor or a chat. It starts `menugate serve` in the folder
that the tools should work in, or connects to one that you started with `--http`. Some hosts fetch the list of tools
again when it changes; for the others menugate adds two tools that reach the rest.

  claude mcp add menugate -- menugate serve
  menugate serve --http 127.0.0.1:7391
""",
        "docs/hosts.md",
    ),
    "modes": HelpTopic(
        """
A mode is a named set of tools. A model starts with the six meta-tools and enters a mode to get that mode's tools. You
can add modes of your own in YAML, without Python. (The work mode, which says what kind of work you allow, is something
else: see `menugate help posture`.)

  menugate menus
  menugate menus swe
  menugate menus --tokens
""",
        "docs/menus.md",
    ),
    "posture": HelpTopic(
        """
The posture is what you have chosen: the work mode, run control, profile, model mode, AI mode, and whether runs go
through stages of reasoning. Nothing a model does can widen it. Change one axis now, or later with --scope; running
servers follow within half a second.

  menugate mode plan
  menugate control assisted
  menugate steer profile trusted for-next-unit
  menugate status
""",
        "docs/posture.md",
    ),
    "profiles": HelpTopic(
        """
A profile says what may run without asking you. Each allows more than the one before it.

  restricted    reading only, and no commands
  normal        edits in the workspace, and commands that are known to read, build or test
  trusted       commits and any other command, in the sandbox
  unrestricted  everything, without a sandbox

The operator can set a ceiling, which is the highest profile that anyone can choose.

  menugate profile trusted
  menugate profile trusted --scope for-next-unit
""",
        "docs/posture.md",
    ),
    "record": HelpTopic(
        """
Every decision is written to a ledger before its tool runs. The rows form a chain of hashes, and `verify` finds rows
that were changed or removed; SECURITY.md says what it cannot find. `why` says who or what allowed or refused a call.

  menugate audit tail
  menugate audit why 117
  menugate audit verify
  menugate audit export --output ledger.jsonl
""",
        "docs/record.md",
    ),
    "rules": HelpTopic(
        """
Rules in menugate.yaml decide about calls: `deny` and `block` refuse, `ask` asks you, and `allow` runs a call without
asking you. The strictest rule wins, whatever the order. A rule can have examples, which test it.

  menugate rules list
  menugate rules test
  menugate explain bash '{"command": "git push"}'
""",
        "docs/rules.md",
    ),
    "state": HelpTopic(
        """
The state of a workspace is in its folder .menugate: the ledger, the posture, approvals and messages. No tool can open
it. Your keys are elsewhere, by default in ~/.local/state/menugate, where no tool and no sandboxed command can read
them. `menugate status` names both places; `menugate doctor` checks them.

  menugate status
  menugate doctor
  menugate doctor fix
""",
        "docs/record.md",
    ),
    "stop": HelpTopic(
        """
`stop` ends every run here and everything it started, clears its state, and refuses new calls until you type `next`.
`pause` ends nothing: runs wait and keep their state.

  menugate stop
  menugate pause --reason "lunch"
  menugate next
""",
        "docs/runs.md",
    ),
}
