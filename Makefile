# The two commands of the README are `make demo` and `make test`; `make help` lists the rest.
.PHONY: help build demo test fuzz lint bench soak

STUDY  ?= studies/first-question.toml
REPORT ?= results/$(basename $(notdir $(STUDY))).html

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

build: ## the release binary, target/release/ceteris
	cargo build --release --locked -p ceteris

demo: ## install what is missing, answer the first question, write its report
	@scripts/install demo
	@$(MAKE) --no-print-directory build
	@target/release/ceteris run $(STUDY) --report $(REPORT)

test: ## install what the tests need and run all of them
	@scripts/install test
	cargo build --release --locked -p ceteris -p ceteris-yardstick
	CETERIS_QUICK_PROGRAM=$(CURDIR)/target/release/ceteris scripts/test
	@target/release/yardstick --groups instructions
	@$(MAKE) --no-print-directory fuzz

fuzz: ## each fuzz target for FUZZ_SECONDS seconds
	scripts/fuzz $${FUZZ_SECONDS:-30}

# BENCH='--groups cost-all --pairs 7' and the like; `target/release/yardstick --help` lists them.
bench: ## ceteris beside its peers, as ratios of medians; on an idle machine
	@scripts/install test
	cargo build --release --locked -p ceteris -p ceteris-yardstick
	@target/release/yardstick $(BENCH)

# SOAK='--soak-seconds 180 --soak-settled-seconds 30' tries it out.
soak: ## an hour of 1,000 connections: whether the generator's memory stays flat
	@scripts/install test
	cargo build --release --locked -p ceteris -p ceteris-yardstick
	@target/release/yardstick --groups soak $(SOAK)

lint: ## what CI demands before the tests
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
