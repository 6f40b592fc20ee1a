package topo

import "encoding/json"

// The form of MarshalJSON. Its field names are stable.
type (
	jsonTopology struct {
		Ranks  int         `json:"ranks"`
		Levels []jsonLevel `json:"levels"`
		CPUs   []jsonCPUs  `json:"cpus"`
		Notes  []string    `json:"notes"`
	}
	jsonLevel struct {
		Level
		List []jsonElement `json:"elements"`
	}
	jsonElement struct {
		Element *int   `json:"element"`
		Label   string `json:"label"`
		Parent  *int   `json:"parent,omitempty"`
		Host    *int   `json:"host,omitempty"`
		Ranks   Set    `json:"ranks"`
		Merged  bool   `json:"merged,omitempty"`
	}
	jsonCPUs struct {
		CPUs  Set `json:"cpus"`
		Ranks Set `json:"ranks"`
	}
)

// MarshalJSON writes the whole topology:
//
//	ranks   number of ranks
//	levels  from the outermost in: name, count, and elements, each with its number
//	        element, label, parent (its element one level out), host (as Host), ranks
//	        as a list such as "0-3,8", and merged where that is true
//	cpus    which processors which ranks may run on, where that is known
//	notes   as Notes
//
// Read reads it back.
func (t *Topology) MarshalJSON() ([]byte, error) {
	j := jsonTopology{Ranks: t.Size(), CPUs: []jsonCPUs{}, Notes: append([]string{}, t.notes...)}
	for i, l := range t.Levels() {
		list := make([]jsonElement, l.Elements)
		for e := range list {
			host := t.Host(i, e)
			element := e
			list[e] = jsonElement{Element: &element, Label: t.Label(i, e), Host: &host, Ranks: MakeSet(t.Ranks(i, e)...), Merged: t.Merged(i, e)}
			if i > 0 {
				parent := t.Up(i, e)
				list[e].Parent = &parent
			}
		}
		j.Levels = append(j.Levels, jsonLevel{l, list})
	}
	with := map[Set][]int{}
	var order []Set
	for r, c := range t.cpus {
		if c != "" && with[c] == nil {
			order = append(order, c)
		}
		with[c] = append(with[c], r)
	}
	for _, c := range order {
		j.CPUs = append(j.CPUs, jsonCPUs{c, MakeSet(with[c]...)})
	}
	return json.Marshal(j)
}
