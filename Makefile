# performer_course: `make` lists what there is.
VENV ?= .venv
PYTHON ?= python3
CONSTRAINTS ?= -c constraints.txt
EXTRAS ?=
LESSON ?=
PAGE ?=
MODULE ?=
LABFLAGS ?=
FOLDER ?=
MODEL ?=
PYTEST ?=

ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif
# Git's shell on Windows takes the address of a page for a path, unless told not to.
export MSYS_NO_PATHCONV := 1
# What a reader has set for other work would change what is installed here, and how it runs.
export PIP_USER := 0
unexport PYTHONPATH PYTHONSAFEPATH PYTHONWARNINGS
# Jupyter asks for this flag where one works as root, as in a container.
ROOTFLAG := $(shell [ "$$(id -u)" = 0 ] && echo --allow-root)
# A stamp for each set of extras and dependency groups that was asked for. EXTRAS=gpu-cuda12 adds to what a
# target needs.
GROUPS := benchmarks course gpu-check lite pdf peers site slides tests
comma := ,
space := $(subst ,, )
LESSONS := $(VENV)/with-lessons,training,cluster$(EXTRAS:%=,%)
TESTS := $(VENV)/with-lessons,training,cluster,tests,benchmarks$(EXTRAS:%=,%)
WEB := $(VENV)/with-lessons,training,site$(EXTRAS:%=,%)
LITE := $(VENV)/with-lite$(EXTRAS:%=,%)
TIMED := $(VENV)/with-lessons,lite
PDF := $(VENV)/with-pdf$(EXTRAS:%=,%)
SLIDES := $(VENV)/with-slides$(EXTRAS:%=,%)
COURSE := $(VENV)/with-lessons,training,cluster,course
PUBLISH := $(VENV)/with-lessons,training,site,slides,lite,pdf$(EXTRAS:%=,%)
KIT := $(VENV)/with-lessons,training,cluster,tests,site,slides,lite,pdf,course$(EXTRAS:%=,%)
NIGHT := $(VENV)/with-lessons,training,cluster,tests,benchmarks,gpu-check,site,slides,lite,pdf,course$(EXTRAS:%=,%)
GPU := $(VENV)/with-$(or $(EXTRAS),gpu-cuda12)

