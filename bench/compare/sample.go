package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// A sample is the result line of one job: the fields that rmalock bench --json and
// the programs of bench/c have in common, and those of one of them.
type sample struct {
	Lock      string  `json:"lock"`
	Mode      string  `json:"mode"`
	Ranks     int     `json:"ranks"`
	Median    float64 `json:"ns_per_acquire_median"` // uncontended; of batches of 1000
	Min       float64 `json:"ns_per_acquire_min"`
	PerSecond float64 `json:"acquires_per_second"` // contended
	PerRank   []int64 `json:"acquires_per_rank"`

	Settings  string `json:"settings"` // C
	Library   string `json:"library"`
	Component string `json:"component"`

	Transport string `json:"transport"` // ours
	NumGC     int64  `json:"num_gc"`
	GOGC      string `json:"gogc"`
}

// parse finds the result in what a job printed.
func parse(out []byte) (sample, error) {
	var s sample
	start := bytes.IndexByte(out, '{')
	if start < 0 {
		return s, fmt.Errorf("no JSON in its output %q", out[:min(len(out), 200)])
	}
	if err := json.NewDecoder(bytes.NewReader(out[start:])).Decode(&s); err != nil {
		return s, fmt.Errorf("its output: %w", err)
	}
	return s, nil
}

// check refuses a result that says something else than a measurement of the job.
func (s *sample) check(ranks int) error {
	if s.Ranks != ranks {
		return fmt.Errorf("it ran on %d ranks, want %d: is it linked with the MPI library of the launcher?", s.Ranks, ranks)
	}
	if !(s.Median > 0 || s.PerSecond > 0) {
		return errors.New("its output has neither ns_per_acquire_median nor acquires_per_second")
	}
	return nil
}
