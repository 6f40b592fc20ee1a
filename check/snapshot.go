package check

import (
	"bytes"
	"reflect"
	"unsafe"

	"github.com/rmalock/rmalock/rma/sim"
)

// A snapshot is what handles hold, to be put back before another execution: to open a
// lock again costs more than most executions. Handles on windows are copied, with what
// disturbs them; what is behind a communicator, and the simulator's transports, keep
// nothing between executions, and what a function closes over is the handle or a client.
type snapshot struct{ parts []part }

type part struct{ live, saved reflect.Value }

// photograph takes a snapshot of everything that is reachable from handles. It reports
// false if something there cannot be put back: a map or a channel.
func photograph(handles ...any) (*snapshot, bool) {
	s := &snapshot{}
	seen := map[unsafe.Pointer]bool{}
	for _, h := range handles {
		if !s.walk(reflect.ValueOf(h), seen) {
			return nil, false
		}
	}
	return s, true
}

// restore puts everything back that has changed: what nobody writes, handles of other
// searches, on other cores, may share.
func (s *snapshot) restore() {
	for _, p := range s.parts {
		if !bytes.Equal(memory(p.live), memory(p.saved)) {
			p.live.Set(p.saved)
		}
	}
}

// memory is the bytes of an addressable value.
func memory(v reflect.Value) []byte {
	return unsafe.Slice((*byte)(v.Addr().UnsafePointer()), v.Type().Size())
}

// keep saves a value of a type at an address.
func (s *snapshot) keep(t reflect.Type, at unsafe.Pointer) {
	live := reflect.NewAt(t, at).Elem()
	saved := reflect.New(t).Elem()
	saved.Set(live)
	s.parts = append(s.parts, part{live, saved})
}

var (
	simPath       = reflect.TypeFor[sim.Comm]().PkgPath()
	verdictType   = reflect.TypeFor[Verdict]() // of all executions
	recordingType = reflect.TypeFor[recording]()
)

func (s *snapshot) walk(v reflect.Value, seen map[unsafe.Pointer]bool) bool {
	switch v.Kind() {
	case reflect.Interface:
		return v.IsNil() || s.walk(v.Elem(), seen)
	case reflect.Pointer:
		at := v.UnsafePointer()
		to := v.Type().Elem()
		if v.IsNil() || seen[at] || v.Type().Implements(commType) || to.PkgPath() == simPath || to == verdictType || to == recordingType {
			return true
		}
		seen[at] = true
		switch {
		case to == windowType:
			s.keep(to, at)
			return s.walk(v.Elem().FieldByName("t"), seen)
		case elsewhere(to): // immutable
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
