package main

import (
	"cmp"
	"errors"
	"expvar"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/rmalock/rmalock/bench"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/lock/observe"
	"github.com/rmalock/rmalock/rma"
)

// observing are --trace and --counters.
type observing struct {
	trace    string // file
	counters string // address
}

func (o *observing) flags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.StringVar(&o.trace, "trace", "", "file for a sampled timeline of the job, in Chrome's trace format")
	f.StringVar(&o.counters, "counters", "", "address [HOST]:PORT at which to serve counters while the job runs; rank r at PORT+r; no host: this machine alone")
}

// check reports what is wrong with the flags.
func (o *observing) check(backend, lock string, runs int) error {
	switch {
	case o.trace == "" && o.counters == "":
		return nil
	case backend == simulated:
		return errors.New("--trace and --counters show locks at work, not in virtual time: --backend inproc or mpi")
	case lock == bench.Atomic:
		return errors.New("--trace and --counters show locks, and --lock atomic is none")
	case o.trace != "" && runs > 1:
		return fmt.Errorf("--trace writes the timeline of one run, and these are %d", runs)
	}
	if _, _, err := o.address(); err != nil {
		return err
	}
	return nil
}

// address splits --counters. Without a host it is the loopback interface.
func (o *observing) address() (host string, port int, err error) {
	if o.counters == "" {
		return "", 0, nil
	}
	host, text, err := net.SplitHostPort(o.counters)
	if err == nil {
		port, err = strconv.Atoi(text)
	}
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("--counters is %q, want HOST:PORT, such as localhost:9100", o.counters)
	}
	return cmp.Or(host, "127.0.0.1"), port, nil
}

// around serves counters and writes the timeline while f runs. f wraps its tables of locks with the
// function that it gets; nil means no wrapping. name is the lock's name. processes says that each
// rank is a process. Collective.
func (o *observing) around(c rma.Comm, name string, processes bool, f func(wrap func(rma.Comm, lock.Table) lock.Table) error) error {
	if o.trace == "" && o.counters == "" {
		return f(nil)
	}
	var tr *observe.Trace
	var file *os.File
	stop, err := o.serve(c.Rank(), processes)
	defer stop()
	if err == nil && o.trace != "" && c.Rank() == 0 {
		// It gets its name when it is complete.
		if file, err = os.CreateTemp(filepath.Dir(o.trace), ".trace-*"); err == nil {
			defer os.Remove(file.Name())
			defer file.Close()
		} else {
			err = fmt.Errorf("--trace: no file can be made in folder %s: %w", filepath.Dir(o.trace), cause(err))
		}
	}
	if err := rma.Agree(c, err); err != nil {
		return err
	}
	if o.trace != "" {
		if tr, err = observe.NewTrace(c, observe.Sampling{}); err != nil {
			return err
		}
	}
	err = f(func(c rma.Comm, t lock.Table) lock.Table {
		if o.counters != "" {
			t = observe.Count(c, t, name)
		}
		if tr != nil {
			t = tr.Table(t, name)
		}
		return t
	})
	if err != nil || tr == nil {
		return err
	}
	if err := tr.Write(file); err != nil {
		return err
	}
	if c.Rank() == 0 {
		err = errors.Join(file.Chmod(0o644), file.Close(), os.Rename(file.Name(), o.trace))
	}
	return rma.Agree(c, err)
}

// cause is an error of a file without the file's name, which is another one than the user's.
func cause(err error) error {
	if e := (*os.PathError)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}

// listen opens the port of a rank; port 0 is any that is free.
func (o *observing) listen(rank int) (net.Listener, error) {
	host, port, err := o.address()
	if err != nil {
		return nil, err
	}
	if port > 0 {
		port += rank
	}
	return net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
}

// serve serves the counters of this process until stop is called: at the port plus the
// rank, or of ranks in one process by the first.
func (o *observing) serve(rank int, processes bool) (stop func(), err error) {
	if o.counters == "" || rank > 0 && !processes {
		return func() {}, nil
	}
	l, err := o.listen(rank)
	if err != nil {
		return func() {}, fmt.Errorf("--counters: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("/debug/vars", expvar.Handler())
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_ = observe.WritePrometheus(w) // the client has left
	})
	s := &http.Server{Handler: mux}
	go func() { _ = s.Serve(l) }() // ends when Close is called
	return func() { s.Close() }, nil
}
