// Package figure draws results as SVG that is readable on light and on dark
// pages, on wide and on narrow ones: panels of one fixed width, with colours
// that follow the reader's preference through CSS.
//
// A path, a scheduler or a congestion control has the same colour in every
// figure. The colours are told apart by people who do not see all of them (they
// are those of Okabe and Ito, darkened for white paper); where eight do not
// suffice, dashes and hatches go on. Values of a paper are hollow marks.
//
// The same panels give the same bytes.
package figure
