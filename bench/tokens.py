"""What does a text cost a model? Its tokens in the o200k encoding, which is close enough for every host's."""

import importlib
import json
import sys
from functools import cache
from typing import Any


@cache
def _encoding() -> Any:
    # The package's compiled part has no types. Its counts equal those of two other counters on some 350 varied texts.
    return importlib.import_module("rs_bpe.bpe").openai.o200k_base()


def tokens(value: Any) -> int:
    """A text as it is; anything else as the compact JSON a host puts before a model."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return int(_encoding().count(text))


if __name__ == "__main__":
    print(tokens(sys.stdin.read()))
