package netmodel

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Every machine has every constant, in its range, with a mark and a source that names
// a key of machines/README.md.
func TestMachines(t *testing.T) {
	want := []string{"aries", "cx3", "cx4", "cx6", "tcp"}
	if got := Names(); !slices.Equal(got, want) {
		t.Fatalf("machines %v, want %v", got, want)
	}
	readme, err := os.ReadFile("machines/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	_, table, _ := strings.Cut(string(readme), "| key |")
	for _, m := range regexp.MustCompile(`(?m)^\| ([^|]+) \|`).FindAllStringSubmatch(table, -1) {
		keys = append(keys, strings.Split(m[1], ", ")...)
	}
	if len(keys) < 20 {
		t.Fatalf("keys of sources: %v", keys)
	}
	key := regexp.MustCompile(`\b(` + strings.Join(keys, "|") + `)\b`)
	for _, name := range want {
		m := load1(t, name)
		if m.Name != name || m.About == "" {
			t.Errorf("%s calls itself %q, %q", name, m.Name, m.About)
		}
		params := m.Params()
		if len(params) != len(fields) {
			t.Fatalf("%s has %d constants, not %d", name, len(params), len(fields))
		}
		for i, p := range params {
			if p.Name != fields[i].name || p.Unit == "" {
				t.Errorf("%s: constant %d is %q [%s]", name, i, p.Name, p.Unit)
			}
			if p.Low > p.Value || p.Value > p.High || p.Low > p.High {
				t.Errorf("%s: %s: %g is not within %g to %g", name, p.Name, p.Value, p.Low, p.High)
			}
			if len(p.Mark) != 1 || !strings.Contains("SPRI", p.Mark) {
				t.Errorf("%s: %s: mark %q", name, p.Name, p.Mark)
			}
			if len(p.Source) < 12 || strings.Contains("SP", p.Mark) && !key.MatchString(p.Source) {
				t.Errorf("%s: %s, mark %s: source %q names none", name, p.Name, p.Mark, p.Source)
			}
			if p.Weak && p.Low == p.High {
				t.Errorf("%s: %s is weak and has no range", name, p.Name)
			}
		}
	}
}

func TestWeakConstants(t *testing.T) {
	for name, want := range map[string][]string{
		"aries": {"rttNs.CAS", "rttNs.FAA", "wordNs"},
		"cx3":   {"cpuStepNs", "serverNs"},
		"cx4":   {"wordNs", "lanesByHash", "holBlocking", "lineReadNs", "switchNs"},
		"cx6":   {"rttNs.READ", "rttNs.WRITE", "rttNs.CAS", "rttNs.FAA", "rttNs.SEND", "lanesByHash", "holBlocking", "lineReadNs"},
		"tcp":   {"slotNs.CAS.responder", "slotNs.FAA.responder"},
	} {
		m := load1(t, name)
		var got []string
		for _, p := range m.Weak() {
			got = append(got, p.Name)
			for _, v := range []float64{p.Low, p.High} { // a band can be drawn
				network(t, with(t, m, p.Name, v), at(1, 1))
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: weak are %v, want %v", name, got, want)
		}
	}
}

func TestWithChangesOneConstant(t *testing.T) {
	m := load1(t, "cx3")
	n := with(t, m, "rttNs.READ", 1880)
	if m.Value("rttNs.READ") != 1790 || n.Value("rttNs.READ") != 1880 {
		t.Errorf("With changed %g to %g", m.Value("rttNs.READ"), n.Value("rttNs.READ"))
	}
	for name, v := range map[string]float64{"rttNs.READ": 1881, "rttNs": 1800, "wordNs": 0, "speed": 1} {
		_, err := m.With(name, v)
		if !errors.Is(err, ErrMachine) || !strings.Contains(err.Error(), `"cx3": `+name) {
			t.Errorf("With(%q, %g): %v", name, v, err)
		}
	}
	if _, err := Load("cray"); !errors.Is(err, ErrMachine) || !strings.Contains(err.Error(), "aries, cx3") {
		t.Errorf("Load of an unknown machine: %v", err)
	}
}

// What Parse refuses, and that it says which constant is to blame.
func TestParseRefuses(t *testing.T) {
	text, err := os.ReadFile("machines/cx3.json")
	if err != nil {
		t.Fatal(err)
	}
	good := string(text)
	if _, err := Parse(strings.NewReader(good)); err != nil {
		t.Fatal(err)
	}
	line := func(name string) string {
		l := regexp.MustCompile(`(?m)^\t+"` + name + `": \{.*\n`).FindString(good)
		if l == "" {
			t.Fatal("no line of", name)
		}
		return l
	}
	in := func(name, old, new string) string {
		l := line(name)
		if !strings.Contains(l, old) {
			t.Fatalf("%s has no %s", name, old)
		}
		return strings.Replace(good, l, strings.Replace(l, old, new, 1), 1)
	}
	for _, x := range []struct{ why, text, names string }{
		{"unknown", in("hopNs", "hopNs", "hoopNs"), "hoopNs"},
		{"missing", strings.Replace(good, line("hopNs"), "", 1), "hopNs"},
		{"nested, missing", strings.Replace(good, line("CAS"), "", 1), "rttNs.CAS"},
		{"nested, unknown", in("CAS", "CAS", "SWAP"), "rttNs.SWAP"},
		{"twice", strings.Replace(good, line("hopNs"), line("hopNs")+line("hopNs"), 1), "hopNs: there twice"},
		{"no value", in("wordNs", `"value": 370, `, ""), "wordNs"},
		{"no range", in("wordNs", `"low": 370, `, ""), "wordNs"},
		{"null", in("wordNs", `"low": 370`, `"low": null`), "wordNs"},
		{"a text", in("wordNs", `370`, `"370"`), "wordNs"},
		{"a number alone", in("wordNs", line("wordNs")[len("\t\"wordNs\": "):], "370,\n"), "wordNs"},
		{"outside its range", in("wordNs", `"high": 370`, `"high": 369`), "wordNs"},
		{"range upside down", in("wordNs", `"value": 370, "low": 370, "high": 370`, `"value": 370, "low": 371, "high": 369`), "wordNs"},
		{"negative", in("wordNs", `"low": 370`, `"low": -1`), "wordNs"},
		{"huge", in("wordNs", `"high": 370`, `"high": 1e10`), "wordNs"},
		{"half a lane", in("atomicLanes", `"high": 1`, `"high": 1.5`), "atomicLanes"},
		{"no lane", in("atomicLanes", `"low": 1`, `"low": 0`), "atomicLanes"},
		{"too many lanes", in("atomicLanes", `"high": 1`, `"high": 65`), "atomicLanes"},
		{"lanes by 2", in("lanesByHash", `"high": 0`, `"high": 2`), "lanesByHash"},
		{"mark", in("wordNs", `"S"`, `"X"`), "wordNs: mark"},
		{"no mark", in("wordNs", `"mark": "S", `, ``), "wordNs: mark"},
		{"no source", in("wordNs", `"source": "`, `"source": " ", "source2": "`), "wordNs"},
		{"empty source", regexp.MustCompile(`("wordNs".*"source": ")[^"]*`).ReplaceAllString(good, "$1 "), "wordNs: no source"},
		{"unknown member", in("wordNs", `"low"`, `"least": 1, "low"`), "wordNs"},
		{"round trip too short", in("READ", `"value": 1790, "low": 1760`, `"value": 100, "low": 100`), "rttNs.READ"},
		{"loopback too short", in("loopback", `"value": 0.8, "low": 0.7`, `"value": 0, "low": 0`), "loopback"},
		{"no name", strings.Replace(good, `"name": "cx3",`, "", 1), "name"},
		{"name is a number", strings.Replace(good, `"name": "cx3",`, `"name": 3,`, 1), "name"},
		{"cut off", good[:len(good)/2], "after"},
		{"something after it", good + "{}", "follows"},
		{"a list", "[" + good + "]", "not an object"},
		{"empty", "", "not an object"},
		{"rttNs is a number", regexp.MustCompile(`(?s)"rttNs": \{.*?\n\t\}`).ReplaceAllString(good, `"rttNs": 5`), "rttNs: not an object"},
	} {
		if x.text == good {
			t.Fatalf("%s: nothing was changed", x.why)
		}
		m, err := Parse(strings.NewReader(x.text))
		if err == nil {
			t.Errorf("%s: taken for %q", x.why, m.Name)
			continue
		}
		if !errors.Is(err, ErrMachine) || !strings.Contains(err.Error(), x.names) {
			t.Errorf("%s: error does not name %q: %v", x.why, x.names, err)
		}
	}
}
