// Package timer is a table of deadlines: one instant for each kind of timer
// that a state machine knows. Nothing here fires. The owner asks for the
// earliest instant, tells its driver, and when it is called again takes the
// kinds whose instant has come; a call that comes early finds none and does
// no harm.
package timer
