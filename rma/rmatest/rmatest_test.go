package rmatest_test

import (
	"fmt"
	"testing"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
	"github.com/rmalock/rmalock/rma/inproc"
	"github.com/rmalock/rmalock/rma/rmatest"
)

// TestDecorated: decorated windows keep the contract, the weakest one included.
func TestDecorated(t *testing.T) {
	for name, decorate := range map[string]func(rma.Comm) rma.Comm{
		"Check":  hook.Check,
		"NoSwap": hook.NoSwap,
		"Verbs":  func(c rma.Comm) rma.Comm { return hook.LikeVerbs(hook.Relax(c, 2)) },
		"Relax":  func(c rma.Comm) rma.Comm { return hook.Relax(c, 1) },
		"Count":  func(c rma.Comm) rma.Comm { return hook.Count(c, new(hook.Tally)) },
		"Delay":  func(c rma.Comm) rma.Comm { return hook.Delay(c, hook.Jitter(c, 1, 200, 1000)) },
	} {
		for nodes := 1; nodes <= 2; nodes++ {
			t.Run(fmt.Sprintf("%s/%dx2", name, nodes), func(t *testing.T) {
				rmatest.Run(t, func(body func(rma.Comm) error) error {
					return inproc.RunNodes(nodes, 2, func(c rma.Comm) error { return body(decorate(c)) })
				})
			})
		}
	}
}
