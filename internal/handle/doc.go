// Package handle copies and hashes the state of handles on locks and windows, by reflection.
// A search restores the copy to open a lock once for all its executions, and recognises
// states by the hash.
package handle
