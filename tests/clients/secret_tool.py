"""A program that speaks as `secret-tool` of libsecret does, on a keyring that is a file in HOME.

It notes what it was started with. `mood` in HOME makes it `hang`, `lock` itself, `forget` what it is given, or `break`.
"""

import json
import os
import sys
import time
from pathlib import Path


def write_program(folder: Path) -> Path:
    """Put it on a search path of its own."""
    folder.mkdir(exist_ok=True)
    program = folder / "secret-tool"
    program.write_text(f"#!{sys.executable} -IS\n{Path(__file__).read_text()}")
    program.chmod(0o755)
    return folder


def main(home: Path, arguments: list[str]) -> int:
    with (home / "seen").open("a") as seen:
        seen.write(json.dumps({"argv": sys.argv, "env": dict(os.environ), "cwd": str(Path.cwd())}) + "\n")
    mood = (home / "mood").read_text() if (home / "mood").exists() else ""
    if mood == "hang":
        time.sleep(600)
    if mood == "lock":
        print("secret-tool: Cannot create an item in a locked collection", file=sys.stderr)
        return 1
    kept = home / "keyring.json"
    items: dict[str, str] = json.loads(kept.read_text()) if kept.exists() else {}
    attributes = "/".join(arguments[1:] if arguments[0] == "lookup" else arguments[2:])
    if arguments[0] == "store":
        assert arguments[1].startswith("--label=")
        items[attributes] = sys.stdin.read()
        if mood != "forget":
            kept.write_text(json.dumps(items))
        return 0
    if attributes not in items:
        return 1
    sys.stdout.write("something else" if mood == "break" else items[attributes])
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(os.environ["HOME"]), sys.argv[1:]))
