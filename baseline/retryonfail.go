package baseline

import (
	"github.com/rmalock/rmalock/internal/values"
	"github.com/rmalock/rmalock/lock"
	"github.com/rmalock/rmalock/rma"
)

// NewRetryOnFail opens a table of the locks that dslr calls Retry-on-Fail (sections 2.2.2 and
// 6.1), after an unpublished report of Y. Chung and E. Zamanian: "CAS for exclusive and FA for
// shared lock acquisition. Their protocol simply retries in all cases of lock conflicts". That
// is a [CASLock] with pauses as in appendix A.3 of dslr and a limit of tries. By the text a
// reader keeps its 1 in the word while it looks; by the code of dslr's authors it takes it
// back. Collective; all ranks pass the same arguments.
func NewRetryOnFail(c rma.Comm, cfg Config, readers Readers) (*CASLock, error) {
	return openCASLock(c, retryOnFail, cfg, readers)
}

const retryOnFail = "retry-on-fail"

func init() {
	lock.Register(lock.Info{
		Name:   retryOnFail,
		Title:  "Retry-on-Fail of DSLR's comparison, CAS and fetch-and-add on one word",
		Shared: true,
		Fair:   "none; readers starve writers",
		Params: []lock.Param{
			paramR, paramL, paramRetries,
			{Name: "READERS", Help: "keep their 1 in the word while they wait, the default; or undo"},
		},
		Open: func(c rma.Comm, n, home int) (lock.Table, error) {
			return NewRetryOnFail(c, Config{Locks: n, Home: home}, Keep)
		},
		OpenWith: func(c rma.Comm, s lock.Setting) (lock.Table, error) {
			readers := 0
			cfg, err := parse(retryOnFail, s, Full, func(_, value string) (err error) {
				readers, err = values.Choice(value, "keep", "undo")
				return err
			})
			if err != nil {
				return nil, err
			}
			return NewRetryOnFail(c, cfg, Readers(readers))
		},
	})
}
