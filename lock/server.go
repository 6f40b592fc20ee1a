package lock

// A Server is a table of which some ranks serve the others, which ask them for locks. A rank that
// serves takes no lock, and answers requests while it is in Serve alone.
//
// Before a collective call all ranks leave the table: those that take locks call Serve once,
// when they hold and want none, and those that serve call it until it returns false.
type Server interface {
	Table
	// Serves reports whether the caller serves.
	Serves() bool
	// Serve waits for a request and answers it. It returns false when all ranks that take locks
	// have called Serve since it last did so. Of a rank that takes locks it says that it wants no
	// more of them, and returns false.
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
