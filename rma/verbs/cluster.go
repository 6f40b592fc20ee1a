package verbs

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"

	"github.com/rmalock/rmalock/rma"
)

// DefaultPort is a memory node's port for control where none is told.
const DefaultPort = "7471"

var (
	ofFile       = regexp.MustCompile(`^([0-9]*)@(.+)$`)
	ofAllocation = regexp.MustCompile(`^([0-9]+)(?::([0-9]+))?$`)
)

// FindMemoryNodes lists the memory nodes that a text names, host:port each:
//
//   - host:port,host: these, at DefaultPort where there is no port
//   - @FILE: the first words of a file's lines, as of a host file of mpirun; # begins a comment
//   - K@FILE: the first K of them
//   - K or K:PORT: the first K nodes of the Slurm job
func FindMemoryNodes(text string) ([]string, error) {
	if text == "" {
		return nil, nil
	}
	hosts, count, port := strings.Split(text, ","), "", DefaultPort
	var err error
	if m := ofFile.FindStringSubmatch(text); m != nil {
		count = m[1]
		hosts, err = hostsOfFile(m[2])
	} else if m := ofAllocation.FindStringSubmatch(text); m != nil {
		if count = m[1]; m[2] != "" {
			port = m[2]
		}
		hosts, err = hostsOfJob()
	}
	if err != nil {
		return nil, err
	}
	if count != "" {
		k, err := strconv.Atoi(count)
		if err != nil || k < 1 || k > len(hosts) {
			return nil, fmt.Errorf("verbs: memory nodes %q: want 1 to %d of the %d hosts that there are: %w", text, len(hosts), len(hosts), rma.ErrRefused)
		}
		hosts = hosts[:k]
	}
	for i, h := range hosts {
		if h == "" {
			return nil, fmt.Errorf("verbs: memory nodes %q: a name is empty: %w", text, rma.ErrRefused)
		}
		if _, _, err := net.SplitHostPort(h); err != nil {
			hosts[i] = net.JoinHostPort(strings.Trim(h, "[]"), port)
		}
	}
	return hosts, nil
}

func hostsOfFile(file string) (hosts []string, err error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("verbs: the list of memory nodes: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		line, _, _ = strings.Cut(line, "#")
		if words := strings.Fields(line); len(words) > 0 {
			hosts = append(hosts, words[0])
		}
	}
	if len(hosts) == 0 {
		return nil, fmt.Errorf("verbs: %s names no memory node: %w", file, rma.ErrRefused)
	}
	return hosts, nil
}

// hostsOfJob asks Slurm for the nodes of the job that this process is of.
func hostsOfJob() ([]string, error) {
	list := os.Getenv("SLURM_JOB_NODELIST")
	if list == "" {
		return nil, fmt.Errorf("verbs: memory nodes by their number are the first of a Slurm job, and this is none; name them, or a file of hosts (@FILE): %w", rma.ErrRefused)
	}
	out, err := exec.Command("scontrol", "show", "hostnames", list).Output()
	if err != nil {
		return nil, fmt.Errorf("verbs: scontrol show hostnames %s: %v: %w", list, err, rma.ErrRefused)
	}
	return strings.Fields(string(out)), nil
}
