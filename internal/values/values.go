// Package values reads the values of locks' parameters.
package values

import (
	"fmt"
	"time"
)

// Time reads a time of 0 or more, such as 10ms, as nanoseconds.
func Time(text string) (int64, error) {
	if text == "0" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err == nil && d < 0 {
		err = fmt.Errorf("want no negative time")
	}
	return int64(d), err
}

// Choice reads one of some names as its index.
func Choice(text string, names ...string) (int, error) {
	for i, name := range names {
		if text == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("want one of %v", names)
}
