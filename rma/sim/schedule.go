package sim

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// ErrSchedule is wrapped by errors about a schedule's text.
var ErrSchedule = errors.New("sim: bad schedule")

// encode writes choices as text: a number is so many times the first step (the rank
// that was last goes on, if it can), a letter from a on the second, third, ... step,
// and a number in parentheses one beyond z.
func encode(choices []int) string {
	var b strings.Builder
	zeros := 0
	for _, c := range choices {
		if c == 0 {
			zeros++
			continue
		}
		if zeros > 0 {
			b.WriteString(strconv.Itoa(zeros))
			zeros = 0
		}
		if c <= 26 {
			b.WriteByte('a' + byte(c-1))
		} else {
			fmt.Fprintf(&b, "(%d)", c)
		}
	}
	if zeros > 0 {
		b.WriteString(strconv.Itoa(zeros))
	}
	if b.Len() == 0 {
		return "-"
	}
	return b.String()
}

// maxSteps is the length of the longest schedule.
const maxSteps = 1 << 24

func decode(text string) ([]int, error) {
	var out []int
	if text == "-" {
		return nil, nil
	}
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c >= 'a' && c <= 'z':
			out = append(out, int(c-'a')+1)
			i++
		case c >= '0' && c <= '9':
			n := 0
			for ; i < len(text) && text[i] >= '0' && text[i] <= '9' && n <= maxSteps; i++ {
				n = n*10 + int(text[i]-'0')
			}
			if len(out)+n > maxSteps {
				return nil, fmt.Errorf("%w: more than %d steps at character %d", ErrSchedule, maxSteps, i)
			}
			out = append(out, make([]int, n)...)
		case c == '(':
			end := strings.IndexByte(text[i:], ')')
			n, err := 0, error(nil)
			if end > 0 {
				n, err = strconv.Atoi(text[i+1 : i+end])
			}
			if end < 0 || err != nil || n < 0 {
				return nil, fmt.Errorf("%w: want a number and ) after ( at character %d of %q", ErrSchedule, i+1, text)
			}
			out = append(out, n)
			i += end + 1
		default:
			return nil, fmt.Errorf("%w: character %d of %q is neither a digit, a letter from a to z, nor (", ErrSchedule, i+1, text)
		}
	}
	return out, nil
}
