package sim

import (
	"fmt"
	"io"
	"strings"

	"github.com/rmalock/rmalock/rma"
)

// An EventKind is what an Event of a trace is.
type EventKind uint8

const (
	EventIssue  EventKind = iota // an operation is issued
	EventEffect                  // it takes effect
	EventHalf                    // the NIC has read the word and not written it yet
	EventSees                    // a waiting rank sees its word
	EventMark                    // a line of the check
)

// An Event is a line of a trace.
type Event struct {
	Step   int // of the schedule
	Rank   int
	Kind   EventKind
	Seg    *segment
	Target int
	Disp   int
	Op     rma.Operation
	Before int64 // value of the word
	After  int64
	Text   string
	Ghost  bool // an effect, after the rank has died
}

func (e *search) note(v Event) {
	v.Step = len(e.choices)
	e.events = append(e.events, v)
}

func (v Event) String() string {
	who := fmt.Sprintf("%5d  rank %-3d ", v.Step, v.Rank)
	if v.Rank < 0 {
		who = fmt.Sprintf("%5d  %-8s ", v.Step, "clock")
	}
	switch v.Kind {
	case EventMark:
		return who + "        " + v.Text
	case EventIssue:
		return who + "issues  " + describe(&v.Op) + " of " + v.Seg.name(v.Target, v.Disp)
	case EventHalf:
		return who + "reads   " + v.Seg.name(v.Target, v.Disp) + ": " + v.format(v.Before) + ", first half of " + describe(&v.Op)
	case EventSees:
		return who + "sees    " + v.Seg.name(v.Target, v.Disp) + ": " + v.format(v.After)
	case EventEffect:
	}
	what := ": " + v.format(v.Before)
	if v.Op.Kind.Writes() {
		what += " -> " + v.format(v.After)
	}
	if v.Ghost {
		what += ", after its death,"
	}
	return who + "effect  " + v.Seg.name(v.Target, v.Disp) + what + "  " + describe(&v.Op)
}

// format is a value of the event's word, by its fields if it has some.
func (v *Event) format(value int64) string {
	return v.Seg.format(v.Disp, value)
}

// WriteTrace writes a trace as text: effects, wake-ups, and marks.
// Operations are shown when they are issued only if another step comes before they
// take effect.
func WriteTrace(w io.Writer, events []Event) error {
	var b strings.Builder
	for i, v := range events {
		if v.Kind == EventIssue && i+1 < len(events) && effectIsNext(events[i+1:], v) {
			continue
		}
		b.WriteString(v.String())
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// effectIsNext reports whether the operation of an issue takes effect before any other.
func effectIsNext(events []Event, issue Event) bool {
	for _, v := range events {
		if v.Kind == EventEffect || v.Kind == EventHalf {
			return v.Rank == issue.Rank && v.Op.Slot == issue.Op.Slot && v.Op.Kind == issue.Op.Kind && v.Target == issue.Target && v.Disp == issue.Disp
		}
	}
	return false
}
