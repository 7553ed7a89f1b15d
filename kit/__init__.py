"""What a lecturer publishes of the course, and how it is graded; README.md says what makes what."""

from importlib.util import find_spec


def need(group: str, **packages: str) -> None:
    """Stop and say how to get what is missing: `packages` are by the modules that they bring."""
    missing = [package for module, package in packages.items() if not find_spec(module)]
    if missing:
        raise SystemExit(
            f"{', '.join(missing)} missing: `make {group}` installs the group `{group}`, and so "
            f"does pip install -c constraints.txt --group {group}"
        )
