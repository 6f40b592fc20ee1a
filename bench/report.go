package bench

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
)

// WriteText writes the Result for people, in lines of at most 100 columns as long as names
// are short.
func (r *Result) WriteText(out io.Writer) error {
	var b strings.Builder
	r.writeSetting(&b)
	r.writeFigures(&b)
	r.writeBand(&b)
	r.writeInside(&b)
	if r.Ranks > 1 && r.Mode != Latency {
		r.writeShares(&b)
	}
	if r.Simulated {
		r.writeNetwork(&b)
		fmt.Fprintf(&b, "simulated   %d operations on windows, polls included; seed %d\n", r.Operations, r.Seed)
	} else {
		fmt.Fprintf(&b, "collector   %s, GOGC %s\n", plural(int(r.NumGC), "collection"), r.GOGC)
	}
	if r.Linearized > 0 {
		fmt.Fprintf(&b, "history     %d operations, linearizable\n", r.Linearized)
	}
	if len(r.Ops) == 0 {
		b.WriteString("operations  none on windows: the lock is the transport's own\n")
	} else {
		fmt.Fprintf(&b, "operations  %.3g per %s on other ranks\n", r.RemoteOps, r.counted())
		if r.Retries > 0 {
			fmt.Fprintf(&b, "retries     %.3g per %s\n", r.Retries, r.counted())
		}
		r.writeCounts(&b)
	}
	if _, err := io.WriteString(out, b.String()); err != nil || len(r.Ops) == 0 {
		return err
	}
	return r.writeOps(out)
}

// writeCounts writes what the locks have counted themselves.
func (r *Result) writeCounts(b *strings.Builder) {
	var text []string
	for _, name := range slices.Sorted(maps.Keys(r.Counts)) {
		if r.Counts[name] > 0 {
			text = append(text, fmt.Sprintf("%.3g %s", r.Counts[name], name))
		}
	}
	if len(text) > 0 {
		fmt.Fprintf(b, "counts      per %s %s\n", r.counted(), strings.Join(text, ", "))
	}
}

// writeNetwork writes what the network carried.
func (r *Result) writeNetwork(b *strings.Builder) {
	sum := map[string]float64{} // by host; polls and messages
	for name, n := range r.Network {
		switch kind, host, _ := strings.Cut(name, "."); {
		case kind == "poll" || kind == "message":
			sum[kind+"s"] += n
		default:
			sum["on "+map[string]string{"rank": "ranks", "memory": "memory nodes"}[host]] += n
		}
	}
	if len(sum) == 0 {
		return
	}
	var text []string
	for _, what := range slices.Sorted(maps.Keys(sum)) {
		text = append(text, fmt.Sprintf("%.3g %s", sum[what], what))
	}
	fmt.Fprintf(b, "network     per %s %s\n", r.counted(), strings.Join(text, ", "))
}

// writeSetting writes what was measured, and on what.
func (r *Result) writeSetting(b *strings.Builder) {
	fmt.Fprintf(b, "%s, %s: %s on %s", r.Lock, r.Mode, plural(r.Ranks, "rank"), plural(r.Nodes, "node"))
	switch {
	case r.Simulated:
		fmt.Fprintf(b, ", simulated on %s", r.Machine)
	case r.Oversubscribed:
		fmt.Fprintf(b, " with %s (oversubscribed: more ranks than cores)", plural(r.Cores, "core"))
	default:
		fmt.Fprintf(b, " with %s", plural(r.Cores, "core"))
	}
	b.WriteByte('\n')
	switch {
	case r.Mode == Clients:
		if r.LocksTaken > 0 {
			fmt.Fprintf(b, "locks       %d, of which %d were acquired in timed visits\n", r.Locks, r.LocksTaken)
		} else {
			fmt.Fprintf(b, "locks       %d\n", r.Locks)
		}
		fmt.Fprintf(b, "workload    %s\n", r.Workload)
	case r.Locks > 1:
		fmt.Fprintf(b, "locks       %d, one at random per acquire\n", r.Locks)
	}
	switch {
	case r.Mode == DHT:
		fmt.Fprintf(b, "inserts     %.4g %% of operations, into rank 0's volume by %s\n", 100*r.Writers, plural(r.Ranks-1, "rank"))
	case r.Writers < 1:
		fmt.Fprintf(b, "writers     %.4g %% of acquires\n", 100*r.Writers)
	}
	fmt.Fprintf(b, "transport   %s\n", r.Transport)
}

