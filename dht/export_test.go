package dht

// Elements counts the heap elements of the caller's volume: given out since the
// start, in use, and on the stack of spares. Nobody else may use the table.
func (t *Table) Elements() (given, used, spares int64, err error) {
	v := t.w.Rank()
	get := func(disp int) int64 {
		word, gerr := t.w.GetFlush(v, disp)
		if gerr != nil {
			err = gerr
		}
		return word
	}
	for e, _ := unpack(get(spare)); e != none && err == nil; e = get(t.elementDisp(e) + elemPrev) {
		spares++
	}
	for s := range t.cfg.Slots + 1 {
		slot := t.slots + s*slotWords
		if base := get(slot + slotBase); base != absent && base&1 == 0 {
			used++
		}
		for e := get(slot + slotLast); e != none && err == nil; e = get(t.elementDisp(e) + elemPrev) {
			used++
		}
	}
	return get(free), used, spares, err
}
