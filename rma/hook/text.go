package hook

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/rmalock/rmalock/rma"
)

// Text is a sink for [Trace] that writes a line per event: the time in
// microseconds, the rank, the window, the step, the rank and word that it
// concerns, and values. Ranks of one process may share it; lines are written whole.
// An error of w ends the text, since a trace cannot report it.
//
//	2.103  rank 1    dmcs      FetchAndOp      rank 0 TAIL         REPLACE 9
//	2.381  rank 1    dmcs      Flush           rank 0
//	2.381  rank 1    dmcs        result        rank 0 TAIL         = 1
//	3.020  rank 1    dmcs      Await           rank 1 WAIT[0]      == 0
//	9.541  rank 1    dmcs        woke          rank 1 WAIT[0]      = 0
func Text(w io.Writer) func(Event) {
	var mu sync.Mutex
	failed := false
	return func(e Event) {
		line := e.String() + "\n"
		mu.Lock()
		defer mu.Unlock()
		if !failed {
			_, err := io.WriteString(w, line)
			failed = err != nil
		}
	}
}

// String is the event's line of text.
func (e Event) String() string {
	where := "all " + e.hosts().String() + "s"
	if e.Target >= 0 {
		where = e.hosts().String() + " " + strconv.Itoa(e.Target)
	}
	if e.Step != StepFlush {
		where += " " + e.Word()
	}
	return strings.TrimRight(fmt.Sprintf("%11.3f  rank %-4d  %-8s  %-14s  %-18s  %s",
		float64(e.Time)/1000, e.Origin, e.Window, e.what(), where, e.values()), " ")
}

// what names the step; what a step before has led to is indented.
func (e *Event) what() string {
	switch e.Step {
	case StepIssue:
		return e.Op.Kind.String()
	case StepFlush:
		return "Flush"
	case StepResult:
		return "  result"
	case StepAwait:
		return "Await"
	case StepWoke:
		return "  woke"
	case StepBackoff:
		return "Backoff"
	}
	return e.Step.String()
}

// values are what the step writes, wants or finds.
func (e *Event) values() string {
	if e.Err != nil {
		return "error: " + e.Err.Error()
	}
	switch e.Step {
	case StepIssue:
		switch e.Op.Kind {
		case rma.KindPut:
			return strconv.FormatInt(e.Op.Operand, 10)
		case rma.KindAccumulate, rma.KindFetchAndOp:
			return fmt.Sprintf("%v %d", e.Op.Op, e.Op.Operand)
		case rma.KindCompareAndSwap:
			return fmt.Sprintf("%d -> %d", e.Op.Compare, e.Op.Operand)
		case rma.KindMaskedSwap:
			return fmt.Sprintf("%d of %#x -> %d of %#x", e.Op.Compare, uint64(e.Op.CompareMask), e.Op.Operand, uint64(e.Op.SwapMask))
		case rma.KindPutBulk:
			return bulk(e.Op.Data)
		case rma.KindGetBulk:
			return fmt.Sprintf("%d words", len(e.Op.Data))
		case rma.KindGet: // has no operand
		}
	case StepResult:
		if e.Op.Kind == rma.KindGetBulk {
			return "= " + bulk(e.Op.Data)
		}
		return "= " + strconv.FormatInt(e.Value, 10)
	case StepFlush: // has no value
	case StepAwait:
		text := e.Cond.String()
		if e.Or != nil {
			text += fmt.Sprintf(" or %v %d %s %v", e.hosts(), e.Or.Target, e.spec.WordName(e.Or.Disp), e.Or.Cond)
		}
		if e.Until != rma.Forever {
			text += fmt.Sprintf(" until %.3f", float64(e.Until)/1000)
		}
		return text
	case StepWoke:
		if e.Late {
			return "time is up"
		}
		return "= " + strconv.FormatInt(e.Value, 10)
	case StepBackoff:
		return fmt.Sprintf("saw %d, try %d", e.Value, e.Try)
	}
	return ""
}

// bulk shows the first words of data.
func bulk(data []int64) string {
	const shown = 4
	if len(data) <= shown {
		return fmt.Sprint(data)
	}
	return fmt.Sprintf("%v and %d words more", data[:shown], len(data)-shown)
}
