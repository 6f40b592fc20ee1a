package rmatest

import (
	"testing"

	"github.com/rmalock/rmalock/rma"
)

// A Launch runs body on every rank of a new job, or, where every rank is a process
// with a test binary of its own, on the rank of this process.
type Launch func(body func(rma.Comm) error) error

// A Check is one property of a backend. Run is collective.
type Check struct {
	Name string
	Run  func(c rma.Comm) error
}

// Run runs all checks as subtests.
func Run(t *testing.T, launch Launch) {
	for _, c := range Checks() {
		t.Run(c.Name, func(t *testing.T) {
			if err := launch(c.Run); err != nil {
				t.Error(err)
			}
		})
	}
}

// Checks lists the checks in the order in which Run runs them: from those of the
// Comm up to those that need all of it.
func Checks() []Check {
	var out []Check
	for _, group := range [][]check{
		commChecks, splitChecks, allocateChecks, opChecks, bulkChecks, atomicChecks, errorChecks, awaitChecks, orderChecks, memoryNodeChecks, costChecks,
	} {
		for _, c := range group {
			out = append(out, Check{Name: c.name, Run: c.run})
		}
	}
	return out
}

// check is a Check before its agreement.
type check struct {
	name string
	body func(p *Probe)
}

func (k check) run(c rma.Comm) error { return Probed(c, k.name, k.body) }
