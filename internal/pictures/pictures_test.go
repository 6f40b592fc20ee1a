package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const pages = "../../docs/locks"

// TestPictures: each page of docs/locks shows its picture, and the picture is that of pictures.txt.
func TestPictures(t *testing.T) {
	all, err := parse(source)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(pages, "*.md"))
	if err != nil || len(files) != len(all)+1 { // and README.md
		t.Errorf("%d pages, %d pictures, error %v", len(files)-1, len(all), err)
	}
	for _, p := range all {
		drawn := p.svg()
		if kept, err := os.ReadFile(filepath.Join(pages, "pictures", p.name+".svg")); err != nil || !bytes.Equal(kept, drawn) {
			t.Errorf("the picture of %s is not that of pictures.txt: make pictures (%v)", p.name, err)
		}
		page, err := os.ReadFile(filepath.Join(pages, p.name+".md"))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(page), "](pictures/"+p.name+".svg)") {
			t.Errorf("%s.md does not show its picture", p.name)
		}
		for d := xml.NewDecoder(bytes.NewReader(drawn)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", p.name, err)
			}
		}
		if len(p.words) == 0 || len(p.lanes) < 2 || len(p.steps) < 5 {
			t.Errorf("%s has %d words, %d lanes and %d steps", p.name, len(p.words), len(p.lanes), len(p.steps))
		}
		for _, w := range p.words {
			if wide := margin + max(76, textWidth(w.name)+14) + textWidth(strings.Join(w.fields, "")) + 12*float64(len(w.fields)) + 8 + textWidth(w.about); wide > width {
				t.Errorf("%s: word %s is %.0f pixels wide, of %d", p.name, w.name, wide, width)
			}
		}
		for _, s := range p.steps {
			if textWidth(s.text)+2*margin+14 > width {
				t.Errorf("%s: too long: %s", p.name, s.text)
			}
		}
	}
}

func TestWrong(t *testing.T) {
	for _, text := range []string{"word a", "# a A\nword a | b", "# a A\nlanes x | y\n1>3 no", "# a A\nlanes x | y\n1>1 no", "# a A\nlanes x\nwhat is it"} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%q: error %v", text, err)
		}
	}
}
