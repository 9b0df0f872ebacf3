package figure

import (
	"fmt"
	"math"
	"strings"
)

// XY is a panel of lines, stacked areas and points over one axis.
type XY struct {
	Title string
	Note  string // case, number of seeds, overhead bytes a packet: what one must know
	X, Y  Axis

	Stacks []Line   // areas, each on top of the one before; they share the X of the first
	Lines  []Line   // over the areas
	Points []Points // over the lines
	Shades []Shade  // spans of X, behind everything
	Height float64  // of the plot; 0 = 220
}

// Line is a line of an XY.
type Line struct {
	Name   string // also chooses the colour; "" = not in the legend
	X, Y   []float64
	Lo, Hi []float64 // interval of each point, drawn as whiskers; nil = none
	Step   bool      // Y holds from its X on until the next
	Marks  bool      // a dot at each point
	Ref    bool      // a reference rather than a result: grey and dashed
}

// Points are single marks of an XY.
type Points struct {
	Name   string
	Like   string // name of what it has the colour of; "" = its own
	X, Y   []float64
	Hollow bool    // a paper's value
	Radius float64 // 0 = 4
}

// Shade marks a span of X, such as an outage.
type Shade struct {
	From, To float64
	Label    string
}

// Distribution returns the line of a distribution function from its n+1
// evenly spaced quantiles.
func Distribution(name string, quantiles []float64) Line {
	l := Line{Name: name, X: quantiles}
	for i := range quantiles {
		l.Y = append(l.Y, float64(i)/float64(max(len(quantiles)-1, 1)))
	}
	return l
}

// names returns every name that has a look of its own.
func (p *XY) names() []string {
	var names []string
	add := func(name string) {
		for _, n := range names {
			if n == name {
				return
			}
		}
		names = append(names, name)
	}
	for _, l := range p.Stacks {
		add(l.Name)
	}
	for _, l := range p.Lines {
		if !l.Ref {
			add(l.Name)
		}
	}
	for _, q := range p.Points {
		if q.Like == "" {
			add(q.Name)
		}
	}
	return names
}

func (p *XY) draw(c *canvas) float64 {
	look := make(map[string]int)
	names := p.names()
	for i, s := range looks(names) {
		look[names[i]] = s
	}
	top := c.head(p.Title, p.Note)
	top += c.legend(top, p.entries(c, look)) + 22
	height := p.Height
	if height == 0 {
		height = plotHeight
	}
	stacked := p.sums()
	loX, hiX, loY, hiY := p.bounds(stacked)
	xAxis := p.X
	xAxis.tight = true
	x := xAxis.fit(loX, hiX, left, right, 6)
	y := p.Y.fit(loY, hiY, top+height, top, 5)
	for _, s := range p.Shades {
		if s.To < x.min || s.From > x.max {
			continue
		}
		from, _ := x.at(s.From)
		to, _ := x.at(s.To)
		c.addf("<rect class=\"sh\" x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\"/>", num(from), num(y.to), num(max(to-from, 1)), num(y.from-y.to))
		c.text((from+to)/2, y.to+12, "s", "middle", s.Label)
	}
	c.axes(&x, &y, p.X, p.Y, true)
	for i, l := range p.Stacks {
		var below []float64
		if i > 0 {
			below = stacked[i-1]
		}
		c.area(&x, &y, p.Stacks[0].X, below, stacked[i], look[l.Name], l.Step)
	}
	for _, l := range p.Lines {
		c.line(&x, &y, &l, look[l.Name])
	}
	for _, q := range p.Points {
		c.points(&x, &y, &q, look[q.colour()])
	}
	return top + height + 42
}

func (q *Points) colour() string {
	if q.Like != "" {
		return q.Like
	}
	return q.Name
}

// sums returns the upper edges of the stacked areas.
func (p *XY) sums() [][]float64 {
	var all [][]float64
	for i, l := range p.Stacks {
		sum := append([]float64(nil), l.Y...)
		if i > 0 {
			for j := range sum {
				sum[j] += all[i-1][j]
			}
		}
		all = append(all, sum)
	}
	return all
}

// bounds returns the least and greatest values to be shown.
func (p *XY) bounds(stacked [][]float64) (loX, hiX, loY, hiY float64) {
	loX, loY, hiX, hiY = math.Inf(1), math.Inf(1), math.Inf(-1), math.Inf(-1)
	see := func(lo, hi *float64, log bool, values []float64) {
		for _, v := range values {
			if !math.IsNaN(v) && !(log && v <= 0) {
				*lo, *hi = min(*lo, v), max(*hi, v)
			}
		}
	}
	// Where the axis names its bounds, what lies beyond does not count.
	hidden := func(x float64) bool {
		return (p.X.Min != 0 || p.X.Max != 0) && (x < p.X.Min || x > p.X.Max)
	}
	point := func(x, y []float64) {
		for i := range y {
			if x == nil || !hidden(x[i]) {
				see(&loY, &hiY, p.Y.Log, y[i:i+1])
			}
		}
		see(&loX, &hiX, p.X.Log, x)
	}
	for i, l := range p.Stacks {
		point(l.X, stacked[i])
	}
	for _, l := range p.Lines {
		point(l.X, l.Y)
		if len(l.Lo) > 0 && len(l.Hi) > 0 {
			point(l.X, l.Lo)
			point(l.X, l.Hi)
		}
	}
	for _, q := range p.Points {
		point(q.X, q.Y)
	}
	if len(p.Stacks) > 0 {
		loY = min(loY, 0)
	}
	// From zero, unless that would hide the differences.
	if !p.Y.Log && loY > 0 && loY < 0.6*hiY {
		loY = 0
	}
	return loX, hiX, loY, hiY
}

