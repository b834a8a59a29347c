"""Which part of what was found is this, and which call shows the next?"""

import json
from collections.abc import Mapping
from typing import Any


def go_on(tool: str, args: Mapping[str, Any], shown: int, total: int, complete: bool = True) -> str:
    """Which entries are shown of how many, and the call that goes on; nothing where that was all."""
    offset = args.get("offset", 0)
    end, least = offset + shown, "" if complete else "at least "
    if total and offset >= total:
        return f"There is nothing from entry {offset + 1:,} on: {total:,} were found."
    if offset == 0 and end >= total:
        return "" if complete else f"There may be more than these {total:,}: time or room ran out, so narrow it."
    told = f"Entries {offset + 1:,}-{end:,} of {least}{total:,}."
    if end >= total:
        return told
    return f"{told} Go on with {tool} {json.dumps({**args, 'offset': end}, ensure_ascii=False)}"


def closing(*sentences: str) -> str:
    return f"\n[{' '.join(one for one in sentences if one)}]"
