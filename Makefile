# Everything runs in .venv, which need not be active; `make` alone lists the targets.
.DEFAULT_GOAL := help
.PHONY: help lab train test FORCE

# The first supported Python on PATH; another one: make lab PYTHON=/path/to/python3.12
ifeq ($(origin PYTHON),undefined)
SUPPORTED := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))
PYTHON := $(shell for p in python3.11 python3.12 python3.13 python3 python; do \
	$$p -c '$(SUPPORTED)' 2>/dev/null && command -v $$p && break; done)
endif

# Programs that others start by name (nbgrader starts alembic) are found without activating anything.
export PATH := $(CURDIR)/.venv/bin:$(PATH)
export JUPYTER_PREFER_ENV_PATH := 1

VENV_PYTHON := .venv/bin/python
INSTALLED := .venv/.installed
RUN ?= runs/proofs
TESTS ?= $(wildcard tests course source)
# A browser is opened where there is one to open: always on macOS, on Linux where there is a display.
LAB_FLAGS := $(if $(filter Darwin,$(shell uname -s))$(DISPLAY)$(WAYLAND_DISPLAY),,--no-browser)
LAB_FLAGS += $(if $(filter 0,$(shell id -u)),--allow-root) --custom-css --ServerApp.tornado_settings=static_custom_path=labconfig

help: ## show this list
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

lab: $(INSTALLED) ## install what is missing and open the course in JupyterLab (Ctrl-C stops it)
	@exec $(VENV_PYTHON) -m jupyterlab $(LAB_FLAGS) --ServerApp.answer_yes=True --ServerApp.root_dir=. \
		--LabApp.default_url=/lab/tree/course/00_start_here.ipynb

train: $(INSTALLED) ## train a model that proves theorems; Ctrl-C stops it, make train goes on (RUN=folder)
	@if ls "$(RUN)"/step-*.safetensors >/dev/null 2>&1; then command=resume; else command=train; fi; \
		exec $(VENV_PYTHON) -m proof_lm $$command --run "$(RUN)"

test: export OMP_NUM_THREADS := 1
test: $(INSTALLED) ## lint, run every test, re-execute every notebook and compare outputs and figures
	@$(VENV_PYTHON) -m ruff check .
	@$(VENV_PYTHON) -m pytest --nbval --nbval-current-env --nbval-cell-timeout=300 \
		--numprocesses=auto --dist=loadfile --no-loadscope-reorder $(TESTS)

# Installs again when a list of packages changed, and anew when the folder was moved: a venv holds absolute paths.
VENV_IS_HERE := grep -qsF "$(CURDIR)/.venv" .venv/pyvenv.cfg && test -x .venv/bin/pip
$(INSTALLED): requirements.txt constraints.txt pyproject.toml labconfig/overrides.json \
		$(shell $(VENV_IS_HERE) || echo FORCE)
	@test -n "$(PYTHON)" || { echo "ProofLM needs Python 3.11, 3.12 or 3.13; none is on PATH." \
		"Install one, or name it: make lab PYTHON=/path/to/python3.11" >&2; exit 1; }
	@if $(VENV_IS_HERE); then quiet=--quiet; else "$(PYTHON)" -m venv --clear .venv; fi && \
		$(VENV_PYTHON) -m pip install --disable-pip-version-check $$quiet -c constraints.txt -r requirements.txt
	@$(VENV_PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@mkdir -p .venv/share/jupyter/lab/settings && cp labconfig/overrides.json .venv/share/jupyter/lab/settings/
	@$(VENV_PYTHON) -c "import matplotlib.pyplot"  # builds the font cache, which would else warn in a lesson
	@touch $@

-include instructor.mk
