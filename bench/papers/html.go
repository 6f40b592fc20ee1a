package papers

import (
	_ "embed"
	"html/template"
	"io"
)

//go:embed papers.html
var htmlText string

var htmlPage = template.Must(template.New("papers").Funcs(template.FuncMap{"number": number, "title": func(x Experiment) string { return title(&x) }}).Parse(htmlText))

// WriteHTML writes rows as one page, with the pictures of each experiment beside its claims.
func WriteHTML(out io.Writer, list []Paper, rows []Row, pictures map[string][]template.HTML) error {
	type shown struct {
		Experiment
		Command  string
		Rows     []Row
		Pictures []template.HTML
	}
	type section struct {
		Paper
		Shown []shown
	}
	var sections []section
	for _, p := range list {
		s := section{Paper: p}
		for _, x := range p.Experiments {
			e := shown{Experiment: x, Pictures: pictures[x.ID]}
			for _, r := range rows {
				if r.ID == x.ID {
					e.Rows, e.Command = append(e.Rows, r), r.Command
				}
			}
			if len(e.Rows) > 0 {
				s.Shown = append(s.Shown, e)
			}
		}
		sections = append(sections, s)
	}
	return htmlPage.Execute(out, map[string]any{"Summary": Summary(rows), "Sections": sections})
}
