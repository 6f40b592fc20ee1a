package bench

import (
	"math"
	"runtime/metrics"
	"strconv"
)

// collections is the number of garbage collections of the process so far. Unlike
// runtime.ReadMemStats it does not stop the world.
func collections() int64 { return int64(metric("/gc/cycles/total:gc-cycles")) }

// gogc is the collector's target in percent, or "off".
func gogc() string {
	v := metric("/gc/gogc:percent")
	if v == math.MaxUint64 {
		return "off"
	}
	return strconv.FormatUint(v, 10)
}

func metric(name string) uint64 {
	s := []metrics.Sample{{Name: name}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return s[0].Value.Uint64()
}
