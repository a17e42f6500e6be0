# Targets of instructors and contributors; the student edition has the Makefile without this file.
.PHONY: bundle lock

bundle: $(INSTALLED) ## write the student edition to dist/ProofLM-student and a zip archive of it
	@$(VENV_PYTHON) -m tools.bundle dist/ProofLM-student

lock: ## resolve requirements.txt anew and write every version to constraints.txt
	@test -x $(VENV_PYTHON) || "$(PYTHON)" -m venv .venv
	@$(VENV_PYTHON) -m tools.lock