.DEFAULT_GOAL := help
.PHONY: help lab test test-all lint format notebooks publish site slides lite pdf model course test-kit without-blas bench bench-gpu claims constraints clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):[^#]*## /  make \1\t/' | expand -t 20

lab: $(LESSONS) ## fill my/ with your own copies, and open JupyterLab there (on 127.0.0.1, with a token)
	$(BIN)/python -m tools.lab
	$(BIN)/jupyter lab --ServerApp.ip=127.0.0.1 --ServerApp.root_dir=. $(ROOTFLAG) --LabApp.default_url=/lab/tree/my/00_start_here.ipynb $(LABFLAGS)

test: $(if $(LESSON)$(MODULE),$(TESTS),lint) ## verify everything that is quick; of one lesson: LESSON=05; of one module: MODULE=kernels
	$(BIN)/python -m pytest @tests/whole.txt $(if $(LESSON),$(OF_LESSON)) $(if $(MODULE),$(OF_MODULE)) $(PYTEST)

# It is executed, also on the strict double; its exercises; and what quotes it. `make test-all` executes solutions.
OF_LESSON = $(wildcard $(patsubst %,%/$(LESSON)_*.ipynb,notebooks notebooks/projects/solutions)) \
	tests/deep/test_double.py tests/test_lessons.py tests/test_notebooks.py tests/test_words.py tests/test_alts.py tests/test_shape.py tests/test_exercises.py tests/exercises \
	kit/tests/test_lecturer.py -k "$(LESSON)_ or lesson_$(LESSON) or test_$(LESSON) or lecturer"

# Its own tests, and of those that look at all modules, those of its functions.
OF_MODULE = $(wildcard tests/test_*$(MODULE:_%=%).py) $(patsubst %,tests/test_%.py,device_safety fuzz shapes) \
	-k "$(MODULE:_%=%). or .$(MODULE)"

test-all: lint $(NIGHT) ## the night's run: also the strict double, solutions, projects, planted defects, trainings, and the kit
	$(BIN)/python -m pytest @tests/whole.txt -o "norecursedirs=.* build my" $(PYTEST)

lint: $(TESTS) ## style, spelling, imports, and notebooks in sync with their sources
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/codespell
	$(BIN)/lint-imports --no-cache --no-logo
	$(BIN)/python -m tools.notebooks --check

format: $(TESTS) ## put style in order, as far as ruff can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

notebooks: $(TESTS) ## run the lessons and write their .ipynb (one alone: make notebooks LESSON=01)
	$(BIN)/python -m tools.notebooks $(LESSON)

# In this order: the site takes along what the others have made, and prints the handouts.
publish: $(PUBLISH) ## all that a reader may get, in build/site/html; with its addresses: SITE=https://… REPOSITORY=https://…
	$(BIN)/python -m kit.lite
	$(BIN)/python -m kit.slides
	$(BIN)/python -m kit.site

site: $(WEB) ## the course as a web site, in build/site/html (npm brings MathJax)
	$(BIN)/python -m kit.site

slides: $(SLIDES) ## a deck of slides for each lecture, in build/slides, which `make site` takes along (npm; PDFs need Chromium)
	$(BIN)/python -m kit.slides

lite: $(LITE) ## the lessons that run in the browser, in build/lite, for the site to come after
	$(BIN)/python -m kit.lite

pdf: $(if $(wildcard build/site/html/index.html),,site) $(PDF) ## print the handouts and the path as PDFs, or one page of the site, PAGE=notebooks/05_orthogonal_features (Chromium)
	$(BIN)/python -m kit.pdf $(PAGE)

model: $(LESSONS) ## fetch pretrained models into model/, of antibodies (97 MB), speech (71 MB) and language (93 MB), which nothing needs; one: MODEL=speech
	$(BIN)/python -m tools.model $(MODEL)

course: $(COURSE) ## make a course for nbgrader in course/ (elsewhere: FOLDER=…)
	$(BIN)/python -m kit.course $(FOLDER)

test-kit: $(KIT) ## verify site, slides, PDFs, browser build and grading (needs Chromium or Chrome, and npm)
	$(BIN)/python -m pytest kit/tests/built $(PYTEST)

without-blas: build/without-blas/numpy ## time the lessons on a NumPy like the browser's, which takes 12 minutes to build
	PYTHONPATH=$(CURDIR)/build/without-blas $(BIN)/python -m kit.seconds $(LESSON)

build/without-blas/numpy: constraints.txt $(TIMED)
	$(BIN)/python -m pip install -q --upgrade --no-deps --no-binary numpy $(CONSTRAINTS) --target $(@D) numpy \
	  $(addprefix -Csetup-args=-D,allow-noblas=true blas=none lapack=none)

bench: $(TESTS) ## time the package side by side with its peers, and draw the figures
	$(BIN)/python benchmarks/fourier.py
	$(BIN)/python benchmarks/attention.py
	$(BIN)/python benchmarks/near_far.py

bench-gpu: $(GPU) ## measure what appendix a5 estimates, on an NVIDIA GPU (installs CuPy: EXTRAS=gpu-cuda12)
	$(BIN)/python benchmarks/gpu.py

claims: $(TESTS) ## plant each defect that a claim names, and say which are not caught
	$(BIN)/python -m pytest -v tests/deep/test_claims.py

# The CUDA libraries of gpu-cuda12 and gpu-cuda13 exclude each other, so those two are not pinned.
constraints: ## choose the pinned versions anew (needs uv)
	uv pip compile -q --universal --python-version 3.11 --no-header --no-annotate --no-emit-index-url $(addprefix --extra=,lessons training cluster) $(addprefix --group=,$(filter-out peers,$(GROUPS))) pyproject.toml -o constraints.txt

clean: ## remove what make set up
	rm -rf $(VENV)

# All extras that were ever asked for, so that no set undoes another or is left behind when versions
# change. One CuPy is enough: gpu-check gives way to a real one.
ALL = $(sort $(subst $(comma), ,$(patsubst $(VENV)/with-%,%,$@ $(wildcard $(VENV)/with-*))))
WANTED = $(if $(filter gpu-cuda%,$(ALL)),$(filter-out gpu-check,$(ALL)),$(ALL))
BRACKETS = $(subst $(space),$(comma),$(filter-out $(GROUPS),$(WANTED)))
INSTALL = $(CONSTRAINTS) -e ".$(BRACKETS:%=[%])" \
	$(addprefix --group ,$(filter $(GROUPS),$(WANTED)))

# uv installs in seconds what takes pip two minutes, so pip fetches it where it is not there, and does
# its work where it can't be had: the same versions either way. What was half made when it was interrupted
# is made anew. A package is whole once it has its INSTALLER, which comes last; pip and uv would go by its
# name alone. An environment is whole once it has pip, or for uv a pyvenv.cfg. setuptools warns of every
# editable install that it goes by the name of a folder, as this one should; that warning is left out.
$(VENV)/with-%: pyproject.toml constraints.txt
	@for package in $(VENV)/lib/python*/site-packages/*.dist-info $(VENV)/Lib/site-packages/*.dist-info; do \
	  test -e $$package/INSTALLER || rm -rf $$package; \
	done; \
	if command -v uv >/dev/null 2>&1; then \
	  set -ex; test -e $(BIN)/python -a -e $(VENV)/pyvenv.cfg || uv venv -q --allow-existing --python $(PYTHON) $(VENV); \
	  uv pip install -q --python $(VENV) $(INSTALL); \
	else \
	  set -e; export PYTHONWARNINGS=ignore:Editable; set -x; test -e $(BIN)/pip || $(PYTHON) -m venv $(VENV); \
	  pip="$(BIN)/python -m pip install -q --disable-pip-version-check"; \
	  { test -e $(BIN)/uv || $$pip uv; } && $(BIN)/uv pip install -q --python $(VENV) $(INSTALL) \
	    || { echo "uv could not; pip can, in two minutes."; $$pip "pip>=25.1"; $$pip $(INSTALL); }; \
	fi
	@touch $@ $(wildcard $(VENV)/with-*)
