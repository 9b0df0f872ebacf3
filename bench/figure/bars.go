package figure

import (
	"fmt"
	"html"
	"math"
)

// Bars is a panel of groups of bars.
type Bars struct {
	Title, Note string
	Y           Axis
	Groups      []string // under the axis
	Series      []Bar    // one bar of each in every group
	Refs        []Ref
}

// Bar is a bar in each group. A NaN is left out.
type Bar struct {
	Name   string // also chooses the colour
	Mean   []float64
	Lo, Hi []float64 // intervals; nil = none
	Paper  []float64 // hollow marks; nil = none
}

// Ref is a dashed line across all groups, such as a sum of links.
type Ref struct {
	Y     float64
	Label string
}

func (p *Bars) draw(c *canvas) float64 {
	names := make([]string, len(p.Series))
	paper := false
	for i, s := range p.Series {
		names[i] = s.Name
		paper = paper || s.Paper != nil
	}
	look := looks(names)
	top := c.head(p.Title, p.Note)
	top += c.legend(top, p.entries(c, look, paper)) + 22
	lo, hi := p.bounds()
	x := scale{from: left, to: right, max: 1}
	y := p.Y.fit(lo, hi, top+plotHeight, top, 5)
	c.axes(&x, &y, Axis{}, p.Y, false)
	c.hatches(look)
	slotWidth := (right - left) / float64(max(len(p.Groups), 1))
	bar := slotWidth * 0.8 / float64(max(len(p.Series), 1))
	tilt := p.tilt(slotWidth)
	for g, name := range p.Groups {
		at := left + slotWidth*float64(g)
		for i := range p.Series {
			c.bar(&y, &p.Series[i], g, at+slotWidth*0.1+bar*float64(i), bar, look[i])
		}
		mid := at + slotWidth/2
		if tilt > 0 {
			c.addf("<text class=\"s\" text-anchor=\"end\" transform=\"translate(%s %s) rotate(-%d)\">%s</text>", num(mid+4), num(y.from+13), tilt, html.EscapeString(name))
		} else {
			c.text(mid, y.from+16, "s", "middle", name)
		}
	}
	for _, r := range p.Refs {
		if at, ok := y.at(r.Y); ok {
			c.addf("<path class=\"r\" stroke-dasharray=\"5 4\" d=\"M%s %sH%s\"/>", num(left), num(at), num(right))
			c.text(right, at-4, "s", "end", r.Label)
		}
	}
	bottom := 26.0
	if tilt > 0 {
		longest := 0
		for _, g := range p.Groups {
			longest = max(longest, len(g))
		}
		bottom = 24 + letter*float64(longest)*math.Sin(radians(tilt))
	}
	return top + plotHeight + bottom
}

// tilt returns by how many degrees the names of groups are turned so that they
// neither meet nor begin left of the panel; 0 where they can lie flat.
func (p *Bars) tilt(width float64) int {
	flat := true
	for _, g := range p.Groups {
		flat = flat && letter*float64(len(g)) < width
	}
	if flat {
		return 0
	}
	degrees := 40
	for i, g := range p.Groups {
		end := left + width*(float64(i)+0.5)
		for degrees < 80 && letter*float64(len(g))*math.Cos(radians(degrees)) > end {
			degrees += 5
		}
	}
	return degrees
}

func radians(degrees int) float64 { return float64(degrees) * math.Pi / 180 }

func (p *Bars) bounds() (lo, hi float64) {
	lo, hi = 0, math.Inf(-1)
	if p.Y.Log {
		lo = math.Inf(1)
	}
	see := func(values []float64) {
		for _, v := range values {
			if !math.IsNaN(v) && !math.IsInf(v, 0) && !(p.Y.Log && v <= 0) {
				lo, hi = min(lo, v), max(hi, v)
			}
		}
	}
	for _, s := range p.Series {
		see(s.Mean)
		see(s.Lo)
		see(s.Hi)
		see(s.Paper)
	}
	for _, r := range p.Refs {
		see([]float64{r.Y})
	}
	if p.Y.Log {
		lo /= 2 // the least bar has a height
	}
	return lo, hi
}

func (c *canvas) bar(y *scale, s *Bar, g int, x, width float64, slot int) {
	to, ok := y.at(s.Mean[g])
	if !ok {
		return
	}
	base, ok := y.at(max(0, y.min))
	if !ok {
		base = y.from
	}
	c.addf("<rect %s x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\"/>", c.fill(slot), num(x), num(min(base, to)), num(max(width-1, 0.6)), num(math.Abs(base-to)))
	if s.Lo != nil && s.Hi != nil {
		c.whisker(x+width/2-0.5, y, s.Lo[g], s.Hi[g])
	}
	if s.Paper != nil {
		if at, ok := y.at(s.Paper[g]); ok {
			c.hollow(x+width/2-0.5, at)
		}
	}
}

func (c *canvas) hollow(x, y float64) {
	c.addf("<circle class=\"e\" cx=\"%s\" cy=\"%s\" r=\"4\"/>", num(x), num(y))
}

// fill returns the attributes of an area: looks beyond the first eight are
// hatched.
func (c *canvas) fill(slot int) string {
	if slot < len(colours) {
		return fmt.Sprintf(`class="f%d"`, slot)
	}
	return fmt.Sprintf(`fill="url(#h%d-%d)" class="%s"`, c.id, slot, colourClass(slot))
}

// hatches defines the patterns of the looks in use.
func (c *canvas) hatches(look []int) {
	for _, s := range look {
		if s < len(colours) {
			continue
		}
		turn := s / len(colours) * 45
		c.addf("<pattern id=\"h%d-%d\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(%d)\">"+
			"<rect class=\"f%d\" width=\"5\" height=\"5\" opacity=\".35\"/><rect class=\"f%d\" width=\"2.2\" height=\"5\"/></pattern>",
			c.id, s, turn, s%len(colours), s%len(colours))
	}
}

func (p *Bars) entries(c *canvas, look []int, paper bool) []entry {
	var items []entry
	for i, s := range p.Series {
		if len(p.Series) == 1 && s.Name == "" {
			continue
		}
		items = append(items, entry{s.Name, func(x, y float64) {
			c.addf("<rect %s x=\"%s\" y=\"%s\" width=\"18\" height=\"11\"/>", c.fill(look[i]), num(x), num(y-5.5))
		}})
	}
	if paper {
		items = append(items, entry{"paper", func(x, y float64) { c.hollow(x+10, y) }})
	}
	return items
}
