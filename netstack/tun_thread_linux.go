package netstack

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// With IFF_NAPI a packet that is written to a TUN device waits in a queue of
// the device, as one from a network card does, and with the device's attribute
// "threaded" (Linux 5.12) a thread of the kernel takes it from there. Without,
// write(2) does all that the kernel has to do about it, waking its receiver
// included.

// threads is the directory of devices of a network namespace in sysfs, through
// which devices get threads.
type threads struct{ dir int }

// openThreads opens that of the calling thread's namespace. A sysfs that is
// mounted somewhere may be of another, where another device has the name: so
// this is a mount of its own, which no directory leads to. It takes
// CAP_SYS_ADMIN, and a kernel that has both the call and the attribute.
func openThreads() (*threads, error) {
	fs, err := unix.Fsopen("sysfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("fsopen: %w", err)
	}
	defer unix.Close(fs)
	if err := unix.FsconfigCreate(fs); err != nil {
		return nil, fmt.Errorf("fsconfig: %w", err)
	}
	root, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("fsmount: %w", err)
	}
	defer unix.Close(root)
	dir, err := unix.Openat(root, "class/net", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("class/net: %w", err)
	}
	t := &threads{dir: dir}
	if err := unix.Faccessat(dir, "lo/threaded", unix.W_OK, 0); err != nil {
		t.close()
		return nil, fmt.Errorf("lo/threaded: %w", err)
	}
	return t, nil
}

func (t *threads) close() { unix.Close(t.dir) }

// give lets a device have a thread.
func (t *threads) give(device string) error {
	fd, err := unix.Openat(t.dir, device+"/threaded", unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("%s/threaded: %w", device, err)
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte("1")); err != nil {
		return fmt.Errorf("%s/threaded: %w", device, err)
	}
	return nil
}
