package hardware

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/jaypipes/ghw"
	"github.com/jaypipes/ghw/pkg/cpu"
	"github.com/jaypipes/ghw/pkg/memory"

	"github.com/rmalock/rmalock/topo"
	"github.com/rmalock/rmalock/topo/discover"
)

// readMachine reads the machine described under root/sys by way of ghw. It asks
// ghw for the cores and caches of each NUMA node and not for its whole topology,
// which reads the state of every memory block and gives up at the first NUMA node
// whose huge pages it cannot read.
func readMachine(root string) discover.Machine {
	var w warnings
	ctx := ghw.WithLogger(slog.New(&w))(ghw.WithChroot(root)(context.Background()))
	dir := filepath.Join(root, "sys", "devices", "system", "node")
	ids, err := numaIDs(dir)
	if err != nil {
		w.add("no description of NUMA nodes, taken for flat inside the node: %v", err)
		return compose(nil, w.texts)
	}
	nodes := make([]numaNode, 0, len(ids))
	for _, id := range ids {
		nodes = append(nodes, readNUMA(ctx, &w, dir, id))
	}
	return compose(nodes, w.texts)
}

// numaIDs lists the NUMA nodes in ascending order; the order of the directory, and
// of ghw, is node0, node1, node10, node2.
func numaIDs(dir string) ([]int, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var ids []int
	for _, f := range files {
		if number, ok := strings.CutPrefix(f.Name(), "node"); ok {
			if id, err := strconv.Atoi(number); err == nil && id >= 0 {
				ids = append(ids, id)
			}
		}
	}
	if len(ids) == 0 {
		return nil, errors.New(dir + " has no NUMA node")
	}
	slices.Sort(ids)
	return ids, nil
}

// readNUMA reads one NUMA node as far as it can.
func readNUMA(ctx context.Context, w *warnings, dir string, id int) numaNode {
	n := numaNode{id: id}
	home := filepath.Join(dir, "node"+strconv.Itoa(id))
	w.guard("cores", id, func() error {
		cores, err := cpu.CoresForNode(ctx, id)
		for _, c := range cores {
			n.cores = append(n.cores, core{c.ID, c.LogicalProcessors})
			n.cpus = append(n.cpus, c.LogicalProcessors...)
		}
		return err
	})
	w.guard("caches", id, func() error {
		caches, err := memory.CachesForNode(ctx, id)
		for _, c := range caches {
			if c.Type != memory.CacheTypeInstruction && c.Level >= 1 && c.Level <= 8 && len(c.LogicalProcessors) > 0 {
				mine := cache{level: int(c.Level)}
				for _, lp := range c.LogicalProcessors {
					mine.cpus = append(mine.cpus, int(lp))
				}
				n.caches = append(n.caches, mine)
			}
		}
		return err
	})
	if len(n.cpus) == 0 { // without directories of processors the list still says which they are
		w.guard("processors", id, func() error {
			text, err := os.ReadFile(filepath.Join(home, "cpulist"))
			if errors.Is(err, fs.ErrNotExist) {
				return nil // memory alone
			} else if err != nil {
				return err
			}
			list, err := topo.ParseSet(string(text))
			if err == nil && list.Len() > maxCPUs {
				err = fmt.Errorf("cpulist has %d processors", list.Len())
			}
			if err == nil {
				n.cpus = slices.Collect(list.All())
			}
			return err
		})
	}
	w.guard("distances", id, func() error {
		text, err := os.ReadFile(filepath.Join(home, "distance"))
		if err != nil {
			return err
		}
		for field := range strings.FieldsSeq(string(text)) {
			d, err := strconv.Atoi(field)
			if err != nil || d < 0 {
				n.distances = nil
				return fmt.Errorf("%.60q is not a distance", field)
			}
			n.distances = append(n.distances, d)
		}
		return nil
	})
	return n
}

// maxNotes bounds the warnings.
const maxNotes = 8

// warnings collects what went wrong, from ghw too, which else would print it.
type warnings struct{ texts []string }

func (w *warnings) add(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); len(w.texts) < maxNotes && !slices.Contains(w.texts, text) {
		w.texts = append(w.texts, text)
	}
}

// guard runs f and notes its error or panic: ghw panics on files that are empty.
func (w *warnings) guard(what string, id int, f func() error) {
	defer func() {
		if p := recover(); p != nil {
			w.add("%s of NUMA node %d are unreadable: %v", what, id, p)
		}
	}()
	if err := f(); err != nil {
		w.add("%s of NUMA node %d are unreadable: %v", what, id, err)
	}
}

var _ slog.Handler = (*warnings)(nil)

func (w *warnings) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelWarn }
func (w *warnings) WithAttrs([]slog.Attr) slog.Handler           { return w }
func (w *warnings) WithGroup(string) slog.Handler                { return w }
func (w *warnings) Handle(_ context.Context, r slog.Record) error {
	w.add("ghw: %s", r.Message)
	return nil
}
