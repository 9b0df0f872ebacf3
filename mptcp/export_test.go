package mptcp

// For the table of errors, whose left column is not to be had from outside.
var (
	CloseError = closeError
	ConnError  = connError
	HostError  = hostError
)
