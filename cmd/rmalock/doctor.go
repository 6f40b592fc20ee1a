package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rmalock/rmalock/rma"
	"github.com/rmalock/rmalock/rma/mpi"
	"github.com/rmalock/rmalock/rma/verbs"
)

// finding is one thing that doctor has looked for.
type finding struct {
	Thing string `json:"thing"`
	OK    bool   `json:"ok"`
	Found string `json:"found"`
	Do    string `json:"do,omitempty"`
}

func newDoctor() *cobra.Command {
	var json bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Say which backends work on this machine, and what the others lack",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			devices, all := examine()
			if json {
				return fail(writeJSON(cmd.OutOrStdout(), map[string]any{"devices": devices, "findings": all}))
			}
			for _, f := range all {
				mark := "ok"
				if !f.OK {
					mark = "--"
				}
				if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s  %-14s %s\n", mark, f.Thing, f.Found); err != nil {
					return fail(err)
				}
				if f.Do != "" {
					if _, err := fmt.Fprintf(cmd.OutOrStdout(), "    %-14s -> %s\n", "", f.Do); err != nil {
						return fail(err)
					}
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&json, "json", false, "print JSON")
	cmd.Long = text("doctor")
	return cmd
}

// examine looks at everything.
func examine() ([]verbs.Device, []finding) {
	devices, err := verbs.Devices()
	all := []finding{{Thing: "RDMA", OK: true, Found: fmt.Sprintf("%d addresses of devices", len(devices))}}
	usable := false
	if err != nil {
		all[0] = finding{Thing: "RDMA", Found: message(err), Do: "Soft-RoCE needs no card: modprobe rdma_rxe; rdma link add rxe0 type rxe netdev eth0"}
	}
	for _, d := range devices {
		usable = usable || d.Usable
		f := finding{Thing: d.Name, OK: d.Usable, Found: fmt.Sprintf(
			"port %d, %s, GID %d %s, atomics %s, %d reads at once, %d pairs, %d regions of up to %d bytes",
			d.Port, d.Link, d.GIDIndex, d.GID, d.Atomics, d.Reads, d.Pairs, d.Regions, d.RegionBytes)}
		switch {
		case !d.Active:
			f.Do = "the port is not active: ip link set its interface up, or connect the cable"
		case d.Atomics == "none":
			f.Do = "locks need atomics; this device has none"
		}
		all = append(all, f)
	}
	if usable {
		all = append(all, tryAtomics())
	}
	return devices, append(all, lockedMemory(), hugePages(), mpiLibrary(), openMPI(), mpich(), tool("Slurm", "srun"))
}

// tryAtomics is a memory node and a client of it in this process.
func tryAtomics() finding {
	f := finding{Thing: "atomics"}
	s, err := verbs.Listen(verbs.NodeConfig{Listen: "127.0.0.1:0", Words: 64})
	if err == nil {
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan error)
		go func() { ended <- s.Run(ctx) }()
		order := ""
		err = verbs.Config{MemoryNodes: []string{s.Addr()}}.Run(1, func(c rma.Comm) error {
			order = verbs.ByteOrder(c)
			return nil
		})
		stop()
		err = errors.Join(err, <-ended)
		f.Found = "a fetch-and-add through the device adds, and answers in " + order + " byte order"
	}
	if f.OK = err == nil; err != nil {
		f.Found, f.Do = message(err), "the device has an address and does not reach itself: look at dmesg, and at ip route"
	}
	return f
}

// lockedMemory is the limit of memory that a process may register.
func lockedMemory() finding {
	const memlock = 8 // RLIMIT_MEMLOCK
	var l syscall.Rlimit
	if err := syscall.Getrlimit(memlock, &l); err != nil {
		return finding{Thing: "locked memory", Found: err.Error()}
	}
	if l.Cur > 1<<60 {
		return finding{Thing: "locked memory", OK: true, Found: "no limit"}
	}
	f := finding{Thing: "locked memory", OK: l.Cur >= 64<<20, Found: fmt.Sprintf("%d KiB may be registered", l.Cur>>10)}
	if !f.OK {
		f.Do = "ulimit -l unlimited, or memlock in /etc/security/limits.conf, or LimitMEMLOCK in the unit of slurmd"
	}
	return f
}

func hugePages() finding {
	f := finding{Thing: "huge pages", Found: "the kernel tells nothing of them"}
	b, _ := os.ReadFile("/proc/meminfo")
	for line := range strings.Lines(string(b)) {
		var n int
		if _, err := fmt.Sscanf(line, "HugePages_Free: %d", &n); err == nil {
			f.OK, f.Found = n > 0, fmt.Sprintf("%d free", n)
		}
	}
	if !f.OK {
		f.Do = "a memory node works without; for large ones: sysctl vm.nr_hugepages=N, pages of 2 MiB"
	}
	return f
}

func mpiLibrary() finding {
	f := finding{Thing: "MPI", OK: mpi.Library != "none", Found: "this build is for " + mpi.Library}
	if !f.OK {
		f.Do = "build with cgo and an MPI library: make build"
	}
	return f
}

// openMPI is Open MPI with the components that carry one-sided operations.
func openMPI() finding {
	f := tool("Open MPI", "mpirun.openmpi")
	out, err := exec.Command("ompi_info", "--parsable").Output()
	if !f.OK || err != nil {
		return f
	}
	names := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		if p := strings.Split(line, ":"); len(p) > 3 && p[0] == "mca" && p[3] == "version" && !slices.Contains(names[p[1]], p[2]) {
			names[p[1]] = append(names[p[1]], p[2])
		}
	}
	for _, kind := range []string{"osc", "pml", "mtl", "btl"} {
		if names[kind] != nil {
			f.Found += fmt.Sprintf("; %s: %s", kind, strings.Join(names[kind], " "))
		}
	}
	return f
}

// mpich is MPICH with its device.
func mpich() finding {
	f := tool("MPICH", "mpirun.mpich")
	out, _ := exec.Command("mpichversion").Output()
	for line := range strings.Lines(string(out)) {
		if name, device, _ := strings.Cut(line, ":"); f.OK && name == "MPICH Device" {
			f.Found += "; device " + strings.TrimSpace(device)
		}
	}
	return f
}

// tool is a program on the path.
func tool(thing, program string) finding {
	path, err := exec.LookPath(program)
	if err != nil {
		return finding{Thing: thing, Found: "no " + program, Do: "make setup installs it on Debian"}
	}
	version := ""
	if out, err := exec.Command(path, "--version").Output(); err == nil {
		version, _, _ = strings.Cut(strings.TrimSpace(string(out)), "\n")
	}
	return finding{Thing: thing, OK: true, Found: strings.TrimSpace(path + " " + version)}
}