// counted is what the throughput counts.
func (r *Result) counted() string {
	if r.Mode == DHT {
		return "operation"
	}
	return "acquire"
}

// writeFigures writes throughput and latency.
func (r *Result) writeFigures(b *strings.Builder) {
	fmt.Fprintf(b, "throughput  %.6g %ss per second (%d in %s)\n", r.PerSecond, r.counted(), r.Acquires, duration(r.Seconds*1e9))
	if r.Mode == Clients {
		r.writeVisits(b)
	}
	fmt.Fprintf(b, "latency     mean %s, median %s, min %s\n", duration(r.Mean), duration(r.Median), duration(r.Min))
	fmt.Fprintf(b, "            99 %% %s, 99.9 %% %s, max %s\n", duration(r.P99), duration(r.P999), duration(r.Max))
	if r.Mode == Latency {
		b.WriteString("            of one acquire and release, as means of batches\n")
	}
}

// writeVisits writes how many visits there were, and to which locks.
func (r *Result) writeVisits(b *strings.Builder) {
	fmt.Fprintf(b, "visits      %.6g per second", r.VisitsPerSecond)
	if r.Offered > 0 {
		fmt.Fprintf(b, ", of %.6g that were to begin", r.Offered)
	}
	b.WriteByte('\n')
	if r.Aborts > 0 {
		fmt.Fprintf(b, "aborts      %.3g per visit: it gave way, or lost a lease, and began again\n", r.Aborts)
	}
	if r.Release != nil {
		fmt.Fprintf(b, "release     median %s, 99 %% %s\n", duration(r.Release.Median), duration(r.Release.P99))
	}
	for i, l := range r.Busiest[:min(3, len(r.Busiest))] {
		title := ""
		if i == 0 {
			title = "busiest"
		}
		fmt.Fprintf(b, "%-12slock %d: %.3g %% of acquires, in Lock median %s, 99 %% %s\n", title, l.Lock, 100*l.Share, duration(l.Median), duration(l.P99))
	}
}

// writeInside writes the time in critical sections, if there was work in them.
func (r *Result) writeInside(b *strings.Builder) {
	if r.Inside == 0 {
		return
	}
	fmt.Fprintf(b, "inside      mean %s between acquire and release", duration(r.Inside))
	if r.Writers == 1 && r.Locks == 1 {
		fmt.Fprintf(b, ":\n            no lock makes more than %.4g acquires per second", 1e9/r.Inside)
	}
	b.WriteByte('\n')
}

// writeShares writes how even the ranks' acquires are.
func (r *Result) writeShares(b *strings.Builder) {
	shares := r.shares()
	least, most := 0, 0
	for i, n := range shares {
		if n < shares[least] {
			least = i
		}
		if n > shares[most] {
			most = i
		}
	}
	percent := func(i int) float64 { return 100 * float64(shares[i]) / float64(max(1, r.Acquires)) }
	first := r.Ranks - len(shares)
	fmt.Fprintf(b, "shares      deviation %.2f %% of a fair share of %.3g %%\n", 100*r.ShareDeviation, 100/float64(len(shares)))
	fmt.Fprintf(b, "            least %.3g %% (rank %d), most %.3g %% (rank %d)\n", percent(least), first+least, percent(most), first+most)
}

// writeBand writes the constants that are not known well and what they come to.
func (r *Result) writeBand(b *strings.Builder) {
	if r.Band != nil {
		fmt.Fprintf(b, "band        %.4g to %.4g per second, mean %s to %s\n",
			r.Band.PerSecond.Min, r.Band.PerSecond.Max, duration(r.Band.Mean.Min), duration(r.Band.Mean.Max))
		fmt.Fprintf(b, "            median %s to %s, 99 %% %s to %s\n",
			duration(r.Band.Median.Min), duration(r.Band.Median.Max), duration(r.Band.P99.Min), duration(r.Band.P99.Max))
	}
	for i, c := range r.Weak {
		title := ""
		if i == 0 {
			title = "constants"
		}
		fmt.Fprintf(b, "%-12s%s is weak: %.4g to %.4g %s, taken as %.4g\n", title, c.Name, c.Low, c.High, c.Unit, c.Value)
	}
}

