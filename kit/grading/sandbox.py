"""The sandbox of the worker: bubblewrap, or a refusal that says what is missing. Nothing else.

What is in it: the interpreter and its packages, the package of the course without its checks, and
the data that lessons read, all read-only; an empty /tmp that ends with it. What is not: the course
with its solutions, its gradebook and its seed, any other file of the machine, the network, other
processes, and what root may do.
"""

import functools
import json
import secrets
import shutil
import socket
import subprocess
import sys
from pathlib import Path

from tools.setting import ENVIRONMENT, NOTEBOOKS, ROOT

PEER = Path(__file__).with_name("peer.py")
SYSTEM = ("/usr", "/bin", "/lib", "/lib32", "/lib64", "/sbin")
SETTINGS = ("/etc/ld.so.cache", "/etc/alternatives", "/etc/localtime")
SCRATCH = 2**28  # bytes in /tmp, and in /dev/shm

MISSING = """\
No submission was graded: {}.
Students' code runs only where it can reach neither this course nor the network, and that takes
bubblewrap, on Linux: `apt install bubblewrap`, or `dnf install bubblewrap`. On other systems, grade
in a virtual machine or in a container that lets bubblewrap make namespaces."""

PROBE = """\
import contextlib, ctypes, json, os, socket, sys
port, hidden, writes, mounts = json.loads(sys.argv[1])
found = [path for path in hidden if os.path.exists(path)]
libc, REMOUNT_BIND = ctypes.CDLL(None), 32 | 4096
for path in map(os.fsencode, mounts):
    if not (libc.mount(None, path, None, REMOUNT_BIND, None) and libc.umount2(path, 0)):
        found.append("what is mounted at " + os.fsdecode(path))
for path in writes:
    with contextlib.suppress(OSError):
        open(path, "w").close()
with contextlib.suppress(OSError):
    socket.create_connection(("127.0.0.1", port), timeout=1)
    found.append("the network")
print("reaches " + ", ".join(found) if found else "sealed")
"""


class Refused(RuntimeError):
    """There is no sandbox here, so nothing is graded."""


def command(*inside: str) -> list[str]:
    """The command that runs `inside` in the sandbox."""
    program = shutil.which("bwrap")
    if not program:
        raise Refused(MISSING.format("bubblewrap (the program `bwrap`) is not installed"))
    options = [program, "--unshare-all", "--die-with-parent", "--new-session", "--clearenv"]
    options += ["--cap-drop", "ALL"]  # whoever is root keeps all powers otherwise, mount among them
    options += ["--dev", "/dev"]  # and no /proc, in which root may write, powers or not
    for path in ("/tmp", "/dev/shm"):
        options += ["--size", str(SCRATCH), "--tmpfs", path]
    options += ["--remount-ro", "/dev"]
    for path in map(Path, SYSTEM):
        if path.is_symlink():
            options += ["--symlink", str(path.readlink()), str(path)]
        elif path.exists():
            options += ["--ro-bind", str(path), str(path)]
    package = ROOT / "performer_course"
    shown = [*SETTINGS, sys.base_prefix, sys.prefix, package, NOTEBOOKS / "data", PEER]
    for path in map(str, shown):
        options += ["--ro-bind-try", path, path]
    options += ["--tmpfs", str(package / "checks"), "--remount-ro", str(package / "checks")]
    options += ["--remount-ro", "/", "--chdir", "/tmp"]
    said = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "LANG": "C.UTF-8", **ENVIRONMENT}
    for name, value in said.items():
        options += ["--setenv", name, value]
    return [*options, *inside]


def worker(seconds: int, bytes_held: int = 2**33) -> list[str]:
    """The command of a worker in the sandbox, which may use so much."""
    python = [sys.executable, "-I", str(PEER), str(ROOT)]
    return command(*python, str(bytes_held), str(seconds))


@functools.cache
def require(*hidden: Path) -> None:
    """Refuse unless the sandbox stands: no `hidden` path, no writing, network, mounting."""
    hidden = [ROOT / "notebooks/solutions", Path("/proc"), *map(Path, hidden)]
    folders = [*hidden, ROOT, ROOT / "performer_course", Path(sys.prefix), Path("/tmp")]
    writes = [folder / f".probe-{secrets.token_hex(8)}" for folder in folders]
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        mounts = [ROOT / "performer_course/checks", ROOT / "performer_course"]
        asked = [port, [path.resolve() for path in hidden], writes, mounts]
        probe = command(sys.executable, "-I", "-c", PROBE, json.dumps(asked, default=str))
        done = subprocess.run(probe, capture_output=True, text=True, timeout=60)
    written = [path for path in writes if path.exists()]
    for path in written:
        path.unlink()
    said = done.stdout.strip()
    if not said:
        raise Refused(MISSING.format(f"bubblewrap makes no sandbox here ({done.stderr.strip()})"))
    if said != "sealed" or written:
        what = said if said != "sealed" else f"writes into {written[0].parent}"
        raise Refused(MISSING.format(f"the sandbox is not closed: a process in it {what}"))
