"""Buttons for Binder and Colab come with the address of the repository, and go with it."""

import os
import re
import subprocess
import sys

import nbformat

from tests.checkout import copied


def buttons(tree):
    """What `python -m kit.buttons` makes of README, exercises and projects of a copy."""
    command = [sys.executable, "-m", "kit.buttons"]
    subprocess.run(command, cwd=tree, env=os.environ | {"PYTHONPATH": str(tree)}, check=True)
    pages = [tree / "README.md", *sorted((tree / "notebooks/exercises").glob("*.ipynb"))]
    pages += sorted((tree / "notebooks/projects").glob("*.ipynb"))
    return {page.relative_to(tree).as_posix(): page.read_text(encoding="utf-8") for page in pages}


def test_buttons_are_made_from_the_address_of_the_repository_and_go_with_it(tmp_path):
    tree, home = copied(tmp_path / "tree"), "github.com/someone/some-course"
    binder = "(https://mybinder.org/v2/gh/someone/some-course/main?urlpath=lab/tree/my/{})"
    colab = "(https://colab.research.google.com/github/someone/some-course/blob/main/{})"
    pyproject = tree / "pyproject.toml"
    project = re.sub(r"\[project\.urls\]\n(.+\n)*", "", pyproject.read_text(encoding="utf-8"))
    urls = f'[project.urls]\nRepository = "https://{home}"\n'
    pyproject.write_text(project + urls, encoding="utf-8")
    pages = buttons(tree)
    pyproject.write_text(project, encoding="utf-8")
    bare = buttons(tree)
    assert re.findall("mybinder|colab", "".join(bare.values())) == []
    readme, (button, *rest) = bare.pop("README.md"), pages.pop("README.md").splitlines()[2:]
    assert button.endswith(binder.format("00_start_here.ipynb"))
    assert rest == readme.splitlines()[1:]
    for name, page in pages.items():
        button, install, *cells = nbformat.reads(page, as_version=4).cells
        assert button.source.endswith(colab.format(name))
        assert install.source.endswith(f"%pip install -q git+https://{home}")
        assert cells == nbformat.reads(bare[name], as_version=4).cells
