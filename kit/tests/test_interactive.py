"""Each interactive figure belongs to a figure that exists, and has its real numbers."""

from kit import figures
from tools.lesson import paths, read
from tools.record import window
from tools.setting import ROOT

FILES = sorted((ROOT / "kit/look/static" / figures.FOLDER).glob("*"))


def test_each_figure_is_one_of_its_lesson_and_has_a_script():
    numbers = {figure.number for path in paths() for figure in read(path).figures}
    assert set(figures.SCRIPTS) <= numbers
    assert {file.stem for file in FILES} == {"shared", *figures.SCRIPTS.values()}


def test_the_head_in_the_figure_of_a_window_is_the_one_that_its_record_cuts():
    written = window.FILE.read_text(encoding="utf-8")
    assert written.partition(window.BEGIN)[2].partition(window.END)[0] == window.heads()
