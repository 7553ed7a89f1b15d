"""Kernels that are reached by sockets in a folder of their own; also a plug-in of pytest, which
keeps the cells of a notebook in their order.

jupyter_client finds five free ports, lets them go, and tells the kernel to take them. In between
a kernel that starts at the same moment may have them, and then one of the two dies at birth. Names
in a fresh folder are nobody else's. (Windows keeps the ports.)
"""

import importlib
import os
import shutil
import tempfile
import weakref
from pathlib import Path

from jupyter_client.manager import AsyncKernelManager, KernelManager

from tools.setting import ENVIRONMENT, for_sockets


class _OwnFolder:
    """A manager of a kernel whose sockets lie in a fresh folder, which goes with the manager."""

    def __init__(self, **options):
        if os.name != "nt":
            folder = tempfile.mkdtemp(prefix="kernel-", dir=for_sockets())
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
            options |= {"transport": "ipc", "ip": str(Path(folder, "socket"))}
        if not any(Path(ENVIRONMENT["MPLCONFIGDIR"]).glob("fontlist*")):
            importlib.import_module(
                "matplotlib.font_manager"
            )  # or a lesson would say that it looks
        super().__init__(**options)


class Kernel(_OwnFolder, KernelManager):
    """For nbval."""


class AsyncKernel(_OwnFolder, AsyncKernelManager):
    """For nbclient."""


def pytest_configure():
    import nbval.kernel

    nbval.kernel.KernelManager = Kernel


def pytest_collection_modifyitems(items):
    """Put notebooks first, since some take long, and the cells of each in their order:
    pytest-randomly takes all cells for tests of one file, and shuffles them."""
    cells = [item for item in items if hasattr(item, "cell_num")]
    cells.sort(key=lambda cell: (cell.path, cell.cell_num))
    items[:] = cells + [item for item in items if not hasattr(item, "cell_num")]
