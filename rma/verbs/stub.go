//go:build !cgo || !verbs

package verbs

import (
	"errors"
	"fmt"

	"github.com/rmalock/rmalock/rma"
)

func unsupported() error {
	return fmt.Errorf("verbs: this program was built without libibverbs; build it with cgo and -tags verbs (Debian: apt install libibverbs-dev): %w", errors.ErrUnsupported)
}

// Run needs the tag verbs.
func Run(int, func(rma.Comm) error) error { return unsupported() }

// Run needs the tag verbs.
func (cfg Config) Run(int, func(rma.Comm) error) error { return unsupported() }

// Listen needs the tag verbs.
func Listen(NodeConfig) (*Server, error) { return nil, unsupported() }
