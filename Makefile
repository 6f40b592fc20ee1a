# make run       sets up, builds and runs a verified job of 4 ranks
# make test      proves it; at most 12 minutes on 2 cores when nothing is cached
# make test-all  the rest of the proof; some two hours on 2 cores
# make bench     compares with the locks of C and MPI, on this machine
# make help      lists all targets

SHELL := /bin/sh
GO ?= go

# rma/verbs is built where libibverbs is; elsewhere it says that it is not.
VERBS = $(shell pkg-config --exists libibverbs 2>/dev/null && echo -tags verbs)
comma := ,

# The version is the newest of CHANGELOG.md, with the commit where one is known.
VERSION := $(shell sed -n 's/^\#\# \([0-9][0-9.]*\) .*/\1/p' CHANGELOG.md | head -n 1)$(shell git rev-parse --short=7 HEAD 2>/dev/null | sed 's/^/+git/')
NAMED = -ldflags "-X main.release=$(VERSION)"

# mpirun asks root for these two; they change nothing for others.
export OMPI_ALLOW_RUN_AS_ROOT := 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM := 1

.PHONY: help setup setup-build build package test-package run test test-all ci quick-go quick-mpi quick-hosts quick-slurm test-go test-race test-mpi test-hosts test-slurm quick-guest test-guest test-interrupt check-deep verify vet lint lint-if-built blanks bench figures guide papers papers-quick pictures site clean

help: ## this list
	@grep -E '^[a-z-]+:.*## ' Makefile | sed 's/:.*## /\t/' | expand -t 16

setup: ## installs what is missing (Open MPI, MPICH, libibverbs, pkg-config; Slurm and qemu for their tests)
	@scripts/setup

setup-build: ## the part of setup that a build needs: a C compiler and the MPIs
	@scripts/setup build

build: setup-build ## bin/rmalock (Open MPI) and bin/rmalock-mpich
	@mkdir -p bin
	$(GO) build $(NAMED) $(VERBS) -o bin/rmalock ./cmd/rmalock
	$(GO) build $(NAMED) -tags mpich$(if $(VERBS),$(comma)verbs) -o bin/rmalock-mpich ./cmd/rmalock

package: setup build ## Debian packages of bin, in bin
	packaging/deb $(VERSION)

test-package: setup build ## installs the packages in a bare Debian, and runs jobs there; skipped with the reason where it cannot
	scripts/tidy scripts/test-package $(VERSION)

run: build ## a job of 4 ranks: degrees of an R-MAT graph in the hashtable, under RMA-RW, verified
	mpirun.openmpi --oversubscribe -n 4 bin/rmalock dht

# The stages of make test and of make test-all, each with its limit in seconds: three times
# and more of what it takes on 2 cores.
STAGES = vet:1200 quick-go:1500 quick-mpi:900 quick-hosts:600 quick-slurm:300 quick-guest:1200
STAGES_ALL = test-race:1500 test-go:2700 test-mpi:2400 test-hosts:1500 test-slurm:600 papers-quick:2400 test-guest:14400 test-package:4200

ifdef PKG
test: setup ## vet and the quick part of all tests, stage by stage; PKG=./rmarw tests one package whole
	scripts/tidy $(GO) test -timeout 30m $(PKG)
else
test: setup
	@scripts/stages $(STAGES)
endif

test-all: setup ## what make test leaves out: test-race and the whole of the other tests
	@scripts/stages $(STAGES_ALL)

# Without test-guest, in which all is emulated and slow, and without test-package, which needs
# Debian's mirrors.
ci: setup ## make lint where it can be built, make test and most of make test-all, within 85 minutes
	@RMALOCK_SECONDS=5100 scripts/stages lint-if-built:1800 $(STAGES) $(filter-out test-guest:% test-package:%,$(STAGES_ALL))

quick-go: setup ## all packages in short mode without cgo; searches and mutants of dmcs
	CGO_ENABLED=0 scripts/tidy $(GO) test -short -timeout 15m ./...
	CGO_ENABLED=0 scripts/tidy $(GO) test -timeout 10m -run 'Search|Mutants' ./dmcs

quick-mpi: setup ## conformance and the suite of every lock in real jobs of 2 ranks, Open MPI and MPICH
	scripts/tidy $(GO) test -count=1 -timeout 10m -run $(QUICK) ./rma/mpi ./lock/locktest
	scripts/tidy $(GO) test -count=1 -timeout 10m -tags mpich -run $(QUICK) ./rma/mpi ./lock/locktest

QUICK = '^(TestConformance|TestEveryLockUnderMPI)$$/^ranks=2$$'

quick-hosts: setup ## the conformance suite over four pretended hosts
	RMALOCK_STEPS=conformance scripts/test-hosts

quick-slurm: setup ## the hashtable's jobs under a real Slurm
	RMALOCK_STEPS=dht scripts/test-slurm

vet: setup ## go vet with and without cgo, and both MPIs
	@test -z "$$(gofmt -l $$(git ls-files '*.go' 2>/dev/null || find . -name '*.go'))" || { echo "gofmt would change:"; gofmt -l .; exit 1; }
	CGO_ENABLED=0 $(GO) vet ./...
	$(GO) vet ./...
	$(GO) vet -tags mpich ./...
	@if [ -n "$(VERBS)" ]; then $(GO) vet $(VERBS) ./rma/verbs ./cmd/...; fi

LINT_VERSION = v2.15.0
LINTER = bin/tools/golangci-lint-$(LINT_VERSION)

lint: setup blanks $(LINTER) ## .editorconfig, and golangci-lint with .golangci.yml; the first time builds it, three minutes of one core
	$(LINTER) run --allow-parallel-runners ./...

