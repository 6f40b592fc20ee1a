// Package values reads the values of locks' parameters. Errors say what is wanted; the caller adds
// the parameter's name and the text.
package values

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Number reads a whole number from least on.
func Number(text string, least int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < least {
		return 0, fmt.Errorf("want a whole number from %d on", least)
	}
	return n, nil
}

// Time reads a time of 0 or more, such as 10ms, as nanoseconds.
func Time(text string) (int64, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, errors.New("want a time such as 10ms, or 0")
	}
	return int64(d), nil
}

// Lease reads a time of more than 0 as nanoseconds; off is -1.
func Lease(text string) (int64, error) {
	if text == "off" {
		return -1, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, errors.New("want a time of more than 0 such as 10ms, or off")
	}
	return int64(d), nil
}

// Choice reads one of some names as its index.
func Choice(text string, names ...string) (int, error) {
	for i, name := range names {
		if text == name {
			return i, nil
		}
	}
	last := len(names) - 1
	return 0, fmt.Errorf("want %s or %s", strings.Join(names[:last], ", "), names[last])
}
