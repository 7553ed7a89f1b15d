"""The project agrees with itself: versions, environments, CI, hooks, README, and no stray paths."""

import json
import re
import subprocess
import tomllib

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.support.checkout import text, tracked
from tools.notebooks import NOTEBOOKS, ROOT, read
from tools.setting import edition

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
EXTRAS, GROUPS = PROJECT["optional-dependencies"], PYPROJECT["dependency-groups"]
SETS = EXTRAS | GROUPS
CONDA_NAMES = {"matplotlib": "matplotlib-base"}
PYTHONS = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["classifiers"]))
HOME = re.compile(r"(?<![\w.~])/(?:home|root|Users)/\w|[A-Z]:\\+Users\\+\w")
REGISTRY = re.compile(r"\b(?:pypi|pythonhosted|anaconda|npmjs)\.(?:org|com)\b")


def test_conda_gets_the_packages_of_pyproject():
    environment = yaml.safe_load(text("environment.yml"))
    needed = PROJECT["dependencies"] + EXTRAS["lessons"] + EXTRAS["training"]
    needed += EXTRAS["cluster"]
    bounds = {r.name: r.specifier for r in map(Requirement, needed)}  # lessons need a newer NumPy
    wanted = [f"{CONDA_NAMES.get(name, name)}{bounds[name]}" for name in bounds]
    python, *packages = environment["dependencies"]
    assert packages == ["pip", *wanted, {"pip": ["-e ."]}]
    assert python in [f"python={version}" for version in PYTHONS]
    assert environment["channels"] == ["conda-forge"]
    assert environment["name"] == PROJECT["name"]


def test_conda_names_the_gpu_library_of_pyproject_as_a_choice():
    wanted = [Requirement(r) for key in SETS for r in SETS[key] if "cupy" in r]
    bounds = {str(requirement.specifier) for requirement in wanted}
    assert re.findall(r"# - cupy(>=\S+)", text("environment.yml")) == list(bounds)


def test_every_dependency_is_pinned_within_its_bounds():
    pins = {}
    for line in text("constraints.txt").splitlines():
        name, version = re.match(r"([\w.-]+)==([\w.]+)", line).groups()
        pins.setdefault(canonicalize_name(name), []).append(Version(version))
    # PyTorch's builds are for one device each, and peers are pinned where they are listed.
    apart = ("gpu-cuda12", "gpu-cuda13", "torch", "huggingface", "peers")
    pinned = [wanted for key, wanted in SETS.items() if key not in apart]
    for requirement in map(Requirement, sum(pinned, PROJECT["dependencies"])):
        versions = pins.get(canonicalize_name(requirement.name))
        assert versions, f"{requirement.name} is not pinned: run `make constraints`"
        assert all(version in requirement.specifier for version in versions), requirement


def test_the_pins_name_no_host():
    assert re.findall(r"(?m)^.*(?:://| @ |file:|^-).*$", text("constraints.txt")) == []


def test_ci_meets_its_peers_every_week_in_the_versions_that_their_page_names():
    peers = yaml.safe_load(text(".github/workflows/ci.yml"))["jobs"]["peers"]
    steps = [step.get("run", "") for step in peers["steps"]]
    assert "EXTRAS=peers" in " ".join(steps).split()
    (met,) = (n for n, step in enumerate(steps) if "tests/deep/test_peers.py" in step.split())
    assert peers["env"]["UV_TORCH_BACKEND"] == "cpu"
    pins = set(" ".join([*GROUPS["peers"], *steps[:met]]).split())
    said = re.findall(r"(?m)^\| ([\w-]+) (\d[\w.]+) \|", text("kit/pages/how_we_know.md"))
    named = {f"{name}=={version}" for name, version in said if name != "scikit-learn"}
    assert named == {pin for pin in pins if "==" in pin and "flax" not in pin}  # runs a page alone
    assert f"scikit-learn=={dict(said)['scikit-learn']}" in text("constraints.txt").split()


def test_readme_without_make_installs_the_sets_of_make():
    sets = re.findall(r"(?m)^(?:LESSONS|TESTS) := \$\(VENV\)/with-([\w,-]+)", text("Makefile"))
    (extras,) = re.findall(r'pip install .*"\.\[(.+)\]"', text("README.md"))
    groups = re.findall(r"--group (\w+)", text("README.md"))
    assert [extras, ",".join([extras, *groups])] == sets
    assert re.findall(r"(?m)^GROUPS := (.+)", text("Makefile")) == [" ".join(sorted(GROUPS))]


