package papers

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Count is the number of rows with a verdict.
func Count(rows []Row, v Verdict) int {
	n := 0
	for _, r := range rows {
		if r.Verdict == v {
			n++
		}
	}
	return n
}

// Summary is the verdicts in a line.
func Summary(rows []Row) string {
	text := fmt.Sprintf("%d claims: %d met, %d with a gap and its reason, %d red", len(rows), Count(rows, Met), Count(rows, Gap), Count(rows, Red))
	if n := Count(rows, Skipped); n > 0 {
		text += fmt.Sprintf(", %d need a full run", n)
	}
	return text
}

// WriteText writes rows for people.
func WriteText(out io.Writer, rows []Row) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "id\tclaim\tpaper\tours\tclass\tverdict")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%s\n", r.ID, r.Claim, r.Stated, r.Ours, r.Class, r.Verdict)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, r := range rows {
		if r.Reason != "" {
			fmt.Fprintf(out, "\n%s, %s: %s\n", r.ID, r.Claim, r.Reason)
		}
	}
	_, err := fmt.Fprintf(out, "\n%s\n", Summary(rows))
	return err
}

// WriteMarkdown writes rows as a page: a section for each paper, a table for each experiment
// with its command, and the reasons of gaps.
func WriteMarkdown(out io.Writer, list []Paper, rows []Row) error {
	var b strings.Builder
	b.WriteString(pageHead)
	for _, p := range list {
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", p.Title, wrap(p.Testbed))
		for _, x := range p.Experiments {
			var mine []Row
			for _, r := range rows {
				if r.ID == x.ID {
					mine = append(mine, r)
				}
			}
			if len(mine) > 0 {
				fmt.Fprintf(&b, "\n### %s\n\n%s\n\n", title(&x), wrap(x.What+"."))
				writeTable(&b, mine)
				fmt.Fprintf(&b, "\n```sh\n%s\n```\n", mine[0].Command)
			}
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// title is an experiment in a heading.
func title(x *Experiment) string {
	if strings.ContainsAny(x.Figure, " .") {
		return x.ID + ": " + x.Figure
	}
	return x.ID + ": Figure " + x.Figure
}

// writeTable writes the claims of an experiment, and the reasons of gaps.
func writeTable(b *strings.Builder, rows []Row) {
	b.WriteString("| claim | paper | ours | ratio | class | verdict |\n|---|---|---|---|---|---|\n")
	for _, r := range rows {
		ratio := ""
		if r.Ratio != 0 {
			ratio = number(r.Ratio)
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s | %s | %s |\n", r.Claim, r.Stated, r.Ours, ratio, r.Class, r.Verdict)
	}
	said := map[string]bool{}
	for _, r := range rows {
		var lines []string // of a reason, what the others before have not said
		for _, s := range sentences(r.Reason) {
			if !said[s] {
				lines, said[s] = append(lines, s), true
			}
		}
		if len(lines) > 0 {
			fmt.Fprintf(b, "\n%s\n", wrap(strings.Join(lines, " ")))
		}
	}
}

// sentences splits a text.
func sentences(text string) (out []string) {
	first, words := 0, strings.Fields(text)
	for i, word := range words {
		if strings.HasSuffix(word, ".") || i == len(words)-1 {
			out = append(out, strings.Join(words[first:i+1], " "))
			first = i + 1
		}
	}
	return out
}

// wrap breaks a text into a line for each sentence, and lines of at most 100 characters.
func wrap(text string) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && (len(line)+1+len(word) > 100 || strings.HasSuffix(line, ".")) {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return strings.Join(append(lines, line), "\n")
}

const pageHead = `# The papers' figures, and ours

Each claim of a paper's evaluation that this module makes again: what the paper states, what the
runs below give, and the reason where they differ.
The runs are in virtual time, on the models of the papers' testbeds (` + "`rma/sim/netmodel`" + `), so they
are the same on every computer.
This page is the output of ` + "`rmalock papers --quick --markdown`" + `, six minutes on two cores;
` + "`make papers-quick`" + ` makes it again, fails where a row is red, and shows what differs.
A row is met if it lies within the tolerance of its class, has a gap if it does not and the reason
is known, and is red otherwise.

| class | for | met if |
|---|---|---|
| E | costs in operations | equal; averages within 5 % |
| R | ratios | within 25 %, or the band of the machine's weak constants meets the paper's figure |
| K | a collapse of the other side | at least half of the paper's factor |
| O | one side bound by software in the paper | at least the paper's factor |
| T | tails | factors within 2, percentages within 10 points |
| S | figures without numbers | the order, or the sign of the slope, is the paper's |
| A | aborts and availability | the fact that the paper states holds |
`
