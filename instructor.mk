# Targets of instructors and contributors; the student edition has the Makefile without this file.
.PHONY: bundle lock

bundle: $(INSTALLED) ## write the student edition to dist/ProofLM-student and a zip archive of it
	@$(VENV_PYTHON) -m tools.bundle dist/ProofLM-student

lock: ## resolve requirements.txt anew and write every version to constraints.txt
	@test -x $(VENV_PYTHON) || "$(PYTHON)" -m venv .venv
	@$(VENV_PYTHON) -m tools.lock

.PHONY: release grade regrade feedback formgrader solutions demo
NBGRADER := $(VENV_PYTHON) -m nbgrader
# A gradebook on a server is none of our files: make release once enters the assignments there.
GRADEBOOK := $(if $(shell grep -s '^c.CourseDirectory.db_url' nbgrader_config.py),,gradebook.db)
# What these targets are about; one problem set alone: make release ASSIGNMENT=p4
ASSIGNMENTS = $(or $(ASSIGNMENT),$(notdir $(patsubst %/,%,$(wildcard source/*/))))

release: $(INSTALLED) ## write source/ to release/ without solutions and hidden tests, for students
	@for set in $(ASSIGNMENTS); do \
		$(NBGRADER) generate_assignment "$$set" --force --log-level=ERROR && echo "release/$$set" || exit 1; done

grade: $(INSTALLED) | $(GRADEBOOK) ## run and judge what lies in submitted/, write the gradebook (STUDENTS='a*', SCHEDULER=tcp://...)
	@$(VENV_PYTHON) -m grading grade $(ASSIGNMENT) $(if $(STUDENTS),--students '$(STUDENTS)') \
		$(if $(SCHEDULER),--scheduler '$(SCHEDULER)')

regrade: $(INSTALLED) | $(GRADEBOOK) ## judge stored answers again after a test was corrected; runs no notebook
	@$(VENV_PYTHON) -m grading regrade $(ASSIGNMENT) $(if $(STUDENTS),--students '$(STUDENTS)')

feedback: $(INSTALLED) ## write a page for each graded submission to feedback/
	@set -- autograded/*/*/*.ipynb; test -f "$$1" || { echo "nothing graded yet: make grade"; exit 0; }; \
	for set in $(ASSIGNMENTS); do for graded in autograded/*/"$$set"; do \
		test ! -d "$$graded" || { $(NBGRADER) generate_feedback "$$set" --force --log-level=ERROR && \
			echo "feedback/*/$$set" || exit 1; \
			unread=$$(grep -ls '<small class="unread">' feedback/*/"$$set"/*.html | wc -l); \
			test $$unread = 0 || echo "$$set: answers in words that nobody has read yet on $$unread pages:" \
				"make formgrader, then make feedback again"; break; }; done; done

formgrader: $(INSTALLED) | $(GRADEBOOK) ## open the formgrader: read answers in words, see grades
	@mkdir -p .exchange; exec $(VENV_PYTHON) -m jupyterlab $(LAB_FLAGS) --ServerApp.answer_yes=True --ServerApp.root_dir=. \
		--LabApp.default_url=/formgrader

solutions: $(INSTALLED) | $(GRADEBOOK) ## write solved, executed notebooks to solutions/, for after the deadline
	@for set in $(ASSIGNMENTS); do \
		$(NBGRADER) generate_solution "$$set" --force --log-level=ERROR && echo "solutions/$$set" || exit 1; done

demo: $(INSTALLED) ## grade a class of made-up students in demo/, apart from every real grade
	@$(VENV_PYTHON) -m grading.demo

# The gradebook knows an assignment from when it was released; a fresh clone has the release but no gradebook.
gradebook.db:
	@$(MAKE) --no-print-directory release ASSIGNMENT= >/dev/null
