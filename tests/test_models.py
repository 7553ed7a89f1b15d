"""The files of data and models: found, of the right hash, and refused where they are damaged."""

import os

import numpy as np
import pytest

from performer_course.models import antibody, language, speech
from performer_course.teaching import data
from tests.support import language_model, real_model, speech_model
from tests.support.examples import label, public_functions
from tests.support.real_model import trusted
from tools.model import sha256

MODELS = {"antibody": antibody, "language": language, "speech": speech}
OWNERS = dict.fromkeys(speech.SHA256, speech) | {antibody.FILE: antibody, language.FILE: language}
each_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
each_file = pytest.mark.parametrize(("name", "model"), OWNERS.items())


def written(model, folder):
    """The file of a small model where it is kept, with what belongs beside it."""
    path = folder / model.FILE
    path.parent.mkdir(exist_ok=True)
    if model is not antibody:
        return {language: language_model, speech: speech_model}[model].written(path.parent)
    return real_model.written(path, w=real_model.tensor())


@pytest.mark.parametrize("function", public_functions(data), ids=label)
def test_data_without_the_course_say_that_they_need_a_clone(function, monkeypatch, tmp_path):
    monkeypatch.setattr(data, "FOLDER", tmp_path)
    given = [np.random.default_rng(0)] * (function is data.kinds)
    with pytest.raises(FileNotFoundError, match="is not there: data come with a clone"):
        function(*given)


@each_file
def test_a_file_of_another_hash_is_refused_and_both_are_named(name, model, tmp_path, monkeypatch):
    wrong = model.SHA256[name] if model is speech else model.SHA256
    name = name.rpartition("/")[2]
    path = written(model, tmp_path)
    right = {x.name: sha256(x) for x in path.parent.iterdir()}
    known = right | {name: wrong} if model is speech else wrong
    monkeypatch.setattr(model, "SHA256", known)
    words = rf"path must be .* sha256 {wrong}, got .*{name} with {right[name]}: `make model`"
    with pytest.raises(ValueError, match=words):
        model.load(path)


@each_file
def test_a_file_that_is_cut_off_is_refused(name, model, tmp_path):
    path = written(model, tmp_path)
    file = path.with_name(name.rpartition("/")[2])
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ValueError, match=rf"{file.name} is not a valid .*: \S"):
        trusted(model, path)


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
        words = r"path must be the path of a (file|model) of .*, got .*: `make model`, in a clone"
        with pytest.raises(ValueError, match=words):
            model.load(wrong)
    path.rmdir()
    assert trusted(model, written(model, tmp_path))
    assert model.find() == path
    if model is speech:
        path.with_name("config.json").unlink()
        with pytest.raises(FileNotFoundError):
            trusted(model, path)
