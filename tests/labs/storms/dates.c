// SPDX-License-Identifier: Apache-2.0
// Moves the clock of dates of the programs that are started with it (LD_PRELOAD), as somebody who sets it would. The
// file that STORM_CLOCK names holds the offset, an int64_t of nanoseconds. Other clocks and all waiting stay as they
// are: libfaketime 0.9.10 moves the deadlines of clock_nanosleep(CLOCK_MONOTONIC), too, and time.sleep() of Python then
// fails.
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *offset;

__attribute__((constructor)) static void map_offset(void)
{
	const char *path = getenv("STORM_CLOCK");
	int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *mapped = file < 0 ? MAP_FAILED : mmap(NULL, sizeof(*offset), PROT_READ, MAP_SHARED, file, 0);

	if (file >= 0)
		close(file);
	if (mapped != MAP_FAILED)
		offset = mapped;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	long status = syscall(SYS_clock_gettime, clock, now);

	if (status == 0 && offset && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
		int64_t moved = (int64_t)now->tv_sec * 1000000000 + now->tv_nsec + *offset;

		now->tv_sec = moved / 1000000000;
		now->tv_nsec = moved % 1000000000;
	}
	return (int)status;
}

int gettimeofday(struct timeval *now, void *zone)
{
	struct timespec precise;

	(void)zone;
	if (clock_gettime(CLOCK_REALTIME, &precise))
		return -1;
	now->tv_sec = precise.tv_sec;
	now->tv_usec = precise.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *now)
{
	struct timespec precise;

	clock_gettime(CLOCK_REALTIME, &precise);
	if (now)
		*now = precise.tv_sec;
	return precise.tv_sec;
}
