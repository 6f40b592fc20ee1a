// Package boot tells machines apart whatever their hosts are called: containers and
// network namespaces have names of their own, and share the machine's cores.
package boot

import (
	"os"
	"strings"
	"sync"
)

// ID is the kernel's boot id, or "" where it does not say.
var ID = sync.OnceValue(func() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
})
