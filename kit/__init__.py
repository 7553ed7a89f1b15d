"""What a lecturer publishes of the course, and how it is graded; README.md says what makes what."""

import re
import tomllib
from importlib.metadata import distributions

from tools.setting import ROOT


def need(group: str) -> None:
    """Stop and say how to get what is missing of a dependency group of pyproject.toml."""
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
    names = [re.match(r"[\w-]+", requirement)[0] for requirement in groups[group]]
    missing = [name for name in names if not any(distributions(name=name))]
    if missing:
        raise SystemExit(
            f"{', '.join(missing)} missing: `make {group}` installs the group `{group}`, and so "
            f"does pip install -c constraints.txt --group {group}"
        )
