package bench

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// A Store keeps runs in a folder: runs.jsonl, a JSON object for each on a line of its
// own, and beside it runs.csv with the same runs. A run is in it once, and is written
// when it is through, so that a sweep that was interrupted can go on where it stopped.
// One process writes to a Store at a time.
type Store struct {
	dir     string
	records []Record
	known   map[string]bool
	json    *os.File
	csv     *os.File
}

const (
	jsonFile = "runs.jsonl"
	csvFile  = "runs.csv"
)

// ErrStore is wrapped when the files of a Store do not hold what a Store writes.
var ErrStore = errors.New("bench: not a folder of runs")

// OpenStore opens a folder, making it if needed. What an interrupted write has left
// at the end of runs.jsonl is cut off, and runs.csv is written anew.
func OpenStore(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	s := &Store{dir: dir, known: map[string]bool{}}
	var err error
	if s.json, err = os.OpenFile(filepath.Join(dir, jsonFile), os.O_RDWR|os.O_CREATE, 0o666); err != nil {
		return nil, err
	}
	if err = s.read(); err == nil {
		err = s.writeCSV()
	}
	if err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// read reads the runs and goes to the end of the last whole line.
func (s *Store) read() error {
	in := bufio.NewReader(s.json)
	end := int64(0)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return err
		}
		var r Record
		switch torn := err == io.EOF; {
		case torn && strings.HasPrefix(recordBegins, string(line[:min(len(line), len(recordBegins))])):
			return s.cut(end) // it was being written when the process ended
		case torn:
			err = errors.New("it has no end")
		default:
			err = json.Unmarshal(line, &r)
		}
		if err != nil || r.Key == "" || r.Result == nil {
			return fmt.Errorf("%s:%d: this line is no run (%v); mend it, take it out, or choose another folder: %w", s.json.Name(), n, err, ErrStore)
		}
		end += int64(len(line))
		if !s.known[r.Key] {
			s.known[r.Key] = true
			s.records = append(s.records, r)
		}
	}
}

// recordBegins is how a line begins.
const recordBegins = `{"key":"`

// cut ends runs.jsonl, and goes there.
func (s *Store) cut(end int64) error {
	if err := s.json.Truncate(end); err != nil {
		return err
	}
	_, err := s.json.Seek(end, io.SeekStart)
	return err
}

// writeCSV writes the runs that there are into another file, which then takes the
// place of runs.csv.
func (s *Store) writeCSV() error {
	path := filepath.Join(s.dir, csvFile)
	f, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	s.csv = f
	names, _ := (&Record{Result: &Result{}}).columns()
	rows := [][]string{names}
	for i := range s.records {
		_, values := s.records[i].columns()
		rows = append(rows, values)
	}
	if err := csv.NewWriter(f).WriteAll(rows); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// columns are the names and values of a run in runs.csv: those of Result.WriteCSV and
// those of the Record.
func (r *Record) columns() (names, values []string) {
	names, values = r.Result.columns()
	return append([]string{"where"}, append(names, "made", "command")...),
		append([]string{r.Where}, append(values, r.Made.Format(time.RFC3339), r.Command)...)
}

// Has reports whether a run is in the Store.
func (s *Store) Has(key string) bool { return s.known[key] }

// Records lists the runs, in the order in which they were made. They are not to be
// changed.
func (s *Store) Records() []Record { return s.records }

// Add writes a run that is not in the Store yet. Errors name the file.
func (s *Store) Add(r Record) error {
	if s.known[r.Key] {
		return fmt.Errorf("%s: run %q is there already: %w", s.json.Name(), r.Key, ErrStore)
	}
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if _, err := s.json.Write(append(line, '\n')); err != nil {
		return err
	}
	if err := s.json.Sync(); err != nil {
		return err
	}
	s.known[r.Key] = true
	s.records = append(s.records, r)
	_, values := r.columns()
	return csv.NewWriter(s.csv).WriteAll([][]string{values})
}

// Close closes the files.
func (s *Store) Close() error {
	err := s.json.Close()
	if s.csv != nil {
		err = errors.Join(err, s.csv.Close())
	}
	return err
}

// A Host is the computer that a run was made on, as far as a reader of its figures
// wants to know.
type Host struct {
	CPU  string `json:"cpu,omitempty"` // model; empty if unknown
	CPUs int    `json:"cpus"`          // processors
	OS   string `json:"os"`            // system and architecture
	Go   string `json:"go"`            // version
}

// ThisHost is the computer that the process runs on.
func ThisHost() Host {
	h := Host{CPUs: runtime.NumCPU(), OS: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version()}
	info, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return h // not Linux
	}
	for line := range bytes.Lines(info) {
		if name, value, ok := strings.Cut(string(line), ":"); ok && strings.TrimSpace(name) == "model name" {
			h.CPU = strings.TrimSpace(value)
			break
		}
	}
	return h
}

// String describes the host in a line.
func (h Host) String() string {
	text := fmt.Sprintf("%s, %s, %s", plural(h.CPUs, "processor"), h.OS, h.Go)
	if h.CPU != "" {
		text = h.CPU + ", " + text
	}
	return text
}
