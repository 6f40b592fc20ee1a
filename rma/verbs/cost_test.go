//go:build cgo && verbs

package verbs_test

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/verbs"
	"github.com/stretchr/testify/require"
)

// TestCostAgainstC compares a READ and a fetch-and-add with bench/c/verbs.c, by turns. It tells
// the ratio of the medians. Where the clock counts instructions (scripts/guest -i) it is at most
// 1.3; elsewhere times are those of a machine that does other things too, and ten is the limit.
//
// The package tells other processes by WRITEs to memory at which they look, and has no SEND and
// RECV: in instructions a WRITE costs at most 5 % more.
func TestCostAgainstC(t *testing.T) {
	needDevice(t)
	program, err := exec.LookPath("bench-c-verbs")
	if err != nil {
		t.Skip("no bench-c-verbs on the path: scripts/test-guest builds it")
	}
	devices, err := verbs.Devices()
	require.NoError(t, err)
	d := devices[slices.IndexFunc(devices, func(d verbs.Device) bool { return d.Usable && strings.Contains(d.GID, ".") })]
	const rounds, lasts = 15, 60 * time.Millisecond
	var ours, theirs [2][]float64
	var writes, sends []float64
	one(t, memoryNodes(t, 1, 1<<10), func(c rma.Comm) {
		w, err := c.Allocate(far("w", 1))
		require.NoError(t, err)
		for range rounds {
			for k, f := range []func() error{
				func() error { _, err := w.GetFlush(0, 0); return err },
				func() error { _, err := w.FetchAndOpFlush(1, 0, 0, rma.Sum); return err },
			} {
				began, n, lasted := time.Now(), 0, time.Duration(0)
				for ; lasted < lasts; lasted = time.Since(began) {
					for range 20 { // the clock costs as much as an operation in the guest
						if err := f(); err != nil {
							require.NoError(t, err)
						}
						n++
					}
				}
				ours[k] = append(ours[k], float64(lasted)/float64(n))
			}
			out, err := exec.Command(program, d.Name, strconv.Itoa(d.GIDIndex), fmt.Sprint(lasts.Seconds())).CombinedOutput()
			require.NoError(t, err, string(out))
			var read, fao, write, send float64
			_, err = fmt.Sscanf(string(out), "read %f fao %f write %f send %f", &read, &fao, &write, &send)
			require.NoError(t, err)
			theirs[0], theirs[1] = append(theirs[0], read), append(theirs[1], fao)
			writes, sends = append(writes, write), append(sends, send)
		}
	})
	for k, name := range []string{"READ", "fetch-and-add"} {
		slices.Sort(ours[k])
		slices.Sort(theirs[k])
		a, b := ours[k][rounds/2], theirs[k][rounds/2]
		t.Logf("%s: %.0f ns, in C %.0f ns, ratio %.2f", name, a, b, a/b)
		limit := 10.0
		if os.Getenv("GUEST_CLOCK") == "instructions" {
			limit = 1.3
		}
		if a/b > limit {
			t.Errorf("%s costs %.2f times what it does in C", name, a/b)
		}
	}
	slices.Sort(writes)
	slices.Sort(sends)
	t.Logf("a word told: by a WRITE %.0f ns, by SEND and RECV %.0f ns", writes[rounds/2], sends[rounds/2])
	if os.Getenv("GUEST_CLOCK") == "instructions" {
		require.Less(t, writes[rounds/2], 1.05*sends[rounds/2])
	}
}
