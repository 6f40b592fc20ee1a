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

// Run runs f as n ranks of this process, with the memory nodes and other processes that
// [FromEnvironment] finds. Without cgo and the tag verbs its error wraps errors.ErrUnsupported, as
// that of each function here.
func Run(int, func(rma.Comm) error) error { return unsupported() }

// Run runs f as n ranks of this process and returns when all have returned: nil if all did so
// with nil, else the errors of the ranks that failed first, each with its rank. All processes of
// the job call it with the same n; their ranks are numbered by process. It needs the tag verbs.
func (cfg Config) Run(int, func(rma.Comm) error) error { return unsupported() }

// Listen opens a memory node: its memory, its device and its port. Run serves. It needs the tag
// verbs.
func Listen(NodeConfig) (*Server, error) { return nil, unsupported() }

// A Process is this process's connection to memory nodes whose clients come and go.
type Process struct{}

// Dial connects to the memory nodes, without a job. It needs the tag verbs.
func (cfg Config) Dial() (*Process, error) { return nil, unsupported() }

// Join makes a client, in a free slot of the first memory node; ErrFull says that there is none. The
// slot is free again when the client leaves, or its process ends in any way.
func (*Process) Join() (*Client, error) { return nil, unsupported() }

// Close ends the connection; no client of it may be in a call. The windows stay.
func (*Process) Close() error { return unsupported() }

// A Client is one goroutine's place among clients that come and go: a Comm without collective
// calls, whose rank is its slot.
type Client struct{ rma.Comm }

// Leave frees the client's slot. Its windows must not be used any more.
func (*Client) Leave() error { return unsupported() }

// Devices lists the ways to the machine's RDMA devices. It needs the tag verbs.
func Devices() ([]Device, error) { return nil, unsupported() }

// ByteOrder is the byte order in which the first target of a rank's process answers atomics: native,
// or swapped, which the package hides; "" where the device is not in use.
func ByteOrder(rma.Comm) string { return "" }
