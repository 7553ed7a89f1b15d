"""The judge: a process that holds a check, asks a worker for values, and says what they are worth.

    python -m kit.grading.judge < task.json

The task: the cells of a notebook up to a check, the name of the answer, and which check it is. The
verdict: {"right": …, "hint": …, "fatal": cells that ended their worker}. Judge and worker are
fresh for each check, so an answer can spoil neither another nor the one that judges it. A cell that
ends its worker, or does not end, is left out of the next.
"""

import contextlib
import io
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from kit import variants
from kit.grading import sandbox
from kit.grading.peer import Broken, Garbage, Gone, Peer
from performer_course import checks
from tools.setting import ENVIRONMENT, ROOT

START = 120.0  # seconds that a worker may take to import what it needs
LONGEST = 600  # characters of a hint
MEMORY = 2**33  # bytes


class Late(Broken):
    """The answer took longer than it may."""


class Worker:
    """A worker, its process, and what it may still take."""

    def __init__(self, command):
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | ENVIRONMENT,
        )
        self.came, self.buffer, self.late = queue.Queue(maxsize=64), b"", False
        self.until(START)
        self.threads = [
            threading.Thread(target=f, daemon=True) for f in (self._listen, self._watch)
        ]
        for thread in self.threads:
            thread.start()
        self.peer = Peer(self._send, self._receive)
        self.run("")  # it has started

    def run(self, cell: str) -> str:
        """Run a cell; "" or what it raised."""
        if not isinstance(said := self._own(0, cell), str):
            raise Garbage(f"a cell gave {type(said).__name__}")
        return said

    def find(self, name: str):
        """What the cells call by this name; None if nothing."""
        return self._own(1, name)

    def _own(self, number, argument):
        """What one of the worker's own two functions gives. These raise nothing, unless forged."""
        try:
            return self.peer.call(number, (argument,), {})
        except Exception as error:
            raise Garbage(str(error)) from error

    def until(self, seconds):
        """From now on it may take so many seconds."""
        self.deadline = time.monotonic() + seconds

    def _listen(self):
        with contextlib.suppress(OSError, ValueError):
            while data := self.process.stdout.read1(2**16):
                self.came.put(data)
        self.came.put(b"")

    def _watch(self):
        """End it when its time is over, or a message that it does not read would wait for ever."""
        while self.process.poll() is None:
            time.sleep(0.1)
            if time.monotonic() > self.deadline + 1:
                self.late = True
                self._kill()

    def _send(self, data):
        try:
            self.process.stdin.write(data)
            self.process.stdin.flush()
        except OSError as error:
            raise Late if self.late else Gone from error

    def _receive(self, size):
        while len(self.buffer) < size:
            left = self.deadline - time.monotonic()
            try:
                data = self.came.get(timeout=max(0.0, left))
            except queue.Empty as error:
                raise Late from error
            if left < 0 or not data:
                raise Late if left < 0 or self.late else Gone
            self.buffer += data
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data

    def _kill(self):
        """End it, and first its child: in a sandbox that is process 1, with which all others end.

        It is to end with bubblewrap anyway; but an answer that traces it can change that.
        """
        number = self.process.pid
        with contextlib.suppress(OSError):
            children = Path(f"/proc/{number}/task/{number}/children").read_text()
            for child in children.split():
                os.kill(int(child), signal.SIGKILL)
        self.process.kill()

    def end(self):
        self._kill()
        self.process.wait()
        while any(thread.is_alive() for thread in self.threads):
            with contextlib.suppress(queue.Empty):  # it may wait for room
                self.came.get(timeout=0.01)
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.stdout.close()


def why(error: Broken, seconds: float, what: str) -> str:
    """What is said of `what` (the answer, a cell) that broke off."""
    return {
        Late: f"{what} did not end within {seconds:g} s",
        Gone: f"{what} ended the process it ran in",
        Garbage: f"{what} disturbed the process it ran in",
    }[type(error)]


def the_check(name: str, of: list | None):
    """The check of an answer: of the course, or where `of` = [lesson, seed] of a variant."""
    return variants.check(*of, name) if of else getattr(checks, name)


def judged(task: dict, command: list[str]) -> dict:
    """The verdict on task = {"cells", "name", "of", "seconds", "fatal"}."""
    fatal, seconds = {int(i): text for i, text in task.get("fatal", {}).items()}, task["seconds"]
    while True:
        worker = Worker(command)
        try:
            verdict = _verdict(task, worker, fatal)
        except _CellEnded as ended:
            fatal[ended.number] = why(ended.__cause__, seconds, "a cell before it")
            continue
        except Broken as error:
            verdict = {"right": False, "hint": f"{task['name']}: {why(error, seconds, 'it')}."}
        finally:
            worker.end()
        hint = verdict["hint"][:LONGEST].encode("utf-8", "replace").decode()
        return {**verdict, "hint": hint, "fatal": fatal}


class _CellEnded(Exception):
    """The cell with this number broke its worker."""

    def __init__(self, number):
        self.number = number


def _verdict(task, worker, fatal):
    """Whether the check accepts what the worker's answer gives, and the hint if not."""
    name, said = task["name"], list(fatal.values())
    for number, cell in enumerate(task["cells"]):
        if number not in fatal:
            worker.until(task["seconds"])
            try:
                said += filter(None, [worker.run(cell)])
            except Broken as error:
                raise _CellEnded(number) from error
    worker.until(task["seconds"])
    answer = worker.find(name)
    if answer is None:
        what = f" ({said[-1]})" if said else ""
        return {"right": False, "hint": f"{name}: there is no such function in the notebook{what}."}
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            the_check(name, task["of"])(answer)
    except checks.Hint as hint:
        return {"right": False, "hint": str(hint)}
    return {"right": True, "hint": ""}


def ask(task: dict) -> dict:
    """The verdict of a judge in a process of its own, which cannot take for ever either."""
    limit = START + (len(task["cells"]) + 2) * (START + task["seconds"])
    done = subprocess.run(
        [sys.executable, "-m", "kit.grading.judge"],
        input=json.dumps(task),
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=ROOT,
        env=os.environ | ENVIRONMENT | {"PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "utf-8"},
        timeout=limit,
    )
    if done.returncode:
        raise RuntimeError(f"the judge failed on {task['name']}:\n{done.stderr}")
    return json.loads(done.stdout)


def main() -> int:
    task = json.load(sys.stdin)
    seconds = int(3 * task["seconds"] + START)  # of CPU, where its clock does not stop it
    with contextlib.suppress(ImportError):
        import resource  # what an answer gives may be large, and what is made of it larger

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    print(json.dumps(judged(task, sandbox.worker(seconds))))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