// writeOps writes the table of operations per acquire.
func (r *Result) writeOps(out io.Writer) error {
	t := tabwriter.NewWriter(out, 12, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "per acquire\t")
	for d := range hook.Distances {
		fmt.Fprintf(t, "%v\t", d)
	}
	fmt.Fprintln(t)
	for _, kind := range steps() {
		row, any := kind+"\t", false
		for d := range hook.Distances {
			n := r.Ops[kind+"."+d.String()]
			any = any || n > 0
			row += strconv.FormatFloat(n, 'f', 3, 64) + "\t"
		}
		if any {
			fmt.Fprintln(t, row)
		}
	}
	if n := r.Ops["FlushAll"]; n > 0 {
		fmt.Fprintf(t, "FlushAll\t\t\t%.3f\t\n", n)
	}
	return t.Flush()
}

// steps are the names of what is counted by distance.
func steps() []string {
	var names []string
	for k := range rma.Kinds {
		names = append(names, k.String())
	}
	return append(names, "Flush", "Await", "Backoff")
}

// WriteCSV writes a line of column names and a line of values. acquires_per_rank
// is one column, its numbers separated by spaces. The columns of a band are empty
// where there is none.
func (r *Result) WriteCSV(out io.Writer) error {
	names, values := r.columns()
	w := csv.NewWriter(out)
	return w.WriteAll([][]string{names, values})
}

// WriteCSVRow writes the line of values alone.
func (r *Result) WriteCSVRow(out io.Writer) error {
	_, values := r.columns()
	return csv.NewWriter(out).WriteAll([][]string{values})
}

// columns are the names and values of WriteCSV.
func (r *Result) columns() (names, values []string) {
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
	columns := []struct{ name, value string }{
		{"mode", string(r.Mode)},
		{"lock", r.Lock},
		{"locks", strconv.Itoa(r.Locks)},
		{"writers", number(r.Writers)},
		{"ranks", strconv.Itoa(r.Ranks)},
		{"nodes", strconv.Itoa(r.Nodes)},
		{"cores", strconv.Itoa(r.Cores)},
		{"oversubscribed", strconv.FormatBool(r.Oversubscribed)},
		{"transport", r.Transport},
		{"simulated", strconv.FormatBool(r.Simulated)},
		{"machine", r.Machine},
		{"seed", strconv.FormatUint(r.Seed, 10)},
		{"duration_seconds", number(r.Seconds)},
		{"acquires", strconv.FormatInt(r.Acquires, 10)},
		{"acquires_per_second", number(r.PerSecond)},
		{"ns_per_acquire_mean", number(r.Mean)},
		{"ns_per_acquire_median", number(r.Median)},
		{"ns_per_acquire_min", number(r.Min)},
		{"ns_per_acquire_p99", number(r.P99)},
		{"ns_per_acquire_p999", number(r.P999)},
		{"ns_per_acquire_max", number(r.Max)},
		{"ns_inside_mean", number(r.Inside)},
		{"acquires_per_rank", strings.Trim(fmt.Sprint(r.PerRank), "[]")},
		{"share_deviation", number(r.ShareDeviation)},
		{"remote_ops_per_acquire", number(r.RemoteOps)},
		{"num_gc", strconv.FormatInt(r.NumGC, 10)},
		{"gogc", r.GOGC},
	}
	for _, c := range columns {
		names = append(names, c.name)
		values = append(values, c.value)
	}
	for _, name := range []string{"duration_seconds", "acquires_per_second", "ns_per_acquire_mean", "ns_per_acquire_median", "ns_per_acquire_p99", "ns_per_acquire_p999"} {
		names = append(names, name+"_low", name+"_high")
		low, high := "", ""
		if r.Band != nil {
			b := r.Band.of(name)
			low, high = number(b.Min), number(b.Max)
		}
		values = append(values, low, high)
	}
	return append(names, "workload", "offered_per_second", "visits", "visits_per_second", "locks_taken", "retries_per_acquire", "polls_per_acquire"),
		append(values, r.Workload, number(r.Offered), strconv.FormatInt(r.Visits, 10), number(r.VisitsPerSecond), strconv.Itoa(r.LocksTaken), number(r.Retries), number(r.Polls))
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}

// duration is a number of nanoseconds with a unit and three digits or so.
func duration(ns float64) string {
	for _, unit := range []struct {
		name string
		ns   float64
	}{{"s", 1e9}, {"ms", 1e6}, {"µs", 1e3}} {
		if ns >= unit.ns {
			return strconv.FormatFloat(ns/unit.ns, 'f', 2, 64) + " " + unit.name
		}
	}
	return strconv.FormatFloat(ns, 'f', 1, 64) + " ns"
}