def test_each_lesson_has_a_row_in_readme_or_among_the_branches():
    said = text("README.md") + text("kit/pages/branches.md")
    rows = re.findall(r"(?m)^\| \[(\w+)\]\((?:../../)?(\S+)\) \| (.+?) \| .+ \|$", said)
    expected = []
    for lesson in sorted(NOTEBOOKS.glob("*.py")):
        (title,) = re.findall(r"(?m)^# (.+)$", read(lesson).cells[0].source)
        link = lesson.with_suffix(".ipynb").relative_to(ROOT).as_posix()
        expected.append((lesson.stem.split("_")[0], link, title))
    assert sorted(rows) == expected


def test_the_page_on_speed_quotes_the_recorded_benchmark():
    times = json.loads(text("benchmarks/attention.json"))
    said = " ".join(text("kit/pages/speed.md").split())
    ranges = re.findall(r"(\d+) to (\d+) times", said)
    for length, (low, high) in zip(("8192", "16384"), ranges, strict=True):
        found = [times[table][length] for table in ("all-to-all", "causal")]
        ratio, causal = (by["torch SDPA"] / by["favor_attention"] for by in found)
        assert int(low) <= round(ratio) <= int(high)
        assert {f"{causal:.1f}", f"{int(length):,}"} <= set(re.findall(r"[\d.,]*\d", said))
    one = times["decoding"]["1024"]
    assert f"{one['state']:.0f} µs per token compared with {one['KV cache']:.0f}" in said
    scratch = [x for n, by in times["memory"].items() if "favor" in n for x in by.values()]
    assert max(scratch) < int(re.search(r"under (\d) MiB of scratch memory", said)[1])


def test_the_citation_has_the_version_date_and_licence_of_the_project():
    citation = yaml.safe_load(text("CITATION.cff"))
    released = citation["date-released"]
    dated = f"{citation['version']}, {released.day} {released:%B %Y}"
    assert citation["version"] == PROJECT["version"]
    assert re.findall(r"(?m)^## (\d.+)$", text("CHANGELOG.md"))[0] == dated
    assert " AND ".join(citation["license"]) == PROJECT["license"]
    lines = dict(re.findall(r"(?m)^  (\w+) += \{(.+)\},$", text("README.md").replace("\\", "")))
    (author,) = citation["authors"]
    assert lines == {
        "title": citation["title"],
        "author": f"{{{author['name']}}}",
        "year": str(released.year),
        "note": f"Edition {dated}",
    }


def test_what_changed_after_an_edition_does_not_bear_its_name(tmp_path):
    log = tmp_path / "CHANGELOG.md"
    entries = "## Unreleased\n{}\n## 0.2.0, 1 May 2027\n\n- New.\n\n## 0.1.0, 1 May 2026\n"
    log.write_text(entries.format(""), encoding="utf-8")
    assert edition(tmp_path) == "Edition 0.2.0, 1 May 2027"
    log.write_text(entries.format("\n- Newer.\n"), encoding="utf-8")
    assert edition(tmp_path) == "After edition 0.2.0"  # as in a ZIP
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    for command in (["init", "-q"], ["commit", "-q", "--allow-empty", "-m", "Begin"]):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)
    assert re.fullmatch(r"After edition 0\.2\.0 \(commit [0-9a-f]{7,}\)", edition(tmp_path))


def test_each_column_of_a_table_has_a_name():
    head = re.compile(r"(?m)^(?:# )?(\|.*\|)\n(?:# )?\|-")
    names = [name for name in tracked() if name.endswith((".md", ".py"))]
    heads = [(name, row) for name in names for row in head.findall(text(name))]
    assert [(name, row) for name, row in heads if re.search(r"\| *\|", row)] == []


def test_no_file_names_a_home_folder_or_a_package_registry():
    found = []
    for name in tracked():
        content = (ROOT / name).read_bytes().decode("utf-8", errors="ignore")
        hits = HOME.findall(content) + REGISTRY.findall(content)
        found += [f"{name}: {hit}" for hit in hits] + [name] * (str(ROOT) in content)
    assert found == []


def test_no_text_has_the_course_fetched_from_elsewhere():
    """Nothing is published under its name: anybody could take it and put anything there. With the
    address of a wheel it can be."""
    wheel = rb"(?!\[lessons\] @ \{address)"
    named = re.compile(
        rb"performer_course" + wheel + rb"\[|install (?:-\S+ )*['\"]?performer.course\b" + wheel
    )
    assert [name for name in tracked() if named.search((ROOT / name).read_bytes())] == []
