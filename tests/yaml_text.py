"""What does a YAML text say? Read by libyaml, ten times as fast as Python alone: every worker reads all tables."""

from typing import Any

import yaml

Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load_yaml(text: str) -> Any:
    return yaml.load(text, Loader=Loader)
