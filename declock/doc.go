// Package declock is DecLock.
package declock
