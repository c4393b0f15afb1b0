.PHONY: demo run test check test-without-qt benchmark clean

environment := .venv
python := $(environment)/bin/python

# A sample study, fused, its results written; then the window, or a screenshot where there is no display.
demo:
	scripts/environment $(environment)
	$(environment)/bin/raterscope demo demo

run:
	scripts/environment $(environment)
	$(environment)/bin/raterscope

test:
	scripts/environment $(environment) test
	$(python) -m pytest

check:
	scripts/environment $(environment) test,check
	$(python) -m ruff check .
	$(python) -m ruff format --check .
	$(python) -m mypy
	$(environment)/bin/lint-imports

# The algorithms must be of use where no Qt is installed.
test-without-qt:
	scripts/environment-without-qt .venv-without-qt
	.venv-without-qt/bin/python -m pytest tests/algorithms

benchmark:
	scripts/environment $(environment) test
	OPENBLAS_NUM_THREADS=1 $(python) -m tests.benchmarks.clicks_accuracy
	OPENBLAS_NUM_THREADS=1 $(python) -m tests.benchmarks.clicks_speed
	OPENBLAS_NUM_THREADS=1 $(python) -m tests.benchmarks.window_speed

clean:
	rm -rf .venv .venv-without-qt demo build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
