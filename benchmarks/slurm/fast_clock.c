/* A clock that runs faster: LD_PRELOAD for all programs of a Slurm that a case is recorded on.
 *
 * BRIDGE_CLOCK="FACTOR REAL MONOTONIC": how often as fast, and at which instants (ns) of the two true clocks
 * it begins. Clocks, sleeps and timed waits are those of the fast clock. Time limits of input and output
 * (poll, select) stay true: a message takes as long as it takes.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL

static double factor = 1.0;
static long long origin[2]; /* of the clock of the day, and of the monotonic one */

__attribute__((constructor)) static void begin(void)
{
	const char *text = getenv("BRIDGE_CLOCK");

	if (!text || sscanf(text, "%lf %lld %lld", &factor, &origin[0], &origin[1]) != 3 || factor < 1.0)
		factor = 1.0;
}

static int is_of_the_day(clockid_t id)
{
	return id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE;
}

static int is_scaled(clockid_t id)
{
	return is_of_the_day(id) || id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_RAW ||
	       id == CLOCK_MONOTONIC_COARSE || id == CLOCK_BOOTTIME;
}

static long long ns_of(const struct timespec *one)
{
	return one->tv_sec * SECOND + one->tv_nsec;
}

static struct timespec spec_of(long long ns)
{
	struct timespec one;

	if (ns < 0)
		ns = 0;
	one.tv_sec = ns / SECOND;
	one.tv_nsec = ns % SECOND;
	return one;
}

/* Instants of the fast clock from those of the true one, and back. */
static long long fast(clockid_t id, long long ns)
{
	long long from = origin[!is_of_the_day(id)];

	return from + (long long)((double)(ns - from) * factor);
}

static struct timespec true_instant(clockid_t id, const struct timespec *when)
{
	long long from = origin[!is_of_the_day(id)];

	return spec_of(from + (long long)((double)(ns_of(when) - from) / factor));
}

int clock_gettime(clockid_t id, struct timespec *out)
{
	int rc = syscall(SYS_clock_gettime, id, out);

	if (!rc && is_scaled(id))
		*out = spec_of(fast(id, ns_of(out)));
	return rc;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone)
{
	struct timespec now;

	(void)zone;
	clock_gettime(CLOCK_REALTIME, &now);
	out->tv_sec = now.tv_sec;
	out->tv_usec = now.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *out)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (out)
		*out = now.tv_sec;
	return now.tv_sec;
}

int clock_nanosleep(clockid_t id, int flags, const struct timespec *want, struct timespec *left)
{
	static int (*next)(clockid_t, int, const struct timespec *, struct timespec *);
	struct timespec real = *want;
	int rc;

	if (!next)
		next = dlsym(RTLD_NEXT, "clock_nanosleep");
	if (!is_scaled(id))
		return next(id, flags, want, left);
	if (flags & TIMER_ABSTIME)
		real = true_instant(id, want);
	else
		real = spec_of((long long)((double)ns_of(want) / factor));
	rc = next(id, flags, &real, left);
	if (rc == EINTR && left && !(flags & TIMER_ABSTIME))
		*left = spec_of((long long)((double)ns_of(left) * factor));
	return rc;
}

int nanosleep(const struct timespec *want, struct timespec *left)
{
	int rc = clock_nanosleep(CLOCK_REALTIME, 0, want, left);

	if (!rc)
		return 0;
	errno = rc;
	return -1;
}

unsigned int sleep(unsigned int seconds)
{
	struct timespec want = {seconds, 0}, left = {0, 0};

	return nanosleep(&want, &left) ? left.tv_sec + (left.tv_nsec > 0) : 0;
}

int usleep(useconds_t microseconds)
{
	struct timespec want = spec_of(microseconds * 1000LL);

	return nanosleep(&want, NULL);
}

int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
			   const struct timespec *restrict when)
{
	static int (*next)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
	struct timespec real = true_instant(CLOCK_REALTIME, when);

	if (!next) /* without its version the oldest one is found, of another layout */
		next = dlvsym(RTLD_NEXT, "pthread_cond_timedwait", "GLIBC_2.3.2");
	if (!next)
		next = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
	return next(cond, mutex, &real);
}

int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict when)
{
	static int (*next)(sem_t *, const struct timespec *);
	struct timespec real = true_instant(CLOCK_REALTIME, when);

	if (!next)
		next = dlsym(RTLD_NEXT, "sem_timedwait");
	return next(semaphore, &real);
}
