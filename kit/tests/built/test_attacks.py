"""What an answer tries from inside the sandbox, as the account that grades and as another one.

    make test-kit

Each attack is a cell before an answer that is wrong. It says "reached …" where it gets somewhere;
no mark may come of it, no word, and no change in the course. test_grading.py has the
forgeries that go through nbgrader, test_course.py the messages that are none.
"""

import json
import os
import shutil
import socket
import subprocess
import sys

import pytest

from tests.grading import digests
from tools.setting import ROOT

SECONDS = 10
ANSWER = """\
def highest_degree(d, n):
    said = attack()
    if said:
        raise ValueError(f"reached {said}")
    return 0
"""
# What attacks begin with.
TOOLS = f"""\
import os, pathlib, subprocess
ROOT = pathlib.Path({str(ROOT)!r})
def read(*paths):
    found = []
    for path in paths:
        try:
            path = pathlib.Path(path)
            found += [str(p) for p in path.iterdir()] if path.is_dir() else [path.read_bytes()[:9]]
        except OSError:
            pass
    return found
def shell(line):
    return subprocess.run(line, shell=True, capture_output=True, text=True).stdout.strip()
def reply(data):
    for number in range(3, 64):
        try:
            os.write(number, data)
        except OSError:
            pass
def opens(*paths, mode):
    for path in paths:
        try:
            open(path, mode).close()
            return path
        except OSError:
            pass
"""
FILL = """\
def attack():
    try:
        for number in range(8):
            with open(f"{0}/{{number}}", "wb") as file:
                file.write(bytes(50_000_000))
    except OSError:
        return None
    return "400 MB in {0}"
"""
# Process 1 is bubblewrap, which is to end with its parent: prctl(PR_SET_PDEATHSIG, 0), run in it,
# and what is started then lives on where the parent alone is ended.
TRACE = """\
import ctypes, os, platform, subprocess, time
libc, N = ctypes.CDLL(None), ctypes.c_void_p
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, N, N]
ATTACH, GET, SET, STEP, DETACH, ANY = 16, 12, 13, 9, 17, 0x40000000
SI, DI, WAITED, AX, IP = 13, 14, 15, 10, 16
def attack():
    if platform.machine() == "x86_64" and not libc.ptrace(ATTACH, 1, None, None):
        os.waitpid(1, ANY)
        new = (ctypes.c_ulonglong * 27)()
        libc.ptrace(GET, 1, None, ctypes.addressof(new))
        old = type(new)(*new)
        old[IP], old[AX], old[WAITED] = old[IP] - 2, old[WAITED], 2**64 - 1
        new[IP], new[AX], new[WAITED], new[DI], new[SI] = old[IP], 157, old[WAITED], 1, 0
        libc.ptrace(SET, 1, None, ctypes.addressof(new))
        libc.ptrace(STEP, 1, None, None)
        os.waitpid(1, ANY)
        libc.ptrace(SET, 1, None, ctypes.addressof(old))
        libc.ptrace(DETACH, 1, None, None)
    subprocess.Popen(["sleep", "987654"], start_new_session=True)
    time.sleep(600)
"""
CHECKS = "/performer_course/checks"
ATTACKS = {
    # as a tester of faults tried them
    "unmounts what hides the checks": f"""\
attack = lambda: shell("umount {ROOT}{CHECKS} && ls {ROOT}{CHECKS}")
""",
    "makes the package writable": f"""\
attack = lambda: shell('''cd {ROOT}/performer_course && mount -o remount,rw,bind $PWD &&
echo "# reached" >> checks/lesson_01.py && echo written''')
""",
    "mounts in namespaces of its own": f"""\
attack = lambda: shell("unshare -Urm sh -c 'umount {ROOT}{CHECKS}; ls {ROOT}{CHECKS}'")
""",
    "has powers": """\
import ctypes
def attack():
    asked, sets = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    ctypes.CDLL(None).capget(asked, sets)
    return any(sets) and list(sets)
""",
    "reads solutions, tests and tools": """\
attack = lambda: read(*(ROOT / name for name in ("notebooks/solutions", "tests", "kit/variants",
    ".git", "README.md")))
""",
    "reads what /proc has of other processes": """\
attack = lambda: read("/proc", "/proc/1/root", "/proc/1/exe", "/proc/self/exe", "/sys")
""",
    "reads what the checks were compiled to": """\
attack = lambda: read(ROOT / "performer_course/checks", *ROOT.rglob("checks/**/*.pyc"))
""",
    "looks for other checkouts": """\
attack = lambda: [path for top in ("/home", "/root", "/srv", "/mnt", "/opt", "/var")
    for path, _, files in os.walk(top) if "solutions" in path or "seed" in files]
""",
    "sees the environment of whoever grades": """\
import os
attack = lambda: os.environ.get("OF_THE_LECTURER")
""",
    "calls out": """\
import socket
def attack():
    for place in ([("127.0.0.1", PORT), ("169.254.169.254", 80), ("192.0.2.1", 80)]):
        try:
            socket.create_connection(place, timeout=0.5)
            return place
        except OSError:
            pass
    return [name for _, name in socket.if_nameindex() if name != "lo"]
""",
    "opens the disk": """\
def attack():
    found = []
    for kind, number in (("disk", os.makedev(254, 0)), ("memory", os.makedev(1, 1))):
        try:
            os.mknod(f"/tmp/{kind}", 0o60600, number)
            found.append(open(f"/tmp/{kind}", "rb").read(9))
        except OSError:
            pass
    return found + read("/dev/mem", "/dev/vda", "/dev/sda")
""",
    "fills /dev/shm": FILL.format("/dev/shm"),
    "fills /tmp": FILL.format("/tmp"),
    "takes all memory": """\
def attack():
    try:
        held = [bytes(10**9) for _ in range(9)]
    except MemoryError:
        return None
    return "9 GB"
""",
    "ignores all signals": """\
import signal, time
def attack():
    for number in range(1, 32):
        try:
            signal.signal(number, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    time.sleep(600)
""",
    "closes its pipes": "attack = lambda: os.closerange(3, 64)\n",
    "leaves a process behind": """\
attack = lambda: shell("(setsid sleep 987654 >/dev/null 2>&1 &) ; true")
""",
    "replies with an empty array": """\
data = b'{"value": {"array": ["<f8", [0], ""]}, "changed": [], "peak": 0}'
reply(b"%08x" % len(data) + data)
attack = lambda: None
""",
    "sends four gigabytes": 'attack = lambda: reply(b"ffffffff" + bytes(2**20))\n',
    "raises a hint of its own": """\
class Hint(AssertionError):
    pass
def attack():
    raise Hint("right.")
""",
    # and ten more
    "writes beside the devices": "attack = lambda: opens('/dev/file', mode='wb')\n",
    "makes a program that runs as root": """\
attack = lambda: shell("cp /bin/sh /tmp/sh && chmod 6755 /tmp/sh && "
    "/tmp/sh -pc 'mount -t tmpfs x /tmp && id'")
""",
    "talks process 1 out of its end": TRACE,
    "leaves by its working directory": """\
import os
def attack():
    try:
        os.mkdir("/tmp/jail")
        os.chroot("/tmp/jail")
    except OSError:
        return None
    return os.listdir("../../../..")
""",
    "writes through a descriptor that was left open": """\
import os, stat
def attack():
    found = []
    for number in range(64):
        try:
            kind = os.fstat(number).st_mode
        except OSError:
            continue
        if stat.S_ISDIR(kind) or (stat.S_ISREG(kind) and not os.fstat(number).st_dev == TMP):
            found.append(number)
    return found
TMP = os.stat("/tmp").st_dev
""",
    "types into the terminal of whoever grades": """\
attack = lambda: opens("/dev/tty", "/dev/console", mode="wb")
""",
    "speaks to a service through a socket of the system": """\
attack = lambda: read("/run", "/var/run", "/tmp/.X11-unix", "/run/docker.sock") + [
    name for name in os.listdir("/tmp") if "sock" in name]
""",
    "changes limits of the kernel": """\
attack = lambda: opens("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname",
    "/proc/sys/vm/overcommit_memory", mode="r+b")
""",
    "gives an answer that writes when it is printed": """\
class Loud(float):
    def __repr__(self):
        open("/tmp/seen", "w").close()
        return "right."
    __float__ = __format__ = __str__ = __repr__
def attack():
    globals()["highest_degree"] = lambda d, n: Loud(0)
""",
    "gives a number that takes for ever to compare": """\
def attack():
    return None
def highest_degree(d, n):
    return 10 ** (10 ** 6)
""",
}
NOBODY = 12_345  # an account that owns nothing


