package observe

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// Write writes the timeline of the job in Chrome's trace format to rank 0's out.
// Collective; the others may pass nil.
func (tr *Trace) Write(out io.Writer) error {
	c := tr.c
	byRank, err := tr.collect()
	if err != nil {
		return err
	}
	host, _ := os.Hostname() // "" is as good as any other name that is not known
	places, err := c.Allgather([]int64{int64(c.Node().Index)})
	if err != nil {
		return err
	}
	hosts, err := rma.AllgatherBytes(c, []byte(host))
	if err != nil {
		return err
	}
	if c.Rank() == 0 {
		b := bufio.NewWriter(out)
		p := printer{b: b, names: tr.names, nodes: places, ranks: c.Size()}
		p.all(byRank, hosts)
		err = b.Flush() // which returns the first error of all before
	}
	return rma.Agree(c, err)
}

// A printer writes events, one on a line.
type printer struct {
	b     *bufio.Writer
	names []string
	nodes []int64 // by rank
	ranks int
	zero  int64
	some  bool
	flows int
}

func (p *printer) all(byRank [][]span, hosts [][]byte) {
	var all []owned
	p.zero = 1 << 62
	for r, spans := range byRank {
		slices.SortFunc(spans, func(a, b span) int { return cmp.Compare(a.want, b.want) })
		for _, s := range spans {
			p.zero = min(p.zero, s.want)
			all = append(all, owned{span: s, rank: r})
		}
	}
	_, _ = p.b.WriteString("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[")
	seen := map[int64]bool{}
	for r := range byRank {
		if node := p.nodes[r]; !seen[node] {
			seen[node] = true
			p.event(`"name":"process_name","ph":"M","pid":%d,"args":{"name":%s}`, node, quote(fmt.Sprintf("node %d (%s)", node, hosts[r])))
			p.event(`"name":"process_sort_index","ph":"M","pid":%d,"args":{"sort_index":%d}`, node, node)
		}
	}
	p.lanes(all, len(byRank))
	handovers(all)
	for i := range all {
		p.acquire(all, &all[i])
	}
	_, _ = p.b.WriteString("\n]}\n")
}

// owned is a span with what the others' spans say of it.
type owned struct {
	span
	rank, lane int
	from       int // index of the span whose release ended the wait, or -1
}

// lanes gives each span a lane of its rank that is free while it lasts: spans of a rank
// that holds several locks may overlap, which a viewer's thread cannot show.
func (p *printer) lanes(all []owned, ranks int) {
	ends := make([][]int64, ranks)
	for i := range all {
		o := &all[i]
		free := slices.IndexFunc(ends[o.rank], func(end int64) bool { return end <= o.want })
		if free < 0 {
			free = len(ends[o.rank])
			ends[o.rank] = append(ends[o.rank], 0)
		}
		o.lane = free
		ends[o.rank][free] = o.done
	}
	for r := range ranks {
		for lane := range max(1, len(ends[r])) {
			name := fmt.Sprintf("rank %d", r)
			if lane > 0 {
				name += fmt.Sprintf(", %d locks at once", lane+1)
			}
			p.event(`"name":"thread_name","ph":"M","pid":%d,"tid":%d,"args":{"name":%s}`, p.nodes[r], r+lane*p.ranks, quote(name))
			p.event(`"name":"thread_sort_index","ph":"M","pid":%d,"tid":%d,"args":{"sort_index":%d}`, p.nodes[r], r+lane*p.ranks, r)
		}
	}
}

// handovers finds for each span the release that ended its wait: that of the rank which
// held the lock last of those that had it before, if the wait had begun by then.
func handovers(all []owned) {
	order := make([]int, len(all))
	for i := range all {
		order[i], all[i].from = i, -1
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := &all[a], &all[b]
		return cmp.Or(cmp.Compare(x.table, y.table), cmp.Compare(x.id, y.id), cmp.Compare(x.got, y.got))
	})
	last := -1
	for _, i := range order {
		o := &all[i]
		if last >= 0 && (all[last].table != o.table || all[last].id != o.id) {
			last = -1
		}
		if last >= 0 {
			if l := &all[last]; l.rank != o.rank && o.want < l.let && l.let <= o.got {
				o.from = last
			}
		}
		if last < 0 || o.let > all[last].let {
			last = i
		}
	}
}

// acquire writes the slices of a span, and the arrow to it.
func (p *printer) acquire(all []owned, o *owned) {
	at := fmt.Sprintf(`"pid":%d,"tid":%d`, p.nodes[o.rank], o.rank+o.lane*p.ranks)
	which := fmt.Sprintf(`"lock":%s,"id":%d,"mode":%q`, quote(p.names[o.table]), o.id, o.mode.String())
	p.event(`"name":"wait","ph":"X",%s,"ts":%s,"dur":%s,"args":{%s}`, at, us(o.want-p.zero), us(o.got-o.want), which)
	if o.from >= 0 {
		f := &all[o.from]
		p.flows++
		p.event(`"name":"handover","ph":"X",%s,"ts":%s,"dur":%s,"args":{%s,"from_rank":%d}`, at, us(f.let-p.zero), us(o.got-f.let), which, f.rank)
		p.event(`"name":"handover","cat":"lock","ph":"s","id":%d,"pid":%d,"tid":%d,"ts":%s`, p.flows, p.nodes[f.rank], f.rank+f.lane*p.ranks, us(f.let-p.zero))
		p.event(`"name":"handover","cat":"lock","ph":"f","bp":"e","id":%d,%s,"ts":%s`, p.flows, at, us(o.got-p.zero))
	}
	name := "hold"
	if o.mode == lock.Shared {
		name = "hold shared"
	}
	p.event(`"name":"%s","ph":"X",%s,"ts":%s,"dur":%s,"args":{%s}`, name, at, us(o.got-p.zero), us(o.let-o.got), which)
	p.event(`"name":"release","ph":"X",%s,"ts":%s,"dur":%s,"args":{%s}`, at, us(o.let-p.zero), us(o.done-o.let), which)
}

func (p *printer) event(format string, args ...any) {
	if p.some {
		_ = p.b.WriteByte(',')
	}
	p.some = true
	_, _ = fmt.Fprintf(p.b, "\n{"+format+"}", args...)
}

// us is nanoseconds as microseconds, exactly.
func us(ns int64) string { return fmt.Sprintf("%d.%03d", ns/1000, ns%1000) }

// quote is a string of JSON.
func quote(s string) string {
	b, _ := json.Marshal(s) // a string has no error
	return string(b)
}
