"""What lies folded below each exercise on the site: hints, and behind them the solution.

A hint is what the check says to a likely wrong answer; the first ones of its list are the most
general. The solution is that of notebooks/solutions. What a reader downloads has neither.
"""

import json
import re
from pathlib import Path

HINTS = 2
MARKER = re.compile(r"(?m)^ *### (?:BEGIN|END) SOLUTION\n?")
MARKS = re.compile(r"[\\`*_\[\]<>$]")  # of Markdown, in what a check says
HEAD = "What the check says to wrong answers, for example:"


def hints(check: str) -> list[str]:
    """What the check `check` says to the first of its likely wrong answers, in Markdown; where it
    has no list of them, what it names as its hints."""
    from performer_course import checks

    judged = getattr(checks, check)
    said = [hint.rpartition("}: ")[2] for _, hint in judged.mistakes] + [*judged.says]
    whole = [hint for hint in dict.fromkeys(said) if "{" not in hint]  # {}: the answer's numbers
    return [MARKS.sub(r"\\\g<0>", hint) for hint in whole[:HINTS]]


def fold(summary: str, text: str) -> str:
    return f"<details class='answer hint'><summary>{summary}</summary>\n\n{text}\n\n</details>"


def name_of(cell: dict) -> str:
    """The name of an answer or of its check; empty for other cells."""
    return cell["metadata"].get("nbgrader", {}).get("grade_id", "")


def below(exercises: dict, solutions: Path) -> None:
    """Put the folds below each exercise of a sheet: its check, or the text that is asked for."""
    solved = json.loads(solutions.read_text(encoding="utf-8"))["cells"]
    solved, cells = {name_of(cell): cell for cell in solved if name_of(cell)}, []
    for cell in exercises["cells"]:
        cells.append(cell)
        name = name_of(cell)
        answer = solved.get(name.removeprefix("check-"))
        if not answer or (answer["cell_type"] == "code" and not name.startswith("check-")):
            continue
        text, folds = "".join(answer["source"]), []
        if answer["cell_type"] == "code":
            text = f"```python\n{MARKER.sub('', text).strip()}\n```"
            (check,) = re.findall(r"checks\.(\w+)\(", "".join(cell["source"]))
            if found := hints(check):
                folds = [fold("Hint", "\n".join([HEAD, "", *(f"- {hint}" for hint in found)]))]
        folds.append(fold("Solution", text))
        put = {"id": f"{name}-folded", "cell_type": "markdown", "metadata": {}}
        cells.append(put | {"source": "\n\n".join(folds)})
    exercises["cells"] = cells
