"""What is said after a person's command? What holds now and what is to come, in words that ask nothing of the model."""

from mcp_server.model.posture import Posture, PostureChoice
from mcp_server.policy import badge

AFTERWARDS = "This was the user's own choice and is said for information; go on with the task under it."
UNCHOSEN = "This is said for information; go on with the task under what is in force."


def stands(posture: Posture, choice: PostureChoice | None) -> str:
    """The badge, every axis, and what is still to come."""
    lines = [f"In force: {badge.full(posture)}"]
    axes = badge.every_axis(posture)
    lines.append(f"AI mode {axes['ai_mode']}, reasoning {axes['reasoning']}.")
    lines += [f"To come: {words} ({change.id})" for change, words in badge.to_come(choice)]
    return "\n".join(lines)


def changed(what: str, posture: Posture, choice: PostureChoice | None, chosen: bool = True) -> str:
    """`chosen`: the user did choose it. What still waits for their word is nobody's choice yet."""
    return f"{what}\n{stands(posture, choice)}\n{AFTERWARDS if chosen else UNCHOSEN}"
