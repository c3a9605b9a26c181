// SPDX-License-Identifier: Apache-2.0
/*
 * Runs each program of the object file named as first argument in the kernel's live-frames mode, as often as the second
 * argument says, and prints its name and the nanoseconds of wall time a frame took.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FRAME_OCTETS = 60, BATCH = 64 };

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int run(const struct bpf_program *program, unsigned int frames)
{
	unsigned char frame[FRAME_OCTETS] = { 0 };
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = sizeof(frame), .repeat = (int)frames,
		    .flags = BPF_F_TEST_XDP_LIVE_FRAMES, .batch_size = BATCH);
	double start = seconds();
	int error = bpf_prog_test_run_opts(bpf_program__fd(program), &options);

	if (error) {
		fprintf(stderr, "floor: %s: %s\n", bpf_program__name(program), strerror(-error));
		return 1;
	}
	printf("%s %.3f\n", bpf_program__name(program), (seconds() - start) * 1e9 / frames);
	return 0;
}

int main(int count, char **arguments)
{
	struct bpf_object *object;
	struct bpf_program *program;

	if (count != 3 || strtoul(arguments[2], NULL, 10) == 0) {
		fprintf(stderr, "usage: floor OBJECT FRAMES\n");
		return 2;
	}
	object = bpf_object__open_file(arguments[1], NULL);
	if (object == NULL || bpf_object__load(object) != 0)
		return 3;
	bpf_object__for_each_program (program, object)
		if (run(program, (unsigned int)strtoul(arguments[2], NULL, 10)))
			return 4;
	return 0;
}
