package topo

// A Place is where one rank runs, of which Build makes a topology.
type Place struct {
	Host string `json:"host"`           // host name; a label only
	Node int    `json:"node"`           // ranks with the same number share memory
	CPUs Set    `json:"cpus,omitempty"` // processors it may run on
	// Above names what the node lies in, from the outside in. All ranks list the
	// same levels, and ranks of one node the same parts.
	Above []Part `json:"above,omitempty"`
	// Inside tells for each level inside the node which of its parts the rank may
	// run on, from the outside in. All ranks list the same levels, with an empty Set
	// where they do not know.
	Inside []Span   `json:"inside,omitempty"`
	Notes  []string `json:"notes,omitempty"` // what went wrong in finding out
}

// A Part is a part of the machine outside the nodes: {"rack", "A"}.
type Part struct {
	Level string `json:"level"` // such as rack or switch
	Name  string `json:"name"`  // one of its parts
}

// A Span is the parts of a level that a rank may run on: {"core", "0-3"}. Numbers
// are unique in the node.
type Span struct {
	Level string `json:"level"` // such as numa or core
	IDs   Set    `json:"ids"`   // its parts that the rank may run on; "" if unknown
}