lint-if-built: setup blanks ## make lint, skipped with a message where golangci-lint cannot be built
	@$(MAKE) --no-print-directory $(LINTER) || { echo "skipped: golangci-lint cannot be built here, see the lines above"; exit 0; }; \
		$(LINTER) run --allow-parallel-runners ./...

blanks:
	@! git grep -nI -e '[[:blank:]]$$' 2>/dev/null || { echo "blanks at the ends of these lines: .editorconfig"; exit 1; }

$(LINTER):
	GOBIN=$(CURDIR)/bin/tools timeout 1200 $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT_VERSION)
	mv bin/tools/golangci-lint $@

test-go: setup ## all packages without cgo: inproc, locks, hashtable, topology, program
	CGO_ENABLED=0 scripts/tidy $(GO) test -timeout 20m ./...

test-race: setup ## the same under the race detector, in short mode; not the searches, whose ranks are one goroutine at a time
	scripts/tidy $(GO) test -race -short -skip $(SEARCHES) $$($(GO) list ./... | grep -v -e /rma/mpi -e /cmd/ -e /bench/compare -e /rma/sim -e /check -e /dhttest -e /examples)
	scripts/tidy $(GO) test -race -short -run RunParallel ./check

# Tests whose ranks are coroutines of one thread.
SEARCHES = 'Search|Exhaustive|Random|Mutants|Fairness|Listings|TestTries'

test-mpi: setup ## real jobs: conformance, every lock, the hashtable; Open MPI and MPICH; one host and two
	scripts/tidy $(GO) test -count=1 -p 1 -timeout 20m $(MPI_TESTS)
	scripts/tidy $(GO) test -count=1 -p 3 -timeout 5m -run $(JOBS) $(MPI_PROGRAMS)
	scripts/tidy $(GO) test -count=1 -p 1 -timeout 20m -tags mpich $(MPI_TESTS)
	scripts/tidy $(GO) test -count=1 -p 3 -timeout 5m -tags mpich -run $(JOBS) $(MPI_PROGRAMS)

# Packages whose tests measure, one at a time; and those that mostly wait for mpirun, with
# the tests that start jobs.
MPI_TESTS = ./rma/mpi ./lock/locktest ./bench/degree
MPI_PROGRAMS = ./cmd/rmalock ./examples ./check ./dslr
JOBS = 'MPI|Gompi|Failures|MemoryNodes'

test-hosts: setup ## jobs over four hosts that this machine pretends, both MPIs; skipped with the reason where it cannot
	scripts/test-hosts

test-slurm: setup ## jobs/ under a real Slurm of four pretended nodes; skipped with the reason where it cannot
	scripts/test-slurm

quick-guest: setup ## conformance, DSLR and an exact sum over Soft-RoCE in a guest of qemu; skipped with the reason where it cannot
	RMALOCK_STEPS=quick scripts/tidy scripts/test-guest

test-guest: setup ## rma/verbs over Soft-RoCE in guests of qemu; skipped with the reason where it cannot
	scripts/tidy scripts/test-guest

check-deep: ## the checks with 64 ranks, and 256 with 20 acquires, and longer searches
	RMALOCK_DEEP=1 CGO_ENABLED=0 scripts/tidy $(GO) test -count=1 -timeout 3h -v -run 'Search|Mutants|LoseNothing|LosesNothing|Exhaustive|Deep' \
		./rma/sim ./check ./dht/dhttest ./remote ./store ./btree ./dmcs ./baseline ./rmamcs ./rmarw ./dslr ./declock ./shiftlock ./alock ./cider ./race ./art

test-interrupt: setup ## interrupts the tests at several moments: nothing may be left behind
	scripts/test-interrupt

verify: setup ## test-mpi with the whole graph and every lock in every job; an hour and more on 2 cores
	RMALOCK_FULL=1 scripts/tidy $(GO) test -count=1 -timeout 3h -v -run UnderMPI ./lock/locktest ./bench/degree
	RMALOCK_FULL=1 scripts/tidy $(GO) test -count=1 -timeout 3h -v -run UnderMPI -tags mpich ./lock/locktest ./bench/degree

bench: setup build ## locks here and in C (pthread, MPI_Win_lock, D-MCS): medians of 7 paired runs; COMPARE="-locks rmarw,c-mutex -ranks 2"
	for p in dmcs winlock pthread; do mpicc.openmpi -O3 -march=native -o bin/bench-c-$$p bench/c/$$p.c || exit 1; done
	$(GO) run ./bench/compare $(COMPARE)

figures: ## docs/figures and their tables anew, in virtual time
	CGO_ENABLED=0 $(GO) test -count=1 -run TestFigures ./cmd/rmalock -args -update

guide: ## the table of docs/guide.md anew: which lock for which job, in virtual time; half a minute
	CGO_ENABLED=0 $(GO) test -count=1 -run TestGuideTable ./cmd/rmalock -args -update

pictures: ## docs/locks/pictures anew, of internal/pictures/pictures.txt
	CGO_ENABLED=0 $(GO) run ./internal/pictures docs/locks/pictures

site: ## the pages as a site, in bin/site
	CGO_ENABLED=0 $(GO) run ./internal/site bin/site

papers: build ## docs/papers.md anew: the papers' figures beside ours, in virtual time; six minutes on two cores
	bin/rmalock papers --quick --markdown > docs/papers.md.new; mv docs/papers.md.new docs/papers.md

papers-quick: build ## all figures of the papers, by short runs: fails where a claim is red, or docs/papers.md is not what the code gives
	bin/rmalock papers --quick --markdown > bin/papers.md
	@diff docs/papers.md bin/papers.md || { echo "docs/papers.md is not what the code gives; virtual time is the same on every machine: make papers"; exit 1; }

clean: ## removes bin
	rm -rf bin
