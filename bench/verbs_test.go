package bench_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/rmalock/rmalock/bench"
)

// On verbs, the clients of locks on memory nodes poll without pauses. What the network carries is
// counted by kind and host, and a run follows its seed.
func TestVirtualOnVerbs(t *testing.T) {
	m, err := bench.LoadMachine("cx4")
	require.NoError(t, err)
	run := func(v bench.Virtual, seed uint64) *bench.Result {
		v.Topology, v.Machine, v.MemoryNodes = nodes(16, 4), m, 2
		return virtual(t, v, bench.Config{Lock: "testmemory", Mode: bench.Clients, Workload: bench.Mix{Accesses: 1},
			Readers: 0.5, Locks: 4, Acquires: 200, Seed: seed})
	}
	verbs := bench.Virtual{Verbs: true, QPs: bench.PerCore, Coroutines: 2}
	r := run(verbs, 1)
	require.Equal(t, "sim, virtual time on cx4, verbs", r.Transport)
	require.Equal(t, 2, r.MemoryNodes)
	for _, name := range []string{"Get.memory", "Put.memory"} { // the accesses of readers and writers
		require.InDelta(t, 0.5, r.Network[name], 0.1, "%s: %v", name, r.Network)
	}
	require.Greater(t, r.Network["CompareAndSwap.memory"], 1.0, r.Network)
	require.NotContains(t, r.Network, "Get.rank")
	again := run(verbs, 1)
	require.Equal(t, r, again)
	require.NotEqual(t, r.PerSecond, run(verbs, 2).PerSecond)

	mpi := run(bench.Virtual{}, 1)
	require.Less(t, mpi.Retries, r.Retries, "retries an acquire under MPI, which pauses, and on verbs")
	require.Equal(t, "sim, virtual time on cx4", mpi.Transport)
}

// Locks in NIC memory, mailboxes and servers: a hot word is four times as quick, hand-overs are
// messages, and a rank that takes long for a message holds up what it is told.
func TestVirtualDeviceMessagesServers(t *testing.T) {
	m, err := bench.LoadMachine("cx6")
	require.NoError(t, err)
	hot := func(device ...string) float64 {
		v := bench.Virtual{Topology: nodes(16, 4), Machine: m, MemoryNodes: 1, Verbs: true, Device: device}
		return virtual(t, v, bench.Config{Lock: "testmemory", Mode: bench.ECSB, Acquires: 200}).PerSecond
	}
	require.Greater(t, hot("testmemory"), 2*hot())

	queue := func(servers ...int) *bench.Result {
		v := bench.Virtual{Topology: nodes(8, 1), Machine: m, Verbs: true, MaskedSwap: true, Messages: []string{"dmcs"}, Servers: servers}
		return virtual(t, v, bench.Config{Lock: "dmcs", Mode: bench.ECSB, Acquires: 200})
	}
	plain := queue()
	require.Greater(t, plain.Network["message"], 0.9, plain.Network) // the hand-over; most links too
	require.NotContains(t, plain.Network, "Put.rank")
	slow := queue(0, 1, 2, 3, 4, 5, 6, 7).PerSecond
	t.Logf("%.3g and with servers %.3g acquires a second", plain.PerSecond, slow)
	require.Less(t, slow, 0.8*plain.PerSecond)
}

// Figure 1 of alock: a spin lock on one machine, reached through loopback. With a connection from
// each thread to each, throughput peaks at a few threads and then falls. With one from each
// thread to the node it stays where it is.
func TestLoopbackPeaksAndFalls(t *testing.T) {
	m, err := bench.LoadMachine("cx3")
	require.NoError(t, err)
	rate := func(q bench.QPs, threads int) float64 {
		v := bench.Virtual{Topology: nodes(threads, threads), Machine: m, Verbs: true, QPs: q}
		return virtual(t, v, bench.Config{Lock: "fompi-spin", Mode: bench.ECSB, Locks: 1000, Acquires: 400}).PerSecond
	}
	peak, most := 0, 0.0
	for _, n := range []int{1, 2, 4, 6, 8, 12, 16} {
		if r := rate(bench.PerThreadPair, n); r > 1.02*most {
			peak, most = n, r
		}
	}
	last := rate(bench.PerThreadPair, 16)
	t.Logf("%.3g M/s with %d threads, %.3g with 16", most/1e6, peak, last/1e6)
	require.True(t, peak >= 2 && peak <= 8, "peak at %d threads", peak)
	require.Less(t, last, 0.7*most)
	require.Greater(t, rate(bench.PerThread, 16), 0.95*most)
}
