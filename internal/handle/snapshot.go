package handle

import (
	"bytes"
	"reflect"
	"slices"
	"unsafe"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/sim"
)

// A Snapshot is the state of a rank's handles, to be restored before each execution, since
// to open a lock takes longer than most executions. It copies all memory that is reachable
// from the handles, windows and their decorators included. It skips communicators, the
// simulator's transports and immutable types, which hold no state of an execution. It does
// not follow functions: they may capture a handle or a client, and nothing else.
type Snapshot struct {
	skip    []reflect.Type
	parts   []part
	windows []windowCopy
}

type part struct{ live, saved reflect.Value }

type windowCopy struct{ live, saved *rma.Window }

// TakeSnapshot takes a snapshot of the handles, without what has one of the types in skip,
// which outlives executions. It reports false if it meets a map or a channel, which cannot
// be restored.
func TakeSnapshot(skip []reflect.Type, handles ...any) (*Snapshot, bool) {
	s := &Snapshot{skip: skip}
	seen := map[unsafe.Pointer]bool{}
	for _, h := range handles {
		if !s.walk(reflect.ValueOf(h), seen) {
			return nil, false
		}
	}
	return s, true
}

// Restore restores the parts that have changed. It does not write to the others, which
// searches on other cores may share.
func (s *Snapshot) Restore() {
	for _, p := range s.parts {
		if !bytes.Equal(memory(p.live), memory(p.saved)) {
			p.live.Set(p.saved)
		}
	}
	for _, w := range s.windows {
		w.live.CopyFrom(w.saved)
	}
}

// memory is the bytes of an addressable value.
func memory(v reflect.Value) []byte {
	return unsafe.Slice((*byte)(v.Addr().UnsafePointer()), v.Type().Size())
}

// keep saves a value of a type at an address.
func (s *Snapshot) keep(t reflect.Type, at unsafe.Pointer) {
	live := reflect.NewAt(t, at).Elem()
	saved := reflect.New(t).Elem()
	saved.Set(live)
	s.parts = append(s.parts, part{live, saved})
}

var simPath = reflect.TypeFor[sim.Comm]().PkgPath()

func (s *Snapshot) walk(v reflect.Value, seen map[unsafe.Pointer]bool) bool {
	switch v.Kind() {
	case reflect.Interface:
		return v.IsNil() || s.walk(v.Elem(), seen)
	case reflect.Pointer:
		at := v.UnsafePointer()
		to := v.Type().Elem()
		if v.IsNil() || seen[at] || v.Type().Implements(commType) || to.PkgPath() == simPath || slices.Contains(s.skip, to) {
			return true
		}
		seen[at] = true
		switch {
		case to == windowType:
			w := windowCopy{(*rma.Window)(at), new(rma.Window)}
			w.saved.CopyFrom(w.live)
			s.windows = append(s.windows, w)
			return s.walk(reflect.ValueOf(w.live.Transport()), seen)
		case opaque(to): // immutable
			return true
		}
		s.keep(to, at)
		return s.walk(v.Elem(), seen)
	case reflect.Slice:
		if v.Len() == 0 {
			return true
		}
		s.keep(reflect.ArrayOf(v.Len(), v.Type().Elem()), v.UnsafePointer())
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			if !s.walk(v.Index(i), seen) {
				return false
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if !s.walk(v.Field(i), seen) {
				return false
			}
		}
	case reflect.Map, reflect.Chan:
		return v.IsNil()
	}
	return true
}
