"""Does lsp_tool say about itself what the policy table says, and ask for the profile its server is for?"""

import pytest

from mcp_server.model.posture import Profile
from mcp_server.model.tools import ACTING, REVIEWING, WARMUP, Effect, Hints
from tools.lsp.definitions import COMMANDS, LSP, SERVERS
from tools.lsp.queries import COMMANDS as QUESTIONS
from tools.lsp.servers import BY_NAME


def test_the_policy_table() -> None:
    assert (LSP.profile, LSP.effect, LSP.stages) == (Profile.RESTRICTED, Effect.READ_LOCAL, WARMUP | ACTING | REVIEWING)
    assert LSP.hints == Hints(read_only=True, destructive=False, idempotent=True, open_world=False)
    assert len(LSP.description.encode()) <= 1024


def test_every_command_has_its_question() -> None:
    assert tuple(QUESTIONS) == COMMANDS


def test_every_server_can_be_named() -> None:
    assert tuple(BY_NAME) == SERVERS


def test_inert_are_those_that_were_seen_to_be() -> None:
    assert {name for name, server in BY_NAME.items() if server.inert} == {"ty", "pyright-langserver"}


@pytest.mark.parametrize(
    ("path", "server", "profile"),
    [
        ("a.py", None, Profile.RESTRICTED),
        ("A.PYI", None, Profile.RESTRICTED),
        ("a.py", "ty", Profile.RESTRICTED),
        ("a.py", "pyright-langserver", Profile.RESTRICTED),
        ("a.py", "jedi-language-server", Profile.TRUSTED),
        ("a.py", "rust-analyzer", Profile.TRUSTED),
        ("a.go", "ty", Profile.RESTRICTED),
        ("a.rs", None, Profile.TRUSTED),
        ("a.go", None, Profile.TRUSTED),
        ("a.h", None, Profile.TRUSTED),
        ("a.tsx", None, Profile.TRUSTED),
        ("a.txt", None, Profile.RESTRICTED),
        ("a.py/b.rs", None, Profile.TRUSTED),
        ("", None, Profile.RESTRICTED),
    ],
)
def test_a_server_that_may_run_code_asks_for_trust(path: str, server: str | None, profile: Profile) -> None:
    demand = LSP.get_demand({"path": path, **({"server": server} if server else {})})
    assert (demand.effect, demand.profile, demand.confirm) == (Effect.READ_LOCAL, profile, None)


def test_a_file_of_secrets_is_asked_about() -> None:
    assert LSP.get_demand({"path": ".ssh/config.py"}).confirm
