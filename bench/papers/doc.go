// Package papers holds what the papers measured, beside the runs of this module that make the
// same figures: experiments, each of them flags of rmalock bench, and claims, each of them a
// number or an order that the paper states, the tolerance it is held to, and the reason where
// the run lies outside.
//
// There is a file for each paper, with its experiments. rmalock papers makes the runs;
// docs/papers.md is its output.
//
// # Classes of tolerance
//
//	E  exact      costs in operations: equal, averages within 5 %
//	R  ratio      within 25 % of what the paper states, or the band of weak constants meets it
//	K  collapse   at least half of the paper's factor
//	O  one-sided  at least the paper's factor
//	T  tail       factors within 2, percentages within 10 points
//	S  shape      an order, or the sign of a slope, holds
//	A  abort      a fact about aborts or availability holds
//
// No constant of a machine was chosen by a figure of these papers, but where an experiment says
// so.
package papers
