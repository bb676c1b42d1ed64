# Each target makes .venv and installs the project by itself; a second call finds both done.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.ready
# the package as the wheel lays it out, for the type checker
TYPED := $(VENV)/typed

.PHONY: demo test bench bench-train papers bench-peers bench-gpu test-gpu test-outside lint docs package clean

demo: $(READY)
	$(PY) -m xcoexec demo

test: $(READY)
	$(PY) -m pytest

bench: $(READY)
	$(PY) -m benchmarks

# whole training steps; PyTorch beside them where it is installed
bench-train: $(READY)
	$(PY) -m benchmarks.train out $(ARGS)
	$(PY) -m benchmarks.learning_curves out

# the five papers' tables and figures, with their page in out/papers; ARGS="--paper=edgenn --full" for more or less
papers: $(READY)
	$(PY) -m xcoexec papers --out=out/papers $(ARGS)

bench-peers: $(VENV)/.peers
	$(PY) -m benchmarks.peers

# on the whole GPU, then on small parts of it that stand for edge GPUs
bench-gpu: $(VENV)/.gpu
	$(PY) -m benchmarks.gpu out/gpu
	for percent in 6 12 25; do benchmarks/edge_slice $$percent $(PY) -m benchmarks.gpu out/gpu-$$percent || exit 1; done
	for bench in layers weights drift; do benchmarks/edge_slice 6 $(PY) -m benchmarks.$$bench out/gpu-6 || exit 1; done

# the promises on a real GPU: faults, memory bounds, calls across swaps
test-gpu: $(VENV)/.gpu
	XCOEXEC_TEST_GPU=1 $(PY) -m pytest -n0 tests/test_gpu.py tests/test_gpu_streams.py tests/test_gpu_threads.py

# other projects' own tests with jax.jit replaced: PART=ci for the short part, JIT=auto or device for other plans
PART ?= all
JIT ?= host
test-outside: $(VENV)/.outside
	$(PY) -m tests.outside.suites --part $(PART) --jit $(JIT)

lint: $(READY)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	@rm -rf $(TYPED) && mkdir -p $(TYPED) && cp -r xcoexec $(TYPED)/ && cp -r codegen models $(TYPED)/xcoexec/
	cp tests/editor_types.py tests/user_types.py $(TYPED)/
	cd $(TYPED) && ../bin/python -m mypy --config-file ../../pyproject.toml -p xcoexec
	cd $(TYPED) && ../bin/python -m mypy --config-file ../../pyproject.toml editor_types.py
	cd $(TYPED) && ../bin/python -m mypy --strict --config-file= --ignore-missing-imports --follow-imports=silent user_types.py

# the site in out/docs; notebooks are run, and a warning is an error
docs: $(VENV)/.docs
	$(PY) -m sphinx -W --keep-going -q -b html docs out/docs

# sdist in dist/ and a wheel made of it; what the package index shows and the citation are checked
package: $(VENV)/.package
	rm -rf dist build
	$(PY) -m build --no-isolation . > /dev/null
	$(PY) -m twine check --strict dist/*
	$(VENV)/bin/cffconvert --validate -i CITATION.cff

$(READY): pyproject.toml
	@$(PYTHON) -c "import sys; sys.exit('make: got Python %d.%d; xcoexec needs 3.11 or newer (make PYTHON=python3.12 ...)' % sys.version_info[:2] if sys.version_info < (3, 11) else 0)"
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check -e ".[demo,dev]"
	@touch $(READY)

# the other runtimes are only there to be measured: nothing else needs them
$(VENV)/.peers: $(READY)
	$(PY) -m pip install --quiet --disable-pip-version-check -e ".[peers]"
	@touch $@

$(VENV)/.docs: $(READY)
	$(PY) -m pip install --quiet --disable-pip-version-check -e ".[docs]"
	@touch $@

$(VENV)/.package: $(READY)
	$(PY) -m pip install --quiet --disable-pip-version-check -e ".[package]"
	@touch $@

$(VENV)/.gpu: $(READY)
	$(PY) -m pip install --quiet --disable-pip-version-check -e ".[gpu]"
	@touch $@

$(VENV)/.outside: $(READY)
	$(PY) -m pip install --quiet --disable-pip-version-check -e ".[outside]"
	@touch $@

clean:
	rm -rf $(VENV) build dist out *.egg-info
