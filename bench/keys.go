package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Keys says how often each lock is drawn. The zero value is uniform.
type Keys struct {
	// Theta is the exponent of a Zipf distribution, 0 to 3: lock id is drawn about as often
	// as (id+1)^-Theta. 0 is uniform.
	Theta float64
	// Scrambled has the locks that are drawn often anywhere, as YCSB's scrambled Zipf
	// distribution, and not at the lowest ids.
	Scrambled bool
	// HotSet is a share of the locks, those with the lowest ids, that gets the share HotShare
	// of the draws; the others get the rest. Both are uniform. 0 is no hot set.
	HotSet, HotShare float64
	// Power is the exponent of a power law over the locks of each host, more than 1 and at most 3;
	// hosts are drawn evenly. It is the one of dslr, appendix A.4, by its authors' generator. 0 is
	// none.
	Power float64
}

// maxTheta is the steepest distribution that a paper on these locks has (DSLR's is 3).
const maxTheta = 3

// ParseKeys reads Keys in text: uniform, zipf:THETA, scrambled:THETA, power:ALPHA or
// hot:SET:SHARE. Errors wrap ErrConfig.
func ParseKeys(text string) (Keys, error) {
	fields := strings.Split(text, ":")
	var numbers []float64
	for _, f := range fields[1:] {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil {
			return Keys{}, fmt.Errorf("keys are %q, of which %q is no number: %w", text, f, ErrConfig)
		}
		numbers = append(numbers, v)
	}
	var k Keys
	switch {
	case fields[0] == "uniform" && len(numbers) == 0:
	case fields[0] == "zipf" && len(numbers) == 1:
		k.Theta = numbers[0]
	case fields[0] == "scrambled" && len(numbers) == 1:
		k.Theta, k.Scrambled = numbers[0], true
	case fields[0] == "power" && len(numbers) == 1:
		if k.Power = numbers[0]; k.Power == 0 {
			k.Power = math.NaN() // 0 is none
		}
	case fields[0] == "hot" && len(numbers) == 2:
		if k.HotSet, k.HotShare = numbers[0], numbers[1]; k.HotSet == 0 {
			k.HotSet = math.NaN() // 0 is none
		}
	default:
		return Keys{}, fmt.Errorf("keys are %q, want uniform, zipf:THETA, scrambled:THETA, power:ALPHA or hot:SET:SHARE, such as zipf:0.99 or hot:0.2:0.8: %w", text, ErrConfig)
	}
	return k, k.check()
}

// String is what ParseKeys reads.
func (k Keys) String() string {
	switch {
	case k.HotSet != 0:
		return fmt.Sprintf("hot:%g:%g", k.HotSet, k.HotShare)
	case k.Power != 0:
		return fmt.Sprintf("power:%g", k.Power)
	case k.Scrambled:
		return fmt.Sprintf("scrambled:%g", k.Theta)
	case k.Theta != 0:
		return fmt.Sprintf("zipf:%g", k.Theta)
	}
	return "uniform"
}

// MarshalText is String.
func (k Keys) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText is ParseKeys.
func (k *Keys) UnmarshalText(text []byte) (err error) {
	*k, err = ParseKeys(string(text))
	return err
}

// check reports what is wrong.
func (k Keys) check() error {
	switch {
	case !(k.Theta >= 0 && k.Theta <= maxTheta):
		return fmt.Errorf("theta of keys is %g, want 0 to %d: %w", k.Theta, maxTheta, ErrConfig)
	case k.Power != 0 && !(k.Power > 1 && k.Power <= maxTheta):
		return fmt.Errorf("alpha of keys is %g, want more than 1 and at most %d: %w", k.Power, maxTheta, ErrConfig)
	case k.Power != 0 && (k.Theta != 0 || k.Scrambled || k.HotSet != 0):
		return fmt.Errorf("keys are a power law and something else, want one of them: %w", ErrConfig)
	case k.HotSet != 0 && !(k.HotSet > 0 && k.HotSet < 1):
		return fmt.Errorf("hot set of keys is %g of the locks, want more than 0 and less than 1: %w", k.HotSet, ErrConfig)
	case !(k.HotShare >= 0 && k.HotShare <= 1):
		return fmt.Errorf("hot share of keys is %g of the draws, want 0 to 1: %w", k.HotShare, ErrConfig)
	case k.HotSet != 0 && (k.Theta != 0 || k.Scrambled), k.HotSet == 0 && k.HotShare != 0:
		return fmt.Errorf("keys are a hot set and a Zipf distribution, want one of them: %w", ErrConfig)
	}
	return nil
}

// A source draws numbers from 0 on.
type source interface{ next(*rand.Rand) int }

// over is a source of numbers below n.
func (k Keys) over(n int) source {
	switch {
	case k.HotSet != 0:
		return hot{n, k.hot(n), k.HotShare}
	case k.Power != 0:
		return newPower(n, k.Power)
	case k.Scrambled:
		return newScrambled(n, k.Theta)
	case k.Theta != 0:
		return newZipf(n, k.Theta)
	}
	return uniform(n)
}

// distinct is how many different numbers below n can be drawn.
func (k Keys) distinct(n int) int {
	if k.HotSet == 0 {
		return n
	}
	switch hot := k.hot(n); {
	case k.HotShare == 1:
		return hot
	case k.HotShare == 0:
		return max(n-hot, 1)
	}
	return n
}

// hot is the size of the hot set of n.
func (k Keys) hot(n int) int { return min(n, max(1, int(math.Round(k.HotSet*float64(n))))) }

// uniform draws all numbers below it equally often.
type uniform int

func (n uniform) next(rng *rand.Rand) int { return rng.IntN(int(n)) }

// hot draws the first numbers with a share, and the others.
type hot struct {
	n, first int
	share    float64
}

func (h hot) next(rng *rand.Rand) int {
	if h.first == h.n || rng.Float64() < h.share {
		return rng.IntN(h.first)
	}
	return h.first + rng.IntN(h.n-h.first)
}

// power draws numbers by a continuous power law, cut to whole numbers: x is drawn with a density
// as x^-alpha from 1 to n.
type power struct {
	n          int
	b, inverse float64 // n^(1-alpha), and 1/(1-alpha)
}

func newPower(n int, alpha float64) power {
	return power{n, math.Pow(float64(n), 1-alpha), 1 / (1 - alpha)}
}

func (p power) next(rng *rand.Rand) int {
	x := math.Pow((p.b-1)*rng.Float64()+1, p.inverse)
	return min(max(int(x)-1, 0), p.n-1)
}

// byHome draws a host evenly and one of its locks.
type byHome struct {
	at    source // among the locks of a host
	homes int
}

func (b byHome) next(rng *rand.Rand) int { return b.at.next(rng)*b.homes + rng.IntN(b.homes) }