func (p *XY) entries(c *canvas, look map[string]int) []entry {
	var items []entry
	for _, l := range p.Stacks {
		items = append(items, entry{l.Name, func(x, y float64) {
			c.addf("<rect class=\"f%d\" x=\"%s\" y=\"%s\" width=\"18\" height=\"11\"/>", look[l.Name]%len(colours), num(x), num(y-5.5))
		}})
	}
	seen := make(map[string]bool)
	for _, l := range p.Lines {
		if l.Name == "" || seen[l.Name] {
			continue
		}
		seen[l.Name] = true
		items = append(items, entry{l.Name, func(x, y float64) {
			c.addf("<path %s d=\"M%s %sh20\"/>", l.pen(look[l.Name]), num(x), num(y))
		}})
	}
	for _, q := range p.Points {
		if q.Name == "" || seen[q.Name] {
			continue
		}
		seen[q.Name] = true
		items = append(items, entry{q.Name, func(x, y float64) { c.mark(x+10, y, &q, look[q.colour()]) }})
	}
	return items
}

// pen returns the attributes of a line's stroke.
func (l *Line) pen(slot int) string {
	if l.Ref {
		return `class="r" stroke-dasharray="5 4"`
	}
	if d := dash(slot); d != "" {
		return fmt.Sprintf(`class="l %s" stroke-dasharray="%s"`, colourClass(slot), d)
	}
	return fmt.Sprintf(`class="l %s"`, colourClass(slot))
}

// trace returns path data through points that have a place.
func trace(x, y *scale, xs, ys []float64, step bool) string {
	var b strings.Builder
	begun := false
	lastY := 0.0
	for i := range xs {
		px, okX := x.at(xs[i])
		py, okY := y.at(ys[i])
		switch {
		case !okX || !okY || !x.holds(xs[i]):
			begun = false
			continue
		case !begun:
			fmt.Fprintf(&b, "M%s %s", num(px), num(py))
		case step && py != lastY:
			fmt.Fprintf(&b, "H%sV%s", num(px), num(py))
		case step:
			fmt.Fprintf(&b, "H%s", num(px))
		default:
			fmt.Fprintf(&b, "L%s %s", num(px), num(py))
		}
		begun, lastY = true, py
	}
	return b.String()
}

func (c *canvas) line(x, y *scale, l *Line, slot int) {
	if d := trace(x, y, l.X, l.Y, l.Step); d != "" {
		c.addf("<path %s d=\"%s\"/>", l.pen(slot), d)
	}
	for i := range l.X {
		px, ok := x.at(l.X[i])
		if !ok || !x.holds(l.X[i]) {
			continue
		}
		if l.Lo != nil && l.Hi != nil {
			c.whisker(px, y, l.Lo[i], l.Hi[i])
		}
		if py, ok := y.at(l.Y[i]); ok && l.Marks {
			c.addf("<circle class=\"f%d\" cx=\"%s\" cy=\"%s\" r=\"3\"/>", slot%len(colours), num(px), num(py))
		}
	}
}

// whisker draws an interval; unknown ones are not drawn.
func (c *canvas) whisker(px float64, y *scale, lo, hi float64) {
	a, okA := y.at(lo)
	b, okB := y.at(hi)
	if okA && okB && a != b {
		c.addf("<path class=\"e\" d=\"M%s %sh6m-3 0V%sm-3 0h6\"/>", num(px-3), num(a), num(b))
	}
}

func (c *canvas) points(x, y *scale, q *Points, slot int) {
	for i := range q.X {
		px, okX := x.at(q.X[i])
		py, okY := y.at(q.Y[i])
		if okX && okY && x.holds(q.X[i]) {
			c.mark(px, py, q, slot)
		}
	}
}

func (c *canvas) mark(px, py float64, q *Points, slot int) {
	r := q.Radius
	if r == 0 {
		r = 4
	}
	if q.Hollow {
		c.addf("<circle class=\"l %s\" cx=\"%s\" cy=\"%s\" r=\"%s\"/>", colourClass(slot), num(px), num(py), num(r))
		return
	}
	c.addf("<circle class=\"f%d\" cx=\"%s\" cy=\"%s\" r=\"%s\"/>", slot%len(colours), num(px), num(py), num(r))
}

// area draws what lies between two edges; below nil is the axis.
func (c *canvas) area(x, y *scale, xs, below, above []float64, slot int, step bool) {
	d := trace(x, y, xs, above, step)
	if d == "" {
		return
	}
	if below == nil {
		below = make([]float64, len(xs))
	}
	back := trace(x, y, reversed(xs), reversed(below), false)
	if step {
		back = backSteps(x, y, xs, below)
	}
	c.addf("<path class=\"f%d\" opacity=\".75\" d=\"%s%sZ\"/>", slot%len(colours), d, "L"+strings.TrimPrefix(back, "M"))
}

// backSteps is trace of a step line from its end to its beginning.
func backSteps(x, y *scale, xs, ys []float64) string {
	var b strings.Builder
	for i := len(xs) - 1; i >= 0; i-- {
		px, _ := x.at(xs[i])
		py, _ := y.at(ys[i])
		if b.Len() == 0 {
			fmt.Fprintf(&b, "M%s %s", num(px), num(py))
			continue
		}
		fmt.Fprintf(&b, "V%sH%s", num(py), num(px))
	}
	return b.String()
}

func reversed(v []float64) []float64 {
	out := make([]float64, len(v))
	for i := range v {
		out[len(v)-1-i] = v[i]
	}
	return out
}
