# make run    sets up, builds and runs a verified job of 4 ranks
# make test   proves it; half an hour or so on 2 cores when nothing is cached
# make bench  compares with the locks of C and MPI, on this machine
# make help   lists all targets

SHELL := /bin/sh
GO ?= go

# mpirun asks root for these two; they change nothing for others.
export OMPI_ALLOW_RUN_AS_ROOT := 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM := 1

.PHONY: help setup build run test test-go test-race test-mpi test-hosts test-slurm test-interrupt check-deep verify vet bench figures clean

help: ## this list
	@grep -E '^[a-z-]+:.*## ' Makefile | sed 's/:.*## /\t/' | expand -t 16

setup: ## installs what is missing (Open MPI, MPICH, pkg-config, Slurm for test-slurm)
	@scripts/setup

build: ## bin/rmalock (Open MPI) and bin/rmalock-mpich
	@mkdir -p bin
	$(GO) build -o bin/rmalock ./cmd/rmalock
	$(GO) build -tags mpich -o bin/rmalock-mpich ./cmd/rmalock

run: setup build ## a job of 4 ranks: degrees of an R-MAT graph in the hashtable, under RMA-RW, verified
	mpirun.openmpi --oversubscribe -n 4 bin/rmalock dht

test: setup vet test-go test-race test-mpi test-hosts test-slurm ## everything below

vet: setup ## go vet with and without cgo, and both MPIs
	@test -z "$$(gofmt -l $$(git ls-files '*.go' 2>/dev/null || find . -name '*.go'))" || { echo "gofmt would change:"; gofmt -l .; exit 1; }
	CGO_ENABLED=0 $(GO) vet ./...
	$(GO) vet ./...
	$(GO) vet -tags mpich ./...

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
MPI_PROGRAMS = ./cmd/rmalock ./examples ./check
JOBS = 'MPI|Gompi|Failures'

test-hosts: setup ## jobs over four hosts that this machine pretends, both MPIs; skipped with the reason where it cannot
	scripts/test-hosts

test-slurm: setup ## jobs/ under a real Slurm of four pretended nodes; skipped with the reason where it cannot
	scripts/test-slurm

check-deep: ## the checks with 64 ranks, and 256 with 20 acquires, and longer searches
	RMALOCK_DEEP=1 CGO_ENABLED=0 scripts/tidy $(GO) test -count=1 -timeout 3h -v -run 'Search|Mutants|LoseNothing|LosesNothing|Exhaustive|Deep' \
		./rma/sim ./check ./dht/dhttest ./dmcs ./baseline ./rmamcs ./rmarw

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

clean: ## removes bin
	rm -rf bin
