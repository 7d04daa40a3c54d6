# Everything that a developer or a first user needs, from a bare clone: Python 3.11+ with venv, and make.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Wheels that carry the published XML schemas of ISO 19139 and ISO 19115-3; tests unpack them, nothing is installed (tests/iso_schemas.py).
XSD_WHEELS := geonode-pycsw==3.0.0b2 ckanext-iso19115==0.2.4
# A catalogue to load ISO records into; it wants other versions than the rest, so it gets an environment of its own (tests/audit/test_catalogue.py).
PYCSW  := geonode-pycsw==3.0.0b2 'SQLAlchemy<2' pygeofilter==0.2.1 jinja2 flask gunicorn lxml
SOURCES := pyproject.toml setup.py $(wildcard src/merestone/columnar/*.[ch] src/merestone/geometry/*.[ch])

# Bytecode is kept, whatever the environment says: a command that compiles its modules at each start takes half as long again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo test test-memory test-lowest test-without-kernel lint bench sanitize soak field bench-estate docs wheel clean types style

help:              ## this list
	@grep -E '^[a-z-]+: .*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | sort

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.run: $(SOURCES) | $(VENV)/bin/python
	$(PIP) install -e .
	@touch $@

$(VENV)/.test: $(SOURCES) | $(VENV)/bin/python
	$(PIP) install -e '.[test]'
	@touch $@ $(VENV)/.run

$(VENV)/.xsd: Makefile | $(VENV)/bin/python
	$(PIP) download --no-deps -d $(VENV)/xsd $(XSD_WHEELS) || echo 'no ISO schemas: the tests that need them are skipped'
	@touch $@

$(VENV)/pycsw/.made: | $(VENV)/bin/python
	$(PYTHON) -m venv $(VENV)/pycsw
	$(VENV)/pycsw/bin/python -m pip --disable-pip-version-check --quiet install $(PYCSW)
	@touch $@

# Readers of data files that do not go into one environment with the rest: an old Arrow, and Spark, which needs Java (tests/writer/test_encodings.py).
$(VENV)/readers/.made: | $(VENV)/bin/python
	$(PYTHON) -m venv $(VENV)/readers/arrow10
	$(VENV)/readers/arrow10/bin/python -m pip --disable-pip-version-check --quiet install 'pyarrow==10.0.1' 'numpy<2'
	$(PYTHON) -m venv $(VENV)/readers/spark
	$(VENV)/readers/spark/bin/python -m pip --disable-pip-version-check --quiet install 'pyspark==4.3.0'
	@touch $@

$(VENV)/.field: $(SOURCES) | $(VENV)/bin/python
	$(PIP) install -e '.[field]'
	@touch $@ $(VENV)/.test $(VENV)/.run

$(VENV)/.bench: $(SOURCES) | $(VENV)/bin/python
	$(PIP) install -e '.[bench]' || $(PIP) install -e '.[test]'
	@touch $@ $(VENV)/.test $(VENV)/.run

$(VENV)/.dev: $(SOURCES) | $(VENV)/bin/python
	$(PIP) install -e '.[dev]'
	@touch $@ $(VENV)/.test $(VENV)/.run

demo: $(VENV)/.run  ## the main job on real data: publish, publish again, look at the change, see a refusal
	@$(BIN)/python examples/demo.py

test: $(VENV)/.test $(VENV)/.xsd  ## the tests, under ten minutes
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m 'not soak and not field'

test-lowest: $(VENV)/.xsd ## the tests on the oldest versions that pyproject.toml allows
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/python -m pip --disable-pip-version-check --quiet install uv
	$(VENV)-lowest/bin/uv pip install --quiet --python $(VENV)-lowest/bin/python --resolution lowest-direct -e '.[test]'
	MERESTONE_XSD='$(abspath $(VENV)/xsd)' $(VENV)-lowest/bin/python -m pytest -q -n auto --dist worksteal -m 'not soak and not field'

test-without-kernel: ## the tests with NumPy in the place of the compiled kernel
	$(PYTHON) -m venv $(VENV)-numpy
	MERESTONE_WITHOUT_KERNEL=1 $(VENV)-numpy/bin/python -m pip --disable-pip-version-check --quiet install '.[test]'
	cd tests && ../$(VENV)-numpy/bin/python -P -m pytest -q -n auto --dist worksteal -m 'not soak and not field'

test-memory: $(VENV)/.test $(VENV)/.xsd  ## the tests of the line on a store in memory, with the manners of an object store
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m 'not soak and not field' tests/line --store memory

lint: $(VENV)/.dev  ## format, ruff, strict types, import layers
	@$(MAKE) --no-print-directory -j2 types style

types: $(VENV)/.dev
	$(BIN)/mypy

style: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python -m pytest -q tests/test_banned_calls.py
	$(BIN)/lint-imports

bench-estate: $(VENV)/.bench  ## nights of 34 million points against reading once and DuckDB's rebuild; 60 GB of disk, half an hour
	$(BIN)/python bench/night.py --features 34100000

bench: $(VENV)/.bench  ## time and memory, with ratios to what one would use instead
	$(BIN)/python bench/fingerprint.py
	$(BIN)/python bench/lineage.py 1000000
	$(BIN)/python bench/publish.py
	$(BIN)/python bench/topology.py
	$(BIN)/python bench/gate.py
	$(BIN)/python bench/history.py

# The extensions stop at the first bad access; the interpreter and the libraries are as they are, so the sanitizer is loaded before them.
sanitize: $(VENV)/.test  ## the compiled extensions under the address and undefined-behaviour sanitizers: their tests, then a minute of fuzzing
	rm -rf build $(VENV)/sanitized
	CFLAGS='-O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all' MERESTONE_REQUIRE_KERNEL=1 \
		$(PIP) install --no-deps --target $(VENV)/sanitized .
	cd tests && env LD_PRELOAD="$$(gcc -print-file-name=libasan.so) $$(gcc -print-file-name=libubsan.so)" ASAN_OPTIONS=detect_leaks=0 \
		PYTHONMALLOC=malloc ARROW_DEFAULT_MEMORY_POOL=system PYTHONPATH=. MERESTONE_SANITIZED='$(abspath $(VENV)/sanitized)' \
		sh -c '../$(BIN)/python -m pytest -q -p sanitized -p no:cacheprovider -m "not soak and not field" columnar geometry identity/test_vectors.py \
			&& ../$(BIN)/python -c "import sanitized; from geometry import fuzz; print(fuzz.main(60), \"inputs; both paths agree\")"'

soak: $(VENV)/.test $(VENV)/.xsd $(VENV)/pycsw/.made $(VENV)/readers/.made  ## the long tests, also through a real catalogue, an old Arrow and Spark
	MERESTONE_PYCSW='$(abspath $(VENV)/pycsw)' MERESTONE_READERS='$(abspath $(VENV)/readers)' $(BIN)/python -m pytest -q -rP -m soak

field: $(VENV)/.field  ## the large public datasets: make field SHARED=DIR
	@test -n "$(SHARED)" || { echo 'make field SHARED=DIR: the folder that holds data/'; exit 2; }
	MERESTONE_FIELD_DATA='$(abspath $(SHARED))' $(BIN)/python -m pytest -q -n auto -m field

docs: $(VENV)/.dev  ## write the generated reference pages anew
	$(BIN)/python docs/generate.py

wheel: $(VENV)/.dev  ## a wheel with the compiled kernel (stable ABI)
	$(PIP) install build
	$(BIN)/python -m build --wheel

clean:             ## remove what the targets above made
	rm -rf $(VENV) build dist src/*.egg-info out
	find src -name '*.so' -delete
