/* Notes every fsync and fdatasync of a process that succeeded: a line "PID CALL FILE" at the end of
 * the file that QUORBA_SYNCS names. Loaded in front of libc (LD_PRELOAD) by tests.
 *
 * A process that does not call libc for it is not noted, and its test fails. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void note(const char *call, int fd)
{
	const char *notes = getenv("QUORBA_SYNCS");
	char link[64], file[PATH_MAX], line[PATH_MAX + 64];
	ssize_t length;
	int out, bytes, before = errno;

	if (!notes)
		return;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, file, sizeof(file) - 1);
	file[length > 0 ? length : 0] = '\0';
	bytes = snprintf(line, sizeof(line), "%d %s %s\n", (int)getpid(), call, file);
	out = open(notes, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	/* One write, so that the lines of several processes do not run into each other. */
	if (out < 0 || write(out, line, bytes) != bytes)
		abort();
	close(out);
	errno = before;
}

static int noted(const char *call, int fd)
{
	int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, call);
	int result = real(fd);

	if (result == 0)
		note(call, fd);
	return result;
}

int fsync(int fd)
{
	return noted("fsync", fd);
}

int fdatasync(int fd)
{
	return noted("fdatasync", fd);
}
