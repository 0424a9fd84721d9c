/* A host whose clock is wrong: shifts the wall clock of every program that preloads this by CLOCK_SKEW seconds.
   Clocks that only measure durations stay true, so time-outs keep their length. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long skew(void) {
  static long seconds;
  static int known;
  if (!known) {
    const char *text = getenv("CLOCK_SKEW");
    seconds = text ? atol(text) : 0;
    known = 1;
  }
  return seconds;
}

int clock_gettime(clockid_t clock, struct timespec *at) {
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int done = real(clock, at);
  if (!done && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) at->tv_sec += skew();
  return done;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
  struct timespec now;
  int done = clock_gettime(CLOCK_REALTIME, &now);
  (void)zone;
  at->tv_sec = now.tv_sec;
  at->tv_usec = now.tv_nsec / 1000;
  return done;
}

time_t time(time_t *out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}
