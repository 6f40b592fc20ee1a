package main

import (
	"io"
	"os"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress is a bar on a terminal.
type progress struct {
	out io.Writer
	bar *progressbar.ProgressBar // nil before the first report
}

// newProgress returns nil unless out is a terminal.
func newProgress(out io.Writer) *progress {
	if f, ok := out.(*os.File); !ok || !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return &progress{out: out}
}

// report shows the inserts of rank 0.
func (p *progress) report(done, total int64) {
	if p.bar == nil {
		p.bar = progressbar.NewOptions64(total,
			progressbar.OptionSetWriter(p.out),
			progressbar.OptionSetDescription("inserts of rank 0"),
			progressbar.OptionShowCount(),
			progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(),
		)
	}
	_ = p.bar.Set64(done) // the job goes on without a bar
}

// clear takes the bar away.
func (p *progress) clear() {
	if p != nil && p.bar != nil {
		_ = p.bar.Clear()
	}
}
