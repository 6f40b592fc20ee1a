package netmodel

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Parse reads a machine's description: an object of "name", "about" and every constant
// of the package comment, nested by the dots of its name, each an object of "value",
// "low", "high", "mark", "source" and, if so, "weak". A constant that is missing,
// unknown, twice there or out of its range is an error that names it.
func Parse(r io.Reader) (*Machine, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("netmodel: reading a machine: %w", err)
	}
	m := &Machine{Name: "?", param: make([]Param, len(fields))}
	if err := m.object("", text); err != nil {
		return nil, err
	}
	if m.Name == "?" || m.About == "" {
		return nil, m.refuse("name, about", "missing")
	}
	for i, f := range fields {
		if m.param[i].Name == "" {
			return nil, m.refuse(f.name, "missing")
		}
	}
	if err := m.consistent(); err != nil {
		return nil, err
	}
	return m, nil
}

// object reads an object of constants whose names begin with prefix.
func (m *Machine) object(prefix string, text []byte) error {
	return members(text, func(key string, value json.RawMessage) error {
		name := prefix + key
		if prefix == "" && (name == "name" || name == "about") {
			s := &m.Name
			if name == "about" {
				s = &m.About
			}
			if json.Unmarshal(value, s) != nil || *s == "" || *s == "?" {
				return m.refuse(name, "not a text")
			}
			return nil
		}
		if i := index(name); i >= 0 {
			if m.param[i].Name != "" {
				return m.refuse(name, "there twice")
			}
			return m.constant(i, value)
		}
		if slices.ContainsFunc(fields, func(f field) bool { return strings.HasPrefix(f.name, name+".") }) {
			return m.object(name+".", value)
		}
		return m.refuse(name, "no such constant")
	}, func(why string) error {
		if prefix == "" {
			return m.refuse("file", why)
		}
		return m.refuse(strings.TrimSuffix(prefix, "."), why)
	})
}

// constant reads one constant.
func (m *Machine) constant(i int, text []byte) error {
	var p struct {
		Value, Low, High *float64
		Mark, Source     string
		Weak             bool
	}
	f := fields[i]
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil {
		return m.refuse(f.name, strings.TrimPrefix(err.Error(), "json: "))
	}
	if p.Value == nil || p.Low == nil || p.High == nil {
		return m.refuse(f.name, "needs value, low and high")
	}
	m.param[i] = Param{f.name, f.unit, *p.Value, *p.Low, *p.High, p.Mark, p.Source, p.Weak}
	if err := m.param[i].check(f); err != nil {
		return m.refuse(f.name, err.Error())
	}
	return nil
}

// members calls each for the members of an object, in their order; encoding/json
// would silently take the last of two of one name.
func members(text []byte, each func(key string, value json.RawMessage) error, refuse func(why string) error) error {
	d := json.NewDecoder(bytes.NewReader(text))
	t, err := d.Token()
	if err != nil || t != json.Delim('{') {
		return refuse("not an object")
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return refuse(err.Error())
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return refuse(fmt.Sprintf("after %v: %v", key, err))
		}
		if err := each(key.(string), value); err != nil {
			return err
		}
	}
	if _, err := d.Token(); err != nil { // the closing brace
		return refuse(err.Error())
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return refuse("something follows the object")
	}
	return nil
}
