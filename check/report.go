package check

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/rmalock/rmalock/rma/sim"
)

// shrinkTries is how many schedules Report tries in search of a shorter one.
const shrinkTries = 2000

// Report shrinks a failure of a plan, and writes the steps of its schedule and the command
// line that replays it.
func Report(w io.Writer, p Plan, f *sim.Failure) (*sim.Failure, error) {
	short, err := Shrink(p, f, shrinkTries)
	if err != nil {
		return nil, err
	}
	return short, WriteReport(w, p, short)
}

// WriteReport replays a failure's schedule and writes its steps and the command line.
func WriteReport(w io.Writer, p Plan, f *sim.Failure) error {
	events, again, err := Replay(p, f.Schedule)
	if err != nil {
		return err
	}
	if again == nil {
		return fmt.Errorf("check: the schedule %s does not fail when it is run again", f.Schedule)
	}
	fmt.Fprintf(w, "%v\n\n", again.Err)
	if err := sim.WriteTrace(w, events); err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "\nseed      %d\nschedule  %s\nreplay    %s\n", p.Seed, f.Schedule, p.Command(f.Schedule))
	return err
}

// Command is the command line that checks a plan under one schedule.
func (p *Plan) Command(schedule string) string {
	return p.command() + fmt.Sprintf(" --replay '%s'", schedule)
}

// TimeCommand is the command line that checks a plan in virtual time with its seed.
func (p *Plan) TimeCommand() string { return p.command() + " --explore time --schedules 1" }

func (p *Plan) command() string {
	name := p.Info.Name
	for _, k := range slices.Sorted(maps.Keys(p.Params)) {
		name += ":" + k + "=" + p.Params[k]
	}
	if strings.ContainsAny(name, " \t'\"\\$&|;<>()*?[]#~`!{}") {
		name = "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "rmalock check --lock %s --ranks %d --acquires %d", name, p.Ranks, p.Acquires)
	if p.Info.Shared && p.Writers != Mixed {
		fmt.Fprintf(&b, " --writers %d", p.Writers)
	}
	fmt.Fprintf(&b, " --seed %d", p.Seed)
	if p.Tries {
		b.WriteString(" --tries")
	}
	if p.Guard {
		b.WriteString(" --guard")
	}
	if p.CPUFar {
		b.WriteString(" --apart")
	}
	if p.Topology != nil {
		fmt.Fprintf(&b, " --topology %q", p.Topology.String())
	}
	for _, n := range []struct {
		flag string
		n    int64
	}{
		{"memory-nodes", int64(p.MemoryNodes)}, {"ticks", int64(p.Ticks)}, {"tick", tickShown(p)},
		{"crashes", int64(p.Crashes)}, {"rejoins", int64(p.Rejoins)}, {"max-delay", int64(p.MaxDelay)},
	} {
		if n.n > 0 {
			fmt.Fprintf(&b, " --%s %d", n.flag, n.n)
		}
	}
	for _, f := range p.Faults {
		fmt.Fprintf(&b, " --stop %s", FaultText(f))
	}
	return b.String()
}

// tickShown is the length of a tick, if there are ticks.
func tickShown(p *Plan) int64 {
	if p.Ticks == 0 {
		return 0
	}
	return p.TickNs
}

// FaultText is a fault as --stop takes it: rank@step, +for, ",lost".
func FaultText(f sim.Fault) string {
	text := fmt.Sprintf("%d@%d", f.Rank, f.Step)
	if f.For > 0 {
		text += fmt.Sprintf("+%d", f.For)
	}
	if f.Lost {
		text += ",lost"
	}
	return text
}
