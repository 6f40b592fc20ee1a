package verbs

// A Device is one way to an RDMA device: a port, and one of its addresses.
type Device struct {
	Name         string `json:"name"`
	Port         int    `json:"port"`
	Link         string `json:"link"` // InfiniBand, RoCE v1 or RoCE v2
	Active       bool   `json:"active"`
	GIDIndex     int    `json:"gid_index"`
	GID          string `json:"gid"`
	LID          int    `json:"lid"`
	Atomics      string `json:"atomics"` // none, HCA (with each other) or global (with the CPU's too)
	Reads        int    `json:"reads"`   // reads and atomics under way at once, of a queue pair
	Pairs        int    `json:"pairs"`
	Regions      int    `json:"regions"`
	RegionBytes  uint64 `json:"region_bytes"`
	MessageBytes uint64 `json:"message_bytes"`
	Usable       bool   `json:"usable"`
}
