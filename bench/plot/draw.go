package plot

import (
	"bytes"
	"fmt"
	"html"
	"image/color"
	"math"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"
)

const (
	width  = 15 * vg.Centimeter
	height = 10 * vg.Centimeter
	margin = 3 * vg.Millimeter
	pngDPI = 150
)

// The colours of M. Okabe and K. Ito (Color Universal Design), which people with any
// colour vision tell apart; its yellow, too pale for a line, is left out.
var palette = []color.NRGBA{
	{0x00, 0x72, 0xB2, 0xFF}, // blue
	{0xD5, 0x5E, 0x00, 0xFF}, // vermilion
	{0x00, 0x9E, 0x73, 0xFF}, // green
	{0xCC, 0x79, 0xA7, 0xFF}, // purple
	{0xE6, 0x9F, 0x00, 0xFF}, // orange
	{0x56, 0xB4, 0xE9, 0xFF}, // sky blue
	{0x40, 0x40, 0x40, 0xFF},
}

// A lock has the same colour in all figures.
var hueOfLock = map[string]int{"dmcs": 0, "fompi-spin": 1, "rmamcs": 2, "fompi-rw": 1, "rmarw": 2, "atomic": 6}

// hueOf is the colour of a lock: its own, or for locks with parameters, and for other
// locks, that of its place among all of the figure.
func hueOf(lock string, all []string) int {
	if h, ok := hueOfLock[lock]; ok {
		return h
	}
	i := slices.Index(all, lock)
	if slices.ContainsFunc(all, func(l string) bool { _, ok := hueOfLock[l]; return ok }) {
		i += 3 // not those that the others have
	}
	return i % len(palette)
}

var (
	ink   = color.NRGBA{0x22, 0x22, 0x22, 0xFF}
	faint = color.NRGBA{0x66, 0x66, 0x66, 0xFF}
	grid  = color.NRGBA{0xE2, 0xE2, 0xE2, 0xFF}

	dashes = [][]vg.Length{nil, {vg.Points(5), vg.Points(2.5)}, {vg.Points(1.5), vg.Points(2)}, {vg.Points(7), vg.Points(2), vg.Points(1.5), vg.Points(2)}}
	glyphs = []draw.GlyphDrawer{draw.CircleGlyph{}, draw.PyramidGlyph{}, draw.BoxGlyph{}, draw.RingGlyph{}, draw.TriangleGlyph{}, draw.SquareGlyph{}, draw.CrossGlyph{}, draw.PlusGlyph{}}
)

// style is sans serif text of a size in points.
func style(size float64, bold bool, c color.Color) text.Style {
	f := font.Font{Typeface: "Liberation", Variant: "Sans", Size: vg.Points(size)}
	if bold {
		f.Weight = 3 // golang.org/x/image/font.WeightBold
	}
	return text.Style{Color: c, Font: f, Handler: text.Plain{Fonts: font.DefaultCache}}
}

// SVG draws the figure as an SVG document.
func (f *Figure) SVG() ([]byte, error) {
	c := vgsvg.New(width, height)
	if err := f.draw(draw.New(c)); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return nil, err
	}
	// Fonts of the same measures, for computers that have not this one.
	return bytes.ReplaceAll(b.Bytes(), []byte("font-family:Liberation Sans;"), []byte("font-family:Liberation Sans,Arial,Helvetica,sans-serif;")), nil
}

// PNG draws the figure as an image.
func (f *Figure) PNG() ([]byte, error) {
	c := vgimg.NewWith(vgimg.UseWH(width, height), vgimg.UseDPI(pngDPI))
	if err := f.draw(draw.New(c)); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	_, err := vgimg.PngCanvas{Canvas: c}.WriteTo(&b)
	return b.Bytes(), err
}

func (f *Figure) draw(c draw.Canvas) error {
	c.SetColor(color.White)
	c.Fill(c.Rectangle.Path())
	c = draw.Crop(c, margin, -margin, margin, -margin)
	c = f.heading(c)
	c = f.legend(c)
	c = f.labels(c)
	p := plot.New()
	p.BackgroundColor = color.Transparent
	axes(p)
	p.Add(lattice{})
	for i := range f.Series {
		if err := f.Series[i].band(p); err != nil {
			return err
		}
	}
	for i := range f.Series {
		if err := f.Series[i].line(p, i); err != nil {
			return err
		}
	}
	f.ranges(p)
	p.Draw(c)
	return nil
}

// heading writes the title, where the runs were made and the note, and returns what is
// left.
func (f *Figure) heading(c draw.Canvas) draw.Canvas {
	for _, part := range []struct {
		text  string
		style text.Style
	}{{f.Title, style(11.5, true, ink)}, {f.Where, style(8.5, false, faint)}, {f.Note, style(8, false, faint)}} {
		part.style.YAlign = draw.YTop
		for _, row := range wrap(part.text, part.style, c.Max.X-c.Min.X) {
			c.FillText(part.style, vg.Point{X: c.Min.X, Y: c.Max.Y}, row)
			c = draw.Crop(c, 0, 0, 0, -part.style.Font.Size*1.4)
		}
	}
	return c
}

