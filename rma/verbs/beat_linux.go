package verbs

import (
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// endSilence makes the kernel end a connection whose other side's kernel has not acknowledged
// data for so long.
func endSilence(conn net.Conn, patience time.Duration) error {
	c, ok := conn.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(patience.Milliseconds()))
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("verbs: TCP_USER_TIMEOUT: %w", err)
	}
	return nil
}
