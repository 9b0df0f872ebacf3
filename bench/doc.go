// Package bench compares this module's stack with gVisor's own TCP in one run:
// the same links of netstack.NewPipe, the same sizes of buffers and of reads
// and writes, the same process. It has benchmarks only; README.md says how to
// run them and what they showed.
package bench
