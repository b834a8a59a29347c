"""Which options does a server in a container need, so that it speaks over a pipe and leaves nothing behind?"""

from collections.abc import Mapping, Sequence

LABEL = "menugate.start"
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "docker": ("--rm", "-i", "--init"),
    # Its `--init` needs a program that is often missing.
    "podman": ("--rm", "-i"),
}


def is_container(argv: Sequence[str]) -> bool:
    return len(argv) > 1 and get_program(argv) in OPTIONS and argv[1] == "run"


def add_options(argv: Sequence[str], start: str) -> tuple[str, ...]:
    """Add the options, and a label by which this start's container is found. What you wrote comes later, and wins."""
    if not is_container(argv):
        return tuple(argv)
    return (*argv[:2], *OPTIONS[get_program(argv)], "--label", f"{LABEL}={start}", *argv[2:])


def get_program(argv: Sequence[str]) -> str:
    return argv[0].replace("\\", "/").rpartition("/")[2].removesuffix(".exe")
