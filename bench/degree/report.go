package degree

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/hook"
)

// WriteText writes the Result for people. The last line is "verified" or begins
// with "NOT verified".
func (r *Result) WriteText(out io.Writer) error {
	var b strings.Builder
	combined := ""
	if r.Combine {
		combined = ", combined on each node"
	}
	fmt.Fprintf(&b, "%s: degrees counted with %s%s, %s on %s\n", r.Source, r.Lock, combined, plural(int64(r.Ranks), "rank"), plural(int64(r.Nodes), "node"))
	fmt.Fprintf(&b, "transport   %s\n", r.Transport)
	fmt.Fprintf(&b, "graph       %s, %s\n", plural(r.Vertices, "vertex"), plural(r.Edges, "edge"))
	fmt.Fprintf(&b, "table       %d bytes per rank\n", r.TableBytes)
	fmt.Fprintf(&b, "throughput  %.6g inserts per second (%d in %.3f s)\n", r.PerSecond, r.Inserts, r.Seconds)
	if r.Ranks > 1 {
		fmt.Fprintf(&b, "per rank    %s\n", r.Shares.text("inserts"))
		fmt.Fprintf(&b, "            %s\n", r.Rate.text("inserts per second"))
	}
	fmt.Fprintf(&b, "collector   %s\n", plural(r.NumGC, "collection"))
	fmt.Fprintf(&b, "operations  %.3g per insert on other ranks\n", r.RemoteOps)
	if _, err := io.WriteString(out, b.String()); err != nil {
		return err
	}
	if err := r.writeOps(out); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, r.verdict())
	return err
}

// text is a line about the ranks' figures.
func (s Spread) text(what string) string {
	return fmt.Sprintf("mean %.4g %s, least %.4g, most %.4g, deviation %.3g", s.Mean, what, s.Min, s.Max, s.Deviation)
}

// writeOps writes the table of operations per insert.
func (r *Result) writeOps(out io.Writer) error {
	t := tabwriter.NewWriter(out, 12, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(t, "per insert\t")
	for d := range hook.Distances {
		fmt.Fprintf(t, "%v\t", d)
	}
	fmt.Fprintln(t)
	var kinds []string
	for k := range rma.Kinds {
		kinds = append(kinds, k.String())
	}
	for _, kind := range append(kinds, "Flush", "Await", "Backoff") {
		row, some := kind+"\t", false
		for d := range hook.Distances {
			n := r.Ops[kind+"."+d.String()]
			some = some || n > 0
			row += fmt.Sprintf("%.3f\t", n)
		}
		if some {
			fmt.Fprintln(t, row)
		}
	}
	if n := r.Ops["FlushAll"]; n > 0 {
		fmt.Fprintf(t, "FlushAll\t\t\t%.3f\t\n", n)
	}
	return t.Flush()
}

func plural(n int64, what string) string {
	switch {
	case n == 1:
		return "1 " + what
	case what == "vertex":
		return fmt.Sprintf("%d vertices", n)
	}
	return fmt.Sprintf("%d %ss", n, what)
}
