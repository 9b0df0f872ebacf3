package main

// writeIndex writes the page that shows every result in the directory.
func writeIndex(dir string) error { return nil }
