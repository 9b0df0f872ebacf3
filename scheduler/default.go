package scheduler

// Default is the scheduler of a connection that names none.
const Default = "default"

func newDefault() Scheduler { return newMinRTT() }
