"""The files of both models: found, of the right hash, and refused where they are damaged."""

import hashlib
import os

import pytest

from performer_course import antibody, speech
from tests import real_model, speech_model

HASHES = speech.SHA256 | {antibody.FILE: antibody.SHA256}
each_model = pytest.mark.parametrize("model", [antibody, speech], ids=["antibody", "speech"])
each_file = pytest.mark.parametrize("name", HASHES)


def written(model, folder):
    """The file of a small model where it is kept, with what belongs beside it."""
    path = folder / model.FILE
    path.parent.mkdir(exist_ok=True)
    if model is speech:
        return speech_model.written(path.parent)
    return real_model.written(path, w=real_model.tensor())


@each_file
def test_a_file_of_another_hash_is_refused_and_both_are_named(name, tmp_path, monkeypatch):
    model = antibody if name == antibody.FILE else speech
    path = written(model, tmp_path)
    right = {x.name: hashlib.sha256(x.read_bytes()).hexdigest() for x in path.parent.iterdir()}
    known = dict if model is speech else (lambda hashes: hashes[name])
    monkeypatch.setattr(model, "SHA256", known(right | {name: HASHES[name]}))
    words = rf"path must be .* sha256 {HASHES[name]}, got .*{name} with {right[name]}: .*check_hash"
    with pytest.raises(ValueError, match=words):
        model.load(path)
    monkeypatch.setattr(model, "SHA256", known(right))
    assert model.load(path).keys() == model.load(path, check_hash=False).keys()


@each_file
def test_a_file_that_is_cut_off_or_of_another_format_is_refused(name, tmp_path):
    model = antibody if name == antibody.FILE else speech
    path = written(model, tmp_path)
    file = path.with_name(name)
    whole = file.read_bytes()
    cuts = range(0, len(whole), 20 if model is antibody else len(whole) // 2)
    for wrong in (*(whole[:n] for n in cuts), whole[:-1], b"GGUF" + whole[4:], b"[]"):
        file.write_bytes(wrong)
        with pytest.raises(ValueError, match=rf"{name} is not .*(file|model|vocab|config).*: \S"):
            model.load(path, check_hash=False)


@each_model
def test_a_model_is_found_where_it_is_kept_and_nowhere_else(model, tmp_path, monkeypatch):
    monkeypatch.setattr(model, "FOLDER", tmp_path)
    path = tmp_path / model.FILE
    assert model.find() is None
    with pytest.raises(FileNotFoundError):
        model.load(path)
    path.mkdir(parents=True)
    assert model.find() is None
    for wrong in (path, str(path), os.devnull, 7, None):  # a pipe would never end
        with pytest.raises(ValueError, match=r"path must be the path of a (file|model) of .*, got"):
            model.load(wrong)
    path.rmdir()
    assert model.load(written(model, tmp_path), check_hash=False)
    assert model.find() == path
    if model is speech:
        path.with_name("config.json").unlink()
        with pytest.raises(FileNotFoundError):
            model.load(path, check_hash=False)
