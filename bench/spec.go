package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// Atomic is the Config.Lock of mode dht that means none: a table of atomics alone,
// the paper's foMPI-A.
const Atomic = "atomic"

// An Option is a parameter of a lock in text.
type Option struct {
	Name, Value string // as they stand in the text
}

// A Lock is a registered lock with values for its parameters.
type Lock struct {
	lock.Info
	Values map[string]string // by the parameter's name as in Info.Params; nil for none
}

// ParseLock reads a lock in text: its name, and its parameters if it takes any, as in
//
//	dmcs
//	rmarw:tr=1000:tdc=2 per node
//
// Names of parameters are in upper or lower case. Values are looked at when the lock is
// opened. Errors wrap lock.ErrConfig.
func ParseLock(text string) (Lock, error) {
	name, options, err := SplitLock(text)
	if err != nil {
		return Lock{}, err
	}
	info, err := lock.Lookup(name)
	if err != nil {
		return Lock{}, err
	}
	l := Lock{Info: info}
	for _, o := range options {
		var known []string
		for _, p := range info.Params {
			known = append(known, p.Name)
		}
		i := slices.IndexFunc(known, func(name string) bool { return strings.EqualFold(name, o.Name) })
		if i < 0 {
			return Lock{}, fmt.Errorf("lock %q has no parameter %q; it has: %s: %w", name, o.Name, cmp.Or(strings.Join(known, ", "), "none"), lock.ErrConfig)
		}
		if l.Values == nil {
			l.Values = map[string]string{}
		}
		l.Values[known[i]] = o.Value
	}
	return l, nil
}

// open opens n locks with the first at home at rank 0. Collective.
func (l *Lock) open(c rma.Comm, cfg *Config, n int) (lock.Table, error) {
	return l.openWith(c, cfg, l.setting(cfg, n))
}

// setting is how n locks are opened.
func (l *Lock) setting(cfg *Config, n int) lock.Setting {
	return lock.Setting{Locks: n, Topology: cfg.Topology, Params: l.Values}
}

// openWith opens locks as a setting says. Collective.
func (l *Lock) openWith(c rma.Comm, cfg *Config, s lock.Setting) (lock.Table, error) {
	t, err := l.With(c, s)
	if err == nil && cfg.Observe != nil {
		t = cfg.Observe(c, t)
	}
	return t, err
}

// SplitLock splits a lock in text into its name and its parameters.
func SplitLock(text string) (name string, options []Option, err error) {
	name, rest, more := strings.Cut(text, ":")
	for more {
		var field string
		field, rest, more = strings.Cut(rest, ":")
		key, value, ok := strings.Cut(field, "=")
		if !ok || key == "" || value == "" {
			return "", nil, fmt.Errorf("lock %q: parameter %q, want name=value, such as tr=1000: %w", text, field, lock.ErrConfig)
		}
		for _, o := range options {
			if o.Name == key {
				return "", nil, fmt.Errorf("lock %q: parameter %s is given twice: %w", text, key, lock.ErrConfig)
			}
		}
		options = append(options, Option{key, value})
	}
	return name, options, nil
}
