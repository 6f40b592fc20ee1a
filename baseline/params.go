package baseline

import (
	"fmt"
	"time"

	"github.com/rmalock/rmalock/internal/values"
	"github.com/rmalock/rmalock/lock"
)

// Parameters that several locks have.
var (
	paramR       = lock.Param{Name: "R", Help: "pause after a try that failed, doubling, as in 10us; 0 for none; default 0"}
	paramL       = lock.Param{Name: "L", Help: "longest pause, as in 10ms, the default with R"}
	paramRetries = lock.Param{Name: "RETRIES", Help: "tries of a rank that holds other locks before ErrGiveWay; default 0, no limit"}
)

// parse reads parameters into a Config; own reads those that are the lock's own.
func parse(name string, s lock.Setting, jitter Jitter, own func(param, value string) error) (Config, error) {
	cfg := Config{Locks: s.Locks, Home: s.Home}
	for param, text := range s.Params {
		var err error
		switch param {
		case paramR.Name:
			cfg.Backoff.BaseNs, err = values.Time(text)
		case paramL.Name:
			cfg.Backoff.MaxNs, err = values.Time(text)
		case paramRetries.Name:
			cfg.Retries, err = values.Number(text, 0)
		default:
			err = own(param, text)
		}
		if err != nil {
			return cfg, fmt.Errorf("baseline: %s: %s is %q: %w: %w", name, param, text, err, lock.ErrConfig)
		}
	}
	switch b := &cfg.Backoff; {
	case b.BaseNs == 0 && b.MaxNs != 0:
		return cfg, fmt.Errorf("baseline: %s: L is %d ns and there is no R: %w", name, b.MaxNs, lock.ErrConfig)
	case b.BaseNs > 0:
		b.Jitter = jitter
		if b.MaxNs == 0 {
			b.MaxNs = max(b.BaseNs, int64(10*time.Millisecond))
		}
	}
	return cfg, nil
}
