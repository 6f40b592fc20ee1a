package rmamcs

// Now is T_L,i of a level as it is at this rank.
func (t *Table) Now(level int) int64 { return t.t.TL(level) }
