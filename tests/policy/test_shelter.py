"""What may a tool that has to run shut in, where there is no sandbox?"""

import dataclasses

import pytest
from msgspec.structs import replace

from mcp_server.model.policy import Call, Decision, Policy, SandboxState, Verdict
from mcp_server.model.posture import Posture, Profile
from mcp_server.model.results import Code
from mcp_server.model.sessions import Session
from mcp_server.model.tools import Arguments, Demand
from mcp_server.policy.decision import decide, list_visible_tools
from tests.policy import world


def policy(shelter: SandboxState) -> Policy:
    made = world.policy()
    tools = {**made.tools, "bash": dataclasses.replace(made.tools["bash"], shut_in=True)}
    return replace(made, tools=tools, shelter=lambda: shelter)


def answer(shelter: SandboxState, profile: Profile, command: str = "ls") -> Decision:
    made, session = policy(shelter), Session("s", "me", mode="swe")
    return decide(made.tools["bash"], Call("bash", {"command": command}), session, Posture(profile=profile), made)


@pytest.mark.parametrize(
    ("shelter", "profile", "command", "verdict"),
    [
        (SandboxState.THERE, Profile.NORMAL, "ls", Verdict.ALLOW),
        (SandboxState.MISSING, Profile.NORMAL, "ls", Verdict.DENY),
        (SandboxState.MISSING, Profile.TRUSTED, "ls", Verdict.ALLOW),
        (SandboxState.MISSING, Profile.TRUSTED, "curl x", Verdict.DENY),
        (SandboxState.MISSING, Profile.UNRESTRICTED, "curl x", Verdict.ALLOW),
        (SandboxState.REFUSED, Profile.UNRESTRICTED, "ls", Verdict.DENY),
    ],
)
def test_without_a_sandbox_it_asks_for_one_profile_more(
    shelter: SandboxState, profile: Profile, command: str, verdict: Verdict
) -> None:
    found = answer(shelter, profile, command)
    assert found.verdict is verdict
    if verdict is Verdict.DENY:
        assert found.code is Code.PROFILE_TOO_LOW
        assert "no sandbox" in found.reason


@pytest.mark.parametrize(
    ("shelter", "profile", "seen"),
    [
        (SandboxState.THERE, Profile.NORMAL, True),
        (SandboxState.MISSING, Profile.NORMAL, False),
        (SandboxState.MISSING, Profile.TRUSTED, True),
        (SandboxState.REFUSED, Profile.UNRESTRICTED, False),
    ],
)
def test_what_would_be_refused_is_hidden(shelter: SandboxState, profile: Profile, seen: bool) -> None:
    made = policy(shelter)
    assert ("bash" in list_visible_tools(Session("s", "me", mode="swe"), Posture(profile=profile), made)) is seen


@pytest.mark.parametrize(("profile", "verdict"), [(Profile.NORMAL, Verdict.ASK), (Profile.TRUSTED, Verdict.ALLOW)])
def test_a_profile_may_answer_what_is_asked_below_it(profile: Profile, verdict: Verdict) -> None:
    made = world.policy()
    bash = made.tools["bash"]

    def demand(arguments: Arguments) -> Demand:
        return replace(bash.get_demand(arguments), asked_below=Profile.TRUSTED)

    asking = dataclasses.replace(bash, demand=demand)
    made = replace(made, tools={**made.tools, "bash": asking})
    call = Call("bash", {"command": "frobnicate"})
    assert decide(asking, call, Session("s", "me", mode="swe"), Posture(profile=profile), made).verdict is verdict
