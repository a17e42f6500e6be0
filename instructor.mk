# The instructor's targets; the student edition has the Makefile without this file.
.PHONY: bundle

bundle: $(INSTALLED) ## write the student edition to dist/ProofLM-student and a zip archive of it
	@$(VENV_PYTHON) -m tools.bundle dist/ProofLM-student
