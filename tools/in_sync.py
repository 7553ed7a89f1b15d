"""Say whether every committed notebook is what its source makes; nothing is run."""

import sys

from tools.notebooks import NOTEBOOKS, problems, sources


def main() -> int:
    found = [text for source in sources(NOTEBOOKS) for text in problems(source)]
    print("\n".join(found), end="\n" if found else "", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
