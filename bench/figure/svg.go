package figure

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
)

// Width is that of every panel, in the units of its text, which has 13.
const Width = 440

// Places within a panel.
const (
	left, right = 52.0, Width - 12.0
	plotHeight  = 220.0
	lineHeight  = 17.0
)

// Panel is one drawing.
type Panel interface {
	// draw writes the panel at the origin and returns its height.
	draw(c *canvas) (height float64)
}

// Sheet returns panels as one SVG element that brings its style sheet, in rows
// of so many columns.
func Sheet(panels []Panel, columns int) string {
	columns = max(min(columns, len(panels)), 1)
	var body strings.Builder
	y, rowHeight := 0.0, 0.0
	for i, p := range panels {
		if i > 0 && i%columns == 0 {
			y, rowHeight = y+rowHeight, 0
		}
		c := &canvas{id: i}
		height := math.Ceil(p.draw(c))
		rowHeight = max(rowHeight, height)
		fmt.Fprintf(&body, "%s x=\"%d\" y=\"%s\" width=\"%d\" height=\"%s\" viewBox=\"0 0 %d %s\">\n%s%s",
			panelStart, i%columns*Width, num(y), Width, num(height), Width, num(height), c.b.String(), panelEnd)
	}
	width, height := columns*Width, num(y+rowHeight)
	var b strings.Builder
	fmt.Fprintf(&b, "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"fig\" viewBox=\"0 0 %d %s\" width=\"%d\" height=\"%s\">\n", width, height, width, height)
	b.WriteString("<style>\n" + Style() + "</style>\n")
	fmt.Fprintf(&b, "<rect class=\"bg\" width=\"%d\" height=\"%s\"/>\n", width, height)
	b.WriteString(body.String() + "</svg>\n")
	return b.String()
}

// What surrounds a panel in a sheet.
const (
	panelStart = "<svg class=\"fig panel\""
	panelEnd   = "</svg>\n"
)

// Split returns the panels of a sheet, each as an SVG element for a page that
// has the style sheet.
func Split(sheet string) []string {
	var panels []string
	for {
		_, rest, ok := strings.Cut(sheet, panelStart)
		if !ok {
			return panels
		}
		var panel string
		panel, sheet, _ = strings.Cut(rest, panelEnd)
		panels = append(panels, panelStart+panel+panelEnd)
	}
}

// canvas collects the elements of one panel.
type canvas struct {
	b  strings.Builder
	id int // of the panel in its sheet
}

func (c *canvas) addf(format string, args ...any) { fmt.Fprintf(&c.b, format+"\n", args...) }

// text writes s; anchor is start, middle or end.
func (c *canvas) text(x, y float64, class, anchor, s string) {
	c.addf("<text x=\"%s\" y=\"%s\" class=\"%s\" text-anchor=\"%s\">%s</text>", num(x), num(y), class, anchor, html.EscapeString(s))
}

// letter is about the width of a small letter of a wide font.
const letter = 7.2

// centred writes a small text around x, or beside it where the panel ends.
func (c *canvas) centred(x, y float64, s string) {
	half := letter * float64(len(s)) / 2
	c.text(min(max(x, half+2), Width-half-2), y, "s", "middle", s)
}

// head writes title and notes and returns the height they take. Lines break at
// the panel's width.
func (c *canvas) head(title, note string) float64 {
	y := 20.0
	for _, line := range wrap(title, 56) {
		c.text(10, y, "t", "start", line)
		y += 18
	}
	for _, line := range wrap(note, 66) {
		c.text(10, y, "s", "start", line)
		y += 15
	}
	return y - 4
}

// wrap breaks s into lines of about n characters.
func wrap(s string, n int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		if line != "" && len(line)+1+len(word) > n {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}

// entry is one item of a legend.
type entry struct {
	name string
	mark func(x, y float64) // draws a mark 20 wide, centred on y
}

// legend writes the items in as many rows as they need and returns the height
// they take.
func (c *canvas) legend(y float64, items []entry) float64 {
	if len(items) == 0 {
		return 0
	}
	x, row := 12.0, 0.0
	for _, it := range items {
		w := 30 + 7.2*float64(len(it.name))
		if x+w > Width && x > 12 {
			x, row = 12, row+lineHeight
		}
		it.mark(x, y+row+7)
		c.text(x+24, y+row+11.5, "", "start", it.name)
		x += w + 6
	}
	return row + lineHeight + 4
}

// axes draws frame, grid, ticks and labels.
func (c *canvas) axes(x, y *scale, xAxis, yAxis Axis, xTicks bool) {
	for _, v := range y.ticks {
		p, _ := y.at(v)
		c.addf("<path class=\"g\" d=\"M%s %sH%s\"/>", num(left), num(p), num(right))
		c.text(left-5, p+4.5, "s", "end", label(v))
	}
	if xTicks {
		for _, v := range x.ticks {
			p, _ := x.at(v)
			c.addf("<path class=\"g\" d=\"M%s %sV%s\"/>", num(p), num(y.from), num(y.to))
			c.centred(p, y.from+16, label(v))
		}
	}
	c.addf("<path class=\"a\" d=\"M%s %sV%sH%s\"/>", num(left), num(y.to), num(y.from), num(right))
	if xAxis.Label != "" {
		c.text((left+right)/2, y.from+33, "", "middle", xAxis.Label)
	}
	if yAxis.Label != "" {
		c.text(10, y.to-7, "", "start", yAxis.Label)
	}
}

// num writes a coordinate.
func num(v float64) string {
	s := strconv.FormatFloat(v, 'f', 1, 64)
	s = strings.TrimSuffix(s, ".0")
	if s == "-0" {
		return "0"
	}
	return s
}