// wrap breaks a text into rows that are not too wide, as far as its words are not.
func wrap(text string, s text.Style, wide vg.Length) []string {
	var rows []string
	for _, word := range strings.Fields(text) {
		if n := len(rows) - 1; n >= 0 && s.Width(rows[n]+" "+word) <= wide {
			rows[n] += " " + word
		} else {
			rows = append(rows, word)
		}
	}
	return rows
}

// legend writes the names of the lines, in as many rows as they take, and returns
// what is left.
func (f *Figure) legend(c draw.Canvas) draw.Canvas {
	s := style(9, false, ink)
	s.YAlign = draw.YCenter
	const sample, gap = 26, 14 // points
	rowHeight := s.Font.Size * 1.45
	x, y := c.Min.X, c.Max.Y-rowHeight/2-2
	for i := range f.Series {
		wide := vg.Points(sample) + s.Width(f.Series[i].Name)
		if x > c.Min.X && x+wide > c.Max.X {
			x, y = c.Min.X, y-rowHeight
		}
		l, g := f.Series[i].styles(i)
		c.StrokeLine2(l, x, y, x+vg.Points(sample-5), y)
		c.DrawGlyph(g, vg.Point{X: x + vg.Points(sample-5)/2, Y: y})
		c.FillText(s, vg.Point{X: x + vg.Points(sample), Y: y}, f.Series[i].Name)
		x += wide + vg.Points(gap)
	}
	return draw.Crop(c, 0, 0, 0, y-rowHeight/2-4-c.Max.Y)
}

// labels writes what the axes show, lying for both, and returns what is left. (Labels
// of the plot's own would be squeezed in by their place on a linear axis.)
func (f *Figure) labels(c draw.Canvas) draw.Canvas {
	s := style(9, false, faint)
	s.YAlign = draw.YTop
	y := f.Y.Label
	if f.Y.Log {
		y += ", logarithmic"
	}
	c.FillText(s, vg.Point{X: c.Min.X, Y: c.Max.Y}, y)
	s.XAlign, s.YAlign = draw.XRight, draw.YBottom
	c.FillText(s, vg.Point{X: c.Max.X, Y: c.Min.Y}, f.X.Label)
	high := s.Font.Size * 1.5
	return draw.Crop(c, 0, 0, high, -high)
}

func axes(p *plot.Plot) {
	for _, a := range []*plot.Axis{&p.X, &p.Y} {
		x, y := a.Tick.Label.XAlign, a.Tick.Label.YAlign
		a.Tick.Label = style(9, false, ink)
		a.Tick.Label.XAlign, a.Tick.Label.YAlign = x, y
		a.Tick.Length = vg.Points(4)
		a.Padding = vg.Points(2)
		a.Color, a.Tick.Color = faint, faint
	}
}

// ranges settles the ends of the axes and their ticks, once the data is known.
func (f *Figure) ranges(p *plot.Plot) {
	if len(f.X.Ticks) == 0 { // no points: an empty frame, which the note explains
		p.X.Min, p.X.Max, p.Y.Min, p.Y.Max = 1, 2, 1, 2
		f.X.Ticks, f.X.Log = []float64{1, 2}, true
	}
	first, last := f.X.Ticks[0], f.X.Ticks[len(f.X.Ticks)-1]
	if f.X.Log {
		p.X.Scale = plot.LogScale{}
		p.X.Min, p.X.Max = first/1.12, last*1.12
		p.X.Tick.Marker = plot.ConstantTicks(sparse(f.X.Ticks, math.Log))
	} else {
		margin := max(last-first, 1) / 40
		p.X.Min, p.X.Max = first-margin, last+margin
		p.X.Tick.Marker = plot.ConstantTicks(sparse(f.X.Ticks, func(v float64) float64 { return v }))
	}
	if f.Y.Log {
		p.Y.Scale = plot.LogScale{}
		p.Y.Min, p.Y.Max = p.Y.Min/1.15, p.Y.Max*1.15
		if p.Y.Max < 4*p.Y.Min {
			p.Y.Min, p.Y.Max = p.Y.Min/1.5, p.Y.Max*1.5
		}
		p.Y.Tick.Marker = plot.ConstantTicks(decades(p.Y.Min, p.Y.Max))
		return
	}
	p.Y.Min, p.Y.Max = 0, p.Y.Max*1.05
	if p.Y.Max == 0 {
		p.Y.Max = 1
	}
	p.Y.Tick.Marker = plot.ConstantTicks(steps(p.Y.Max))
}

