"""Where does a client read what a run came to?"""

LATEST = "latest"
"""Stands for the run that was used last."""


def address(run: str) -> str:
    return f"menugate://run/{run}/summary"
