# Every target sets up .venv by itself; the stamp says for which requirements it was done.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.opscan-installed

.PHONY: scan test browser-test lint format types readme check clean

scan: $(STAMP)
	@code=0; $(BIN)/opscan fixtures/models/nanogpt.py fixtures/models/speech_ctc.py \
	    --target torch==2.9.1 --target torch==2.15.0 || code=$$?; \
	echo "opscan exit code: $$code (0 nothing found, 1 findings)"; test $$code -le 1

test: $(STAMP)
	$(BIN)/python -m pytest -n auto

# Chromium: OPSCAN_CHROMIUM, else the one on PATH, else Debian's, else Playwright's own.
browser-test: $(STAMP)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[browser]'
	@test -n "$$OPSCAN_CHROMIUM" || command -v chromium >/dev/null || \
	    { test "$$(id -u)" = 0 && apt-get -qq update && apt-get -qq -y install chromium >/dev/null; } || \
	    $(BIN)/python -m playwright install --with-deps chromium
	OPSCAN_BROWSER=required $(BIN)/python -m pytest -m browser tests/report

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(STAMP)
	$(BIN)/mypy

readme: $(STAMP)
	$(BIN)/python bench/readme.py --check
	$(BIN)/python bench/rule_docs.py --check
	$(BIN)/python bench/sim_contradictions.py --check
	$(BIN)/python bench/agreement.py --check

check: lint types readme test

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	@touch $@