// steps are the ticks of a linear axis from 0: four to ten of them, at multiples of 1,
// 2 or 5 times a power of ten.
func steps(high float64) []plot.Tick {
	step := math.Pow(10, math.Floor(math.Log10(high)))
	switch {
	case high < 2*step:
		step /= 5
	case high < 4*step:
		step /= 2
	}
	var out []plot.Tick
	for i := 0.0; i*step <= high; i++ {
		out = append(out, plot.Tick{Value: i * step, Label: strconv.FormatFloat(i*step, 'g', 3, 64)})
	}
	return out
}

// sparse labels values on an axis with a scale: the ends, and those between that are
// not too close to a label before or to the last.
func sparse(values []float64, scale func(float64) float64) []plot.Tick {
	end := len(values) - 1
	room := (scale(values[end]) - scale(values[0])) / 16
	var out []plot.Tick
	last := math.Inf(-1)
	for i, v := range values {
		t := plot.Tick{Value: v}
		at := scale(v)
		if i == end || at-last >= room && scale(values[end])-at >= room {
			t.Label, last = strconv.FormatFloat(v, 'g', 6, 64), at
		}
		out = append(out, t)
	}
	return out
}

// decades are the ticks of a logarithmic axis: labels at 1, 2 and 5 where there is
// room, otherwise at the powers of ten.
func decades(low, high float64) []plot.Tick {
	labelled := []float64{1, 2, 5}
	if high > 300*low {
		labelled = []float64{1}
	}
	var out []plot.Tick
	for e := math.Floor(math.Log10(low)); e <= math.Ceil(math.Log10(high)); e++ {
		for m := 1.0; m < 10; m++ {
			v := m * math.Pow(10, e)
			if v < low || v > high {
				continue
			}
			t := plot.Tick{Value: v}
			if slices.Contains(labelled, m) {
				t.Label = strconv.FormatFloat(v, 'g', 3, 64)
				if v >= 1 && v < 1e6 {
					t.Label = strconv.FormatFloat(v, 'f', 0, 64)
				}
			}
			out = append(out, t)
		}
	}
	return out
}

// lattice draws a line at each label of the y axis.
type lattice struct{}

// Plot implements plot.Plotter.
func (lattice) Plot(c draw.Canvas, p *plot.Plot) {
	_, trY := p.Transforms(&c)
	line := draw.LineStyle{Color: grid, Width: vg.Points(0.6)}
	for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		if y := trY(t.Value); t.Label != "" && c.ContainsY(y) {
			c.StrokeLine2(line, c.Min.X, y, c.Max.X, y)
		}
	}
}

// styles are those of the i-th line and its points.
func (s *Series) styles(i int) (draw.LineStyle, draw.GlyphStyle) {
	c := palette[s.Hue%len(palette)]
	return draw.LineStyle{Color: c, Width: vg.Points(1.6), Dashes: dashes[s.Dash%len(dashes)]},
		draw.GlyphStyle{Color: c, Radius: vg.Points(2.8), Shape: glyphs[i%len(glyphs)]}
}

// band draws from the least to the greatest: an area, or a stroke for one point.
func (s *Series) band(p *plot.Plot) error {
	if !slices.ContainsFunc(s.Points, func(q Point) bool { return q.Low < q.High }) {
		return nil
	}
	var edge plotter.XYs
	for _, q := range s.Points {
		edge = append(edge, plotter.XY{X: q.X, Y: q.High})
	}
	for _, q := range slices.Backward(s.Points) {
		edge = append(edge, plotter.XY{X: q.X, Y: q.Low})
	}
	fill := palette[s.Hue%len(palette)]
	if len(s.Points) == 1 {
		l, err := plotter.NewLine(edge)
		if err != nil {
			return fmt.Errorf("plot: %s: %w", s.Name, err)
		}
		fill.A = 0x60
		l.LineStyle = draw.LineStyle{Color: fill, Width: vg.Points(5)}
		p.Add(l)
		return nil
	}
	area, err := plotter.NewPolygon(edge)
	if err != nil {
		return fmt.Errorf("plot: %s: %w", s.Name, err)
	}
	fill.A = 0x2C
	area.Color = fill
	area.LineStyle.Width = 0
	p.Add(area)
	return nil
}

// line draws the i-th line with its points.
func (s *Series) line(p *plot.Plot, i int) error {
	if len(s.Points) == 0 {
		return nil
	}
	var xy plotter.XYs
	for _, q := range s.Points {
		xy = append(xy, plotter.XY{X: q.X, Y: q.Y})
	}
	l, dots, err := plotter.NewLinePoints(xy)
	if err != nil {
		return fmt.Errorf("plot: %s: %w", s.Name, err)
	}
	l.LineStyle, dots.GlyphStyle = s.styles(i)
	p.Add(l, dots)
	return nil
}

// inline is the SVG document as an element of a page: without what stands before it,
// and with its title for screen readers.
func inline(svg []byte, title string) string {
	_, rest, _ := strings.Cut(string(svg), "<svg")
	return `<svg role="img" aria-label="` + html.EscapeString(title) + `"` + rest
}
