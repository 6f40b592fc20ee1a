package lock_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestLocksLinkThisModuleAlone fails if a program with a lock would link a package from
// outside this module and the standard library.
func TestLocksLinkThisModuleAlone(t *testing.T) {
	const module = "github.com/rmalock/rmalock"
	locks := []string{module + "/dmcs", module + "/rmamcs", module + "/rmarw"}
	args := append([]string{"list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}"}, locks...)
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	packages := strings.Fields(string(out))
	if len(packages) < len(locks) {
		t.Fatalf("go list says that %v consist of %q", locks, packages)
	}
	for _, p := range packages {
		if !strings.HasPrefix(p, module+"/") || p == module+"/topo/hardware" {
			t.Errorf("the locks link %s", p)
		}
	}
}
