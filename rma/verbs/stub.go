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

// A Process needs the tag verbs.
type Process struct{}

// Dial needs the tag verbs.
func (cfg Config) Dial() (*Process, error) { return nil, unsupported() }

// Join needs the tag verbs.
func (*Process) Join() (*Client, error) { return nil, unsupported() }

// Close needs the tag verbs.
func (*Process) Close() error { return unsupported() }

// A Client needs the tag verbs.
type Client struct{ rma.Comm }

// Leave needs the tag verbs.
func (*Client) Leave() error { return unsupported() }

// Devices needs the tag verbs.
func Devices() ([]Device, error) { return nil, unsupported() }

// ByteOrder needs the tag verbs.
func ByteOrder(rma.Comm) string { return "" }
