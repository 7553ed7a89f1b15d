"""The CPU seconds and memory of lessons on one thread: `make without-blas`; not on Windows.

python -m kit.seconds [06 13 …]: those of the browser, if none is named. Fails if one fails or
takes more than MOST seconds.
"""

import os
import subprocess
import sys

from kit.lite import LESSONS
from tools.setting import ENVIRONMENT, NOTEBOOKS

MOST = 60
RUN = "import runpy, sys; runpy.run_path(sys.argv[1], {'display': print})"


def main(numbers: list[str]) -> int | str:
    setting, bad = os.environ | ENVIRONMENT, []
    for number in numbers or LESSONS:
        (lesson,) = NOTEBOOKS.glob(f"{number}_*.py")
        command = [sys.executable, "-c", RUN, lesson.name]
        run = subprocess.Popen(command, cwd=NOTEBOOKS, env=setting, stdout=subprocess.DEVNULL)
        _, status, used = os.wait4(run.pid, 0)
        seconds, memory = used.ru_utime + used.ru_stime, used.ru_maxrss / 1024
        print(f"{number} {seconds:6.1f} s {memory:6.0f} MB", flush=True)
        bad += [number] * (status != 0 or seconds > MOST)
    return f"failed, or more than {MOST} s: {', '.join(bad)}" if bad else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
