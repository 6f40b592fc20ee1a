package topo

import "errors"

// ErrTopology is wrapped by every error of this package that is about a
// description: one that cannot be read, contradicts itself, or does not fit the
// job.
var ErrTopology = errors.New("bad description of the machine")
