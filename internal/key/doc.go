// Package key is the only place that hashes: MPTCP keys with the tokens and
// initial data sequence numbers derived from them, the HMACs that prove their
// possession, and the numbers that a stack must choose unpredictably. It
// draws nothing at random; keys and secrets come from the caller.
package key
