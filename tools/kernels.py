"""Kernels that are reached by sockets in a folder of their own; a plug-in of pytest, too.

jupyter_client finds five free ports, lets them go, and tells the kernel to take them. In between
a kernel that starts at the same moment may have them, and then one of the two dies at birth. Names
in a fresh folder are nobody else's. (Windows keeps the ports.)
"""

import os
import shutil
import tempfile
import weakref
from pathlib import Path

from jupyter_client.manager import AsyncKernelManager, KernelManager


class _OwnFolder:
    """A manager of a kernel whose sockets lie in a fresh folder, which goes with the manager."""

    def __init__(self, **options):
        if os.name != "nt":
            folder = tempfile.mkdtemp(prefix="kernel-")
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            options |= {"transport": "ipc", "ip": str(Path(folder, "socket"))}
        super().__init__(**options)


class Kernel(_OwnFolder, KernelManager):
    """For nbval."""


class AsyncKernel(_OwnFolder, AsyncKernelManager):
    """For nbclient."""


def pytest_configure():
    import nbval.kernel

    nbval.kernel.KernelManager = Kernel
