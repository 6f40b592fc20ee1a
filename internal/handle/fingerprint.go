package handle

import (
	"maps"
	"math"
	"reflect"
	"sync"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/topo"
)

// Fingerprint hashes a handle's own state, by which a search recognises states. It leaves
// out windows and communicators, which hold no state of a rank when its operations have ended.
func Fingerprint(v any) uint64 {
	f := stateHasher{seen: map[uintptr]int{}, h: 14695981039346656037}
	f.add(reflect.ValueOf(v))
	return f.h
}

type stateHasher struct {
	seen map[uintptr]int // pointers met, in order
	h    uint64
}

var (
	windowType    = reflect.TypeFor[rma.Window]()
	commType      = reflect.TypeFor[rma.Comm]()
	topoType      = reflect.TypeFor[topo.Topology]() // immutable
	immutableType = reflect.TypeFor[immutable]()
)

// immutable is implemented by types that never change, so that a handle need not be compared
// or copied with them.
type immutable interface{ Immutable() }

// opaqueTypes has the results of opaque by type, since it is called for every field at every
// visit.
var opaqueTypes sync.Map

// opaque reports whether values of a type are left out.
func opaque(t reflect.Type) bool {
	if known, ok := opaqueTypes.Load(t); ok {
		return known.(bool)
	}
	out := t == windowType || t == topoType || t.Implements(commType) || reflect.PointerTo(t).Implements(immutableType)
	opaqueTypes.Store(t, out)
	return out
}

func (f *stateHasher) word(x uint64) {
	f.h = (f.h ^ x) * 1099511628211
	f.h ^= f.h >> 29
}

func (f *stateHasher) add(v reflect.Value) {
	if !v.IsValid() {
		f.word(1)
		return
	}
	switch v.Kind() {
	case reflect.Struct, reflect.Pointer, reflect.Interface:
		if opaque(v.Type()) {
			return
		}
	}
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			f.word(3)
		} else {
			f.word(5)
		}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		f.word(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		f.word(v.Uint())
	case reflect.Float32, reflect.Float64:
		f.word(math.Float64bits(v.Float()))
	case reflect.String:
		for _, b := range []byte(v.String()) {
			f.word(uint64(b))
		}
	case reflect.Pointer:
		if v.IsNil() {
			f.word(7)
			return
		}
		if n := f.seen[v.Pointer()]; n > 0 {
			f.word(uint64(9 + n))
			return
		}
		f.seen[v.Pointer()] = len(f.seen) + 1
		f.add(v.Elem())
	case reflect.Interface:
		if !v.IsNil() {
			f.add(v.Elem())
		}
	case reflect.Struct:
		if v.IsZero() { // as most of a table's tickets
			f.word(1 << 40)
			return
		}
		for i := range v.NumField() {
			f.add(v.Field(i))
		}
	case reflect.Slice, reflect.Array:
		f.word(uint64(v.Len()))
		for i := range v.Len() {
			f.add(v.Index(i))
		}
	case reflect.Map: // in any order
		sum := uint64(0)
		for i := v.MapRange(); i.Next(); {
			part := stateHasher{seen: maps.Clone(f.seen), h: 99}
			part.add(i.Key())
			part.add(i.Value())
			sum += part.h
		}
		f.word(sum)
	}
}
