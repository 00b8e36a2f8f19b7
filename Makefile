# Everything a contributor types. The work itself is in scripts/, where it can be read and run by itself.

# rustup puts cargo there; a shell that has not read its profile yet does not look.
export PATH := $(PATH):$(HOME)/.cargo/bin

CARGO_LOCKED := --locked

# What `make bench` passes on: make bench BENCH='--part gateway'.
BENCH :=

.DEFAULT_GOAL := help
.PHONY: help run web test check docs bench soak

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-6s  %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## build a release and watch a gateway limit its clients: tollgate demo
	@scripts/setup build
	@$(MAKE) --no-print-directory web || echo "== going on without the console; make web says what it takes"
	@echo "== building a release; the first time takes some ten minutes on two cores, the last crates several of them"
	cargo run --release $(CARGO_LOCKED) -p tollgate-cli -- demo

web: ## build the console, which the next build of the program has in it
	@scripts/setup web
	@echo "== building the console"
	@cd web && npm run --silent build

test: ## set up what is missing, then check, tests, loom and a quick benchmark
	@scripts/test

check: ## formatting, lints and documentation, every warning an error
	@scripts/setup check
	@scripts/check

docs: ## build the documentation as a book, with search, into target/book
	@scripts/setup docs
	@scripts/docs

bench: ## measure; every figure in the documentation comes from here
	@scripts/setup bench
	cargo run --profile bench $(CARGO_LOCKED) -p tollgate-bench -- $(BENCH)

soak: ## long campaigns: more cases, more interleavings, a flood of keys
	@scripts/setup test
	@scripts/soak
