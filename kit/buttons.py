"""Write the buttons: Binder for the course into README.md, Colab into each exercise.

    python -m kit.buttons

They are made from one setting, `Repository` under [project.urls] in pyproject.toml. While it is
not set there are none, and those there were are taken away.
"""

import re

from tools.notebooks import read, sources, write_exercise
from tools.setting import GITHUB, ROOT, repository

BINDER, START = "https://mybinder.org", "my/00_start_here.ipynb"


def with_binder(readme: str, address: str | None) -> str:
    """README with the button below its title, or without one where there is no address."""
    title, rest = re.sub(r"\[!\[Binder\].*\n\n", "", readme).split("\n\n", 1)
    if not address:
        return f"{title}\n\n{rest}"
    page = f"{BINDER}/v2/gh/{address.removeprefix(GITHUB)}/main?urlpath=lab/tree/{START}"
    return f"{title}\n\n[![Binder]({BINDER}/badge_logo.svg)]({page})\n\n{rest}"


def main() -> int:
    address, readme = repository(), ROOT / "README.md"
    said = with_binder(readme.read_text(encoding="utf-8"), address)
    readme.write_text(said, encoding="utf-8", newline="\n")
    for source in sources():
        if source.parent.name == "solutions":
            write_exercise(read(source), source)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
