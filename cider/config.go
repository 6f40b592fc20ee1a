package cider

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rmalock/rmalock/remote"
)

// ErrConfig is wrapped by errors about a Config.
var ErrConfig = errors.New("bad configuration")

// A Scheme says how clients that change a key meet. All change a pointer by CompareAndSwap, so
// that no scheme's safety rests on a lock.
type Scheme uint8

const (
	// Cider is Algorithm 1: optimistic until retries show that a key is hot, then through the
	// queue with write combining.
	Cider Scheme = iota
	// Optimistic is O-SYNC: a loop of CompareAndSwap on the pointer.
	Optimistic
	// Spin is a spin lock on the key's LOCK with truncated exponential back-off. No client takes
	// its holder for dead.
	Spin
	// Queue is the queue of writers of ShiftLock, without readers.
	Queue
	// Combining is Queue with global write combining (4.2).
	Combining
	// Aware is Algorithm 1 with Queue in place of write combining (5.4).
	Aware
	schemes
)

var schemeNames = [schemes]string{"cider", "optimistic", "spin", "queue", "combining", "aware"}

// String is the scheme's name.
func (s Scheme) String() string { return schemeNames[s] }

// ParseScheme finds a scheme by name. An error wraps ErrConfig.
func ParseScheme(text string) (Scheme, error) {
	for i, n := range schemeNames {
		if n == text {
			return Scheme(i), nil
		}
	}
	return 0, fmt.Errorf("cider: no scheme is called %q; there are: %s: %w", text, strings.Join(schemeNames[:], ", "), ErrConfig)
}

// ParsePolicy reads a Policy in text: a scheme, and what differs from the defaults, as in
//
//	optimistic
//	cider:credit=8:threshold=1:factor=2:hot=1000:share=4:local=4:lease=10ms
//
// credit is InitialCredit, and threshold HotnessThreshold. Times are as in Go. An error wraps
// ErrConfig.
func ParsePolicy(text string) (p Policy, err error) {
	name, rest, more := strings.Cut(text, ":")
	if p.Scheme, err = ParseScheme(name); err != nil {
		return p, err
	}
	numbers := map[string]*int{"credit": &p.InitialCredit, "threshold": &p.HotnessThreshold, "factor": &p.Factor, "hot": &p.Hot, "share": &p.Share, "local": &p.Local}
	for more {
		var option string
		option, rest, more = strings.Cut(rest, ":")
		key, value, _ := strings.Cut(option, "=")
		if key == "lease" {
			lease, err := time.ParseDuration(value)
			if err != nil || lease <= 0 {
				return p, fmt.Errorf("cider: %q: lease is %q, want a time such as 10ms: %w", text, value, ErrConfig)
			}
			p.Lease = int64(lease)
			continue
		}
		n, known := numbers[key]
		if !known {
			return p, fmt.Errorf("cider: %q: no parameter is called %q; there are: credit, threshold, factor, hot, share, local, lease: %w", text, key, ErrConfig)
		}
		if *n, err = strconv.Atoi(value); err != nil || *n < 1 {
			return p, fmt.Errorf("cider: %q: %s is %q, want a number from 1 on: %w", text, key, value, ErrConfig)
		}
	}
	return p, nil
}

func (s Scheme) combines() bool { return s == Cider || s == Combining }
func (s Scheme) adapts() bool   { return s == Cider || s == Aware }
func (s Scheme) queues() bool   { return s != Optimistic && s != Spin }

// A Policy says how clients change slots. Times are in nanoseconds. All clients pass the same.
type Policy struct {
	Scheme Scheme
	// Lease is in nanoseconds: after three leases without a release of a slot's lock others take
	// its holder for dead; 0 means 10 ms.
	Lease int64
	// HotnessThreshold, InitialCredit and Factor are those of Algorithm 1; 0 means 2, 36 and 2.
	HotnessThreshold, InitialCredit, Factor int
	// Hot is the number of keys of which credits are kept, 8 bytes each; 0 means 4096.
	Hot int
	// Share is the number of clients of a node that share their credits (section 4.3). With 1 each
	// client has its own, as in the paper's code. 0 means those of Local, or all.
	Share int
	// Local is the number of clients of a node that combine updates of one key, and delegate
	// searches, before any remote operation (section 3.1). 0 means none; the paper has 4.
	Local int
	// LocalKeys is the number of keys that a group of Local clients combines at a time, 16 bytes
	// each; 0 means 1024.
	LocalKeys int
	// BackoffFirst and BackoffLast bound the pause of Spin, in nanoseconds; 0 means 2 us and
	// 2,048 us. BackoffLast less than 0 leaves the pause to the backend.
	BackoffFirst, BackoffLast int64
}

func (c *Policy) validate(clients int) error {
	for p, d := range map[*int]int{&c.HotnessThreshold: 2, &c.InitialCredit: 36, &c.Factor: 2, &c.Hot: 4096, &c.LocalKeys: 1024} {
		if *p == 0 {
			*p = d
		}
	}
	for p, d := range map[*int64]int64{&c.Lease: 10e6, &c.BackoffFirst: 2_000, &c.BackoffLast: 2_048_000} {
		if *p == 0 {
			*p = d
		}
	}
	if c.Share == 0 {
		c.Share = c.Local
	}
	switch {
	case c.Scheme >= schemes:
		return fmt.Errorf("cider: Policy.Scheme is %d, which does not exist: %w", c.Scheme, ErrConfig)
	case c.Lease < 0 || c.HotnessThreshold < 0 || c.InitialCredit < 0 || c.Factor < 1 || c.Hot < 0 || c.Share < 0 || c.Local < 0 || c.LocalKeys < 0:
		return fmt.Errorf("cider: %+v: want no negative numbers: %w", *c, ErrConfig)
	case clients > maxClients:
		return fmt.Errorf("cider: %d clients, want at most %d: %w", clients, maxClients, ErrConfig)
	}
	return nil
}

// Config of a Store. All clients pass the same.
type Config struct {
	Keys  int // keys are 0 to Keys-1
	Most  int // bytes of the largest value; 0 means 8
	Words int // memory for blocks at each host; 0 means two blocks for each key, and two chunks for each client
	// Section is the number of operations of a client until it lets others use blocks again that
	// were freed; 0 means 32.
	Section int
	Policy
}

// sectionLease is how long a client may stop in the middle of an operation.
const sectionLease = int64(10 * time.Second)

func (c *Config) validate(hosts, clients int) error {
	for p, d := range map[*int]int{&c.Most: 8, &c.Section: 32} {
		if *p == 0 {
			*p = d
		}
	}
	switch {
	case c.Keys < 1:
		return fmt.Errorf("cider: Config.Keys is %d, want at least 1: %w", c.Keys, ErrConfig)
	case c.Most < 0 || c.Most > MaxBytes:
		return fmt.Errorf("cider: Config.Most is %d, want 1 to %d bytes: %w", c.Most, MaxBytes, ErrConfig)
	case c.Section < 0:
		return fmt.Errorf("cider: Config.Section is %d, want at least 1: %w", c.Section, ErrConfig)
	}
	if c.Words == 0 {
		c.Words = 2*(c.Keys/hosts+1)*c.largest() + (clients/hosts+1)*2*c.chunk()
	}
	return c.Policy.validate(clients)
}

// largest is the words of the largest block.
func (c *Config) largest() int {
	sizes := remote.Sizes(4, headWords+(c.Most+7)/8)
	return sizes[len(sizes)-1]
}

// chunk is how many words a client keeps: enough for what it frees in some sections, so that it
// does not wait for others.
func (c *Config) chunk() int { return 32 * max(1, c.Section) * c.largest() }
