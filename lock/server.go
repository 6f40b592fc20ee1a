package lock

// A Server is a table of which some ranks serve the others, which ask them for locks. A rank that
// serves takes no lock, and answers requests while it is in Serve alone.
//
// Before a collective call all ranks leave the table, when they hold and want no lock: they call
// Serve until it returns false, as Leave does.
type Server interface {
	Table
	// Serves reports whether the caller serves.
	Serves() bool
	// Serve answers requests. It returns false when all ranks that take locks have called Serve
	// since it last did so, by which they say that they want no more; a rank that takes locks, and
	// that no other one asks, need not wait for them.
	Serve() (more bool, err error)
}

// Leave has a rank leave a table before a collective call: see Server. It does nothing for
// tables without ranks that serve.
func Leave(t Table) error {
	s, ok := AsServer(t)
	if !ok {
		return nil
	}
	for {
		if more, err := s.Serve(); !more || err != nil {
			return err
		}
	}
}

// AsServer finds a Server under any decorators of a table.
func AsServer(t Table) (Server, bool) {
	for t != nil {
		if s, ok := t.(Server); ok {
			return s, true
		}
		u, ok := t.(interface{ Unwrap() Table })
		if !ok {
			return nil, false
		}
		t = u.Unwrap()
	}
	return nil, false
}

// Serves reports whether the caller is a rank of a table that only serves.
func Serves(t Table) bool {
	s, ok := AsServer(t)
	return ok && s.Serves()
}
