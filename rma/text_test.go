package rma_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/rmalock/rmalock/rma"
)

func TestTexts(t *testing.T) {
	for _, c := range []struct {
		got  fmt.Stringer
		want string
	}{
		{rma.Far, "far"}, {rma.Near, "near"}, {rma.Flag, "flag"}, {rma.Class(9), "class(9)"},
		{rma.Sum, "SUM"}, {rma.Replace, "REPLACE"}, {rma.NoOp, "NO_OP"}, {rma.Op(9), "Op?"},
		{rma.KindPut, "Put"}, {rma.KindGet, "Get"}, {rma.KindAccumulate, "Accumulate"}, {rma.KindFetchAndOp, "FetchAndOp"},
		{rma.KindCompareAndSwap, "CompareAndSwap"}, {rma.KindPutBulk, "PutBulk"}, {rma.KindGetBulk, "GetBulk"}, {rma.Kinds, "Kind?"},
		{rma.Equal(3), "== 3"}, {rma.NotEqual(-1), "!= -1"}, {rma.Less(0), "< 0"}, {rma.AtLeast(math.MinInt64), ">= -9223372036854775808"},
	} {
		if got := c.got.String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func TestKindsThatWrite(t *testing.T) {
	for k := range rma.Kinds {
		if want := k != rma.KindGet && k != rma.KindGetBulk; k.Writes() != want {
			t.Errorf("%v writes: %v, want %v", k, k.Writes(), want)
		}
	}
}

func TestCondIsSigned(t *testing.T) {
	values := []int64{math.MinInt64, -2, -1, 0, 1, 2, 1 << 32, math.MaxInt64}
	for _, a := range values {
		for _, v := range values {
			for _, c := range []struct {
				cond rma.Cond
				want bool
			}{
				{rma.Equal(a), v == a}, {rma.NotEqual(a), v != a}, {rma.Less(a), v < a}, {rma.AtLeast(a), v >= a},
			} {
				if c.cond.Holds(v) != c.want {
					t.Errorf("%d %v: %v, want %v", v, c.cond, c.cond.Holds(v), c.want)
				}
			}
		}
	}
}

func TestAccessErrorTexts(t *testing.T) {
	for _, c := range []struct {
		err  rma.AccessError
		text string
	}{
		{rma.AccessError{Window: "w", Op: "Put", Target: 7, Disp: 3, Words: 1, Size: 4, Limit: 10, Err: rma.ErrRank},
			`rma: window "w": Put at rank 7, displacement 3: rank out of range (the window has ranks 0 to 3)`},
		{rma.AccessError{Window: "w", Op: "Get", Target: 1, Disp: 10, Words: 1, Size: 4, Limit: 10, Err: rma.ErrDisp},
			`rma: window "w": Get at rank 1, displacement 10: displacement out of range (each rank has words 0 to 9)`},
		{rma.AccessError{Window: "w", Op: "PutBulk", Target: 1, Disp: 8, Words: 3, Size: 4, Limit: 10, Err: rma.ErrDisp},
			`rma: window "w": PutBulk at rank 1, displacements 8 to 10: displacement out of range (each rank has words 0 to 9)`},
		{rma.AccessError{Window: "w", Op: "FetchAndOp(SUM)", Target: 1, Disp: 2, Words: 1, Size: 4, Limit: 10, Word: "WAIT[1] (flag)", Err: rma.ErrClass},
			`rma: window "w": FetchAndOp(SUM) at rank 1, displacement 2, word WAIT[1] (flag): operation not allowed on a word of this class`},
	} {
		if got := c.err.Error(); got != c.text {
			t.Errorf("got  %s\nwant %s", got, c.text)
		}
		if !errors.Is(&c.err, c.err.Err) {
			t.Errorf("%v does not wrap its sentinel", &c.err)
		}
	}
}
