package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"html"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The pages in the directory that LAB_PAGES names are opened in headless
// Chromium, wide and light, narrow and dark: no script may fail, nothing may
// reach beyond the page's width, and no text of a figure may be smaller than
// is legible or cut off. Screenshots are left in the directory. CI sets
// LAB_PAGES; then Chromium must be there.
func TestPagesInChromium(t *testing.T) {
	dir := os.Getenv("LAB_PAGES")
	if dir == "" {
		t.Log("LAB_PAGES is not set: no pages to look at")
		return
	}
	browser, err := exec.LookPath("chromium")
	require.NoError(t, err)
	pages, err := filepath.Glob(filepath.Join(dir, "*.html"))
	require.NoError(t, err)
	require.NotEmpty(t, pages, "no page in %s", dir)
	for _, page := range pages {
		name := strings.TrimSuffix(filepath.Base(page), ".html")
		for _, look := range []chromium{{width: 1280, scheme: "light"}, {width: 390, scheme: "dark"}} {
			t.Run(fmt.Sprintf("%s/%d/%s", name, look.width, look.scheme), func(t *testing.T) {
				look.t, look.program = t, browser
				look.audit(page)
				look.screenshot(page, filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", name, look.width, look.scheme)))
			})
		}
	}
}

// chromium is the browser with a window of some width.
type chromium struct {
	t       *testing.T
	program string
	width   int
	scheme  string
}

// run opens a page and returns what the browser printed. Messages of scripts
// go to standard error, and fail the test if they are errors.
func (c chromium) run(page string, args ...string) string {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Minute)
	defer cancel()
	scheme := "--blink-settings=preferredColorScheme=1"
	if c.scheme == "dark" {
		scheme = "--blink-settings=preferredColorScheme=0"
	}
	path, err := filepath.Abs(page)
	require.NoError(c.t, err)
	args = append([]string{
		"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--user-data-dir=" + c.t.TempDir(), "--hide-scrollbars",
		"--enable-logging=stderr", fmt.Sprintf("--window-size=%d,2400", c.width), scheme,
	}, append(args, "file://"+path)...)
	cmd := exec.CommandContext(ctx, c.program, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	require.NoError(c.t, cmd.Run(), "%s", errs.String())
	for line := range strings.Lines(errs.String()) {
		if strings.Contains(line, "CONSOLE") {
			c.t.Errorf("a script says: %s", line)
		}
	}
	return out.String()
}

// auditScript looks at the page when it has been drawn.
const auditScript = `<script>
window.addEventListener("load", () => {
  const bad = [], small = 9, page = document.documentElement;
  const seen = { width: innerWidth, dark: matchMedia("(prefers-color-scheme: dark)").matches, texts: 0, canvases: 0 };
  if (page.scrollWidth > innerWidth) bad.push("the page is " + page.scrollWidth + " wide");
  for (const svg of document.querySelectorAll("svg.panel")) {
    const frame = svg.getBoundingClientRect(), title = svg.querySelector("text")?.textContent;
    for (const text of svg.querySelectorAll("text")) {
      if (text.textContent === "") continue;
      seen.texts++;
      const size = parseFloat(getComputedStyle(text).fontSize) * frame.width / svg.viewBox.baseVal.width;
      const box = text.getBoundingClientRect();
      if (size < small) bad.push(title + ": '" + text.textContent + "' has " + size.toFixed(1) + " pixels");
      if (box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 1) bad.push(title + ": '" + text.textContent + "' is cut off");
    }
  }
  for (const canvas of document.querySelectorAll("canvas")) {
    seen.canvases++;
    const pixels = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
    if (new Set(pixels).size < 4) bad.push("a canvas is blank");
  }
  const out = document.createElement("pre");
  out.id = "audit";
  out.textContent = JSON.stringify({ ...seen, bad });
  parent.document.body.append(out);
});
</script>`

// audit opens the page, with the script, in a frame, and reads what it found.
func (c chromium) audit(page string) {
	c.t.Helper()
	b, err := os.ReadFile(page)
	require.NoError(c.t, err)
	at := bytes.LastIndex(b, []byte("</body>"))
	require.Positive(c.t, at)
	// A window cannot be as narrow as a frame in it.
	inner := string(b[:at]) + auditScript + string(b[at:])
	outer := fmt.Sprintf("<!DOCTYPE html><html><body><iframe width=%d height=2000 style=\"border:0\" srcdoc=\"%s\"></iframe></body></html>",
		c.width, html.EscapeString(inner))
	framed := filepath.Join(c.t.TempDir(), "page.html")
	require.NoError(c.t, os.WriteFile(framed, []byte(outer), 0o600))
	dom := c.run(framed, "--dump-dom")
	found := regexp.MustCompile(`(?s)<pre id="audit">(.*?)</pre></body></html>`).FindStringSubmatch(strings.TrimSpace(dom))
	require.NotNil(c.t, found, "the page was not drawn")
	var seen struct {
		Width           int
		Dark            bool
		Texts, Canvases int
		Bad             []string
	}
	require.NoError(c.t, json.Unmarshal([]byte(html.UnescapeString(found[1])), &seen))
	require.Equal(c.t, c.width, seen.Width)
	require.Equal(c.t, c.scheme == "dark", seen.Dark)
	require.Positive(c.t, seen.Texts+seen.Canvases, "nothing is drawn")
	require.Empty(c.t, seen.Bad)
}

// screenshot keeps a picture, which must not be of one colour.
func (c chromium) screenshot(page, file string) {
	c.t.Helper()
	c.run(page, "--screenshot="+file)
	f, err := os.Open(file)
	require.NoError(c.t, err)
	defer f.Close()
	img, err := png.Decode(f)
	require.NoError(c.t, err)
	require.Equal(c.t, c.width, img.Bounds().Dx())
	colours := make(map[[3]uint32]bool)
	for y := 0; y < img.Bounds().Dy(); y += 3 {
		for x := 0; x < c.width; x += 3 {
			r, g, b, _ := img.At(x, y).RGBA()
			colours[[3]uint32{r >> 12, g >> 12, b >> 12}] = true
		}
	}
	require.Greater(c.t, len(colours), 10, "colours in %s", file)
}
