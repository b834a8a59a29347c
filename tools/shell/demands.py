"""Which effect and profile does a line of shell need, and why does the user have to approve it?"""

from msgspec.structs import replace

from mcp_server.model.posture import Profile
from mcp_server.model.tools import Arguments, Demand, Effect, LossKind
from tools.shell.classify import LineVerdict, classify_line, find_line_steps, find_vain_call
from tools.shell.line_parts import find_line_parts
from tools.shell.verdicts import CommandKind

TYPED = "what you type may become part of any command"
DESTROYING: frozenset[LossKind] = frozenset(
    ("deletes", "unlinks", "deletes in", "deletes some in", "cleans", "cleans all", "discards", "resets")
)
"""What may be overwritten is not here: most lines that copy or write overwrite nothing."""


def demand_running(args: Arguments) -> Demand:
    return build_demand(args, classify_line(args["command"], args.get("exec_dir") or "."))


def build_demand(args: Arguments, verdict: LineVerdict) -> Demand:
    # In a shell that stays open a line is only as harmless as everything typed there before.
    stays = bool(args.get("bash_id") or args.get("shell_id") or args.get("run_in_background"))
    if verdict.kind is CommandKind.READS and not stays:
        return Demand(Effect.READ_LOCAL, Profile.NORMAL)
    if verdict.kind is not CommandKind.ASKED:
        return Demand(Effect.EXEC, Profile.NORMAL)
    demand = demand_approval(args["command"], verdict.because)
    if stays or demand.takes:
        return demand
    return replace(demand, steps=find_line_steps(args["command"], args.get("exec_dir") or "."))


KEYS = ("", "\x03", "\x04", "\x1a", "\x1c", "q", "y", "n")
"""Keys and answers, which are no commands."""


def demand_typing(args: Arguments) -> Demand:
    content = args.get("content", "")
    return Demand(Effect.EXEC, Profile.NORMAL) if content in KEYS else demand_approval(content, TYPED)


def demand_approval(line: str, because: str) -> Demand:
    """If the sandbox keeps git from writing its own folder, approval would be useless: name what can do it instead."""
    demand = Demand(Effect.EXEC, Profile.NORMAL, because, True, Profile.TRUSTED, once=destroys(line))
    vain = find_vain_call(line)
    if vain is None:
        return demand
    return replace(demand, confirm=vain.because, takes=vain.takes, instead=vain.instead, detour=vain.detour)


def destroys(line: str) -> bool:
    """True if a part deletes files or throws changes away, as far as its words say."""
    return any(loss.does in DESTROYING for part in find_line_parts(line, ".") for loss in part.losses)