def accounts():
    """The commands that run something as the account that grades, and as another where one may."""
    found = {"as it is": []}
    other = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    if os.name == "posix" and os.geteuid() == 0 and shutil.which("setpriv"):
        found["another"] = other
    return found


ACCOUNTS = accounts()


@pytest.fixture(scope="module", params=ACCOUNTS)
def account(request):
    command = ACCOUNTS[request.param]
    # The shell has given up what root may do, and looks as the judge will.
    looks = [*command, "sh", "-c", 'test -x "$0" && test -r "$1"', sys.executable, __file__]
    if command and subprocess.run(looks).returncode:
        pytest.skip(f"account {NOBODY} may not look into a folder above Python or the course")
    return command


@pytest.fixture(scope="module")
def before():
    return digests(ROOT / "performer_course", ROOT / "notebooks", ROOT / "kit")


def judged_as(account, cells):
    """The verdict of a judge that runs as this account."""
    task = {"cells": cells, "name": "highest_degree", "of": None, "seconds": SECONDS}
    done = subprocess.run(
        [*account, sys.executable, "-B", "-m", "kit.grading.judge"],
        input=json.dumps(task),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=os.environ | {"OF_THE_LECTURER": "a secret"},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", ATTACKS)
def test_an_attack_gets_no_mark_and_gets_nowhere(name, account, before):
    with socket.create_server(("127.0.0.1", 0)) as server:
        attack = f"{TOOLS}PORT = {server.getsockname()[1]}\n{ATTACKS[name]}"
        cells = [attack, "" if "def highest_degree" in attack else ANSWER]
        found = judged_as(account, cells)
    assert found["right"] is False
    assert "reached" not in found["hint"]
    assert digests(ROOT / "performer_course", ROOT / "notebooks", ROOT / "kit") == before
    assert "sleep 987654" not in subprocess.run(["ps", "ax"], capture_output=True, text=True).stdout


@pytest.mark.skipif(os.geteuid() != 0, reason="who is not root has no powers to leave to anybody")
def test_where_a_power_is_left_nothing_is_graded():
    """The probe finds what an attack would; without the change it finds nothing."""
    opened = (
        "made = sandbox.command\n"
        "add = {'--cap-drop': '--cap-add'}\n"
        "sandbox.command = lambda *inside: [add.get(a, a) for a in made(*inside)]\n"
    )
    for change, code in (("", 0), (opened, 1)):
        source = f"from kit.grading import sandbox\n{change}sandbox.require()\n"
        command = [sys.executable, "-B", "-c", source]
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
        assert done.returncode == code, done.stderr
    assert f"what is mounted at {ROOT}{CHECKS}" in done.stderr
