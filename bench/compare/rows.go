package main

import (
	"fmt"
	"slices"
	"strings"

	_ "github.com/rmalock/rmalock/baseline" // registers locks
	"github.com/rmalock/rmalock/bench"
	_ "github.com/rmalock/rmalock/dmcs"
	_ "github.com/rmalock/rmalock/rmamcs"
	_ "github.com/rmalock/rmalock/rmarw"
)

// A row is a lock of the table.
type row struct {
	Lock     string `json:"lock"`
	Language string `json:"language"` // "C", or "Go" for a lock of rmalock

	// What the lock gives beside mutual exclusion.
	Fairness string `json:"fairness"`
	Nodes    bool   `json:"other_nodes"` // ranks of several nodes can share it
	Death    string `json:"dead_holder"` // what happens when the rank that holds it dies

	program string
	args    []string
	always  bool // measured at each F_W, and not at 100 % alone
}

const inC, inGo = "C", "Go"

// What happens when the holder dies.
const (
	waitersHang = "waiters hang"
	jobEnds     = "the launcher ends the job"
	jobReports  = "the job ends and names the rank"
)

// rowsInC are the rows of bench/c.
func rowsInC() []row {
	pthread := func(name, lock, fairness, death string) row {
		return row{Lock: name, Fairness: fairness, Death: death, program: cPthread, args: []string{"--lock", lock}, always: true}
	}
	rows := []row{
		pthread("c-mutex", "mutex", "none", waitersHang),
		pthread("c-mutex-robust", "robust", "none", "the next owner recovers"),
		pthread("c-rwlock-readers", "rwlock-readers", "none; readers starve writers", waitersHang),
		pthread("c-rwlock-writers", "rwlock-writers", "none; writers starve readers", waitersHang),
		{Lock: "c-win-lock", Fairness: "the MPI library's", Nodes: true, Death: jobEnds, program: cWinLock, always: true},
		{Lock: "c-dmcs-load", Fairness: "first come, first served", Nodes: true, Death: jobEnds, program: cDMCS, args: []string{"--own", "load"}},
		{Lock: "c-dmcs-fop", Fairness: "first come, first served", Nodes: true, Death: jobEnds, program: cDMCS, args: []string{"--own", "fop"}},
	}
	for i := range rows {
		rows[i].Language = inC
	}
	return rows
}

// usualInGo are the rows of rmalock without a selection.
var usualInGo = []string{"dmcs", "rmamcs", "rmarw", "fompi-spin", "fompi-rw", "mpi-win-lock"}

// rowsNamed are the rows of a selection: names in C, and locks as rmalock bench --lock
// takes them. None means all in C and the usual ones in Go.
func rowsNamed(names []string) ([]row, error) {
	all := rowsInC()
	if len(names) == 0 {
		for _, r := range all {
			names = append(names, r.Lock)
		}
		names = append(names, usualInGo...)
	}
	var rows []row
	for _, name := range names {
		if i := slices.IndexFunc(all, func(r row) bool { return r.Lock == name }); i >= 0 {
			rows = append(rows, all[i])
			continue
		}
		r, err := rowInGo(name)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	return rows, nil
}

// rowInGo is the row of a lock of rmalock, in text.
func rowInGo(text string) (row, error) {
	l, err := bench.ParseLock(text)
	if err != nil {
		var names []string
		for _, r := range rowsInC() {
			names = append(names, r.Lock)
		}
		return row{}, fmt.Errorf("-locks: no row in C and no lock of rmalock is %q (in C: %s): %w", text, strings.Join(names, ", "), err)
	}
	r := row{
		Lock: text, Language: inGo, Fairness: l.Fair, Nodes: true, Death: jobReports,
		program: ours, args: []string{"bench", "--lock", text}, always: l.Shared,
	}
	switch l.Name { // whose bounds are formulas
	case "rmamcs":
		r.Fairness = "bounded by T_L"
	case "rmarw":
		r.Fairness = "bounded by T_L and T_R"
	}
	return r, nil
}

// at reports whether the row is measured at a share of writers.
func (r *row) at(writers float64) bool { return r.always || writers == 1 }

// job is the measurement of the row.
func (r *row) job(l *launcher, ranks int, writers float64) job {
	j := job{program: r.program, ranks: ranks, args: slices.Clone(r.args)}
	add := func(more ...string) { j.args = append(j.args, more...) }
	add("--mode", "ecsb", "--writers", fmt.Sprint(writers), "--duration")
	if r.Language == inGo {
		add(l.duration.String(), "--json")
		return j
	}
	add(fmt.Sprint(l.duration.Seconds()))
	if r.program == cDMCS && l.machine.oversubscribed(ranks) {
		add("--yield", "yes")
	}
	return j
}
