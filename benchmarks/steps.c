// SPDX-License-Identifier: Apache-2.0
/*
 * steps OBJECT PLAN RUNS: loads the programs of steps.bpf.c with a plan, runs each in turn, and prints its name and the
 * nanoseconds of one run.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "../bpf/shared.h"

enum { MOST_OCTETS = 128 };

static struct plan plan;

static int read_plan(const char *path)
{
	FILE *file = fopen(path, "rb");
	size_t octets = file ? fread(&plan, 1, sizeof(plan), file) : 0;

	if (file)
		fclose(file);
	return octets == sizeof(plan) ? 0 : -1;
}

/* The plan is the first of the read-only data, as natgauge-engine relies on, too. */
static int give_plan(struct bpf_object *object)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, ".rodata");
	size_t octets;
	void *data = map ? bpf_map__initial_value(map, &octets) : NULL;

	if (!data || octets < sizeof(plan))
		return -1;
	memcpy(data, &plan, sizeof(plan));
	return 0;
}

static int set_entries(struct bpf_object *object, const char *name, unsigned int entries)
{
	struct bpf_map *map = bpf_object__find_map_by_name(object, name);

	return map ? bpf_map__set_max_entries(map, entries) : -1;
}

static int make_piece(struct bpf_object *object)
{
	int octets = plan.side[RESPONDER].family == FAMILY_IPV4 ? ENTRY4_OCTETS : ENTRY6_OCTETS;
	int piece = bpf_map_create(BPF_MAP_TYPE_ARRAY, "piece", 4, octets, plan.pieces.by, NULL);

	if (piece >= 0 && bpf_map__set_inner_map_fd(bpf_object__find_map_by_name(object, "state_table"), piece))
		return -1;
	return piece;
}

static int begin(struct bpf_object *object, int piece)
{
	struct bpf_map *senders = bpf_object__find_map_by_name(object, "senders");
	struct bpf_map *table = bpf_object__find_map_by_name(object, "state_table");
	int cpus = libbpf_num_possible_cpus();
	struct sender *states = calloc(cpus, sizeof(*states));
	__u32 zero = 0;
	int error;

	for (int cpu = 0; states && cpu < cpus; cpu++) {
		states[cpu].senders = 1;
		for (int side = 0; side < SIDES; side++) {
			states[cpu].schedule[side].frames = ~0ULL;
			states[cpu].schedule[side].stream = side ? PHASE2_RESPONDER : PHASE2_INITIATOR;
		}
	}
	error = bpf_map_update_elem(bpf_map__fd(senders), &zero, states, BPF_ANY) ||
		bpf_map_update_elem(bpf_map__fd(table), &zero, &piece, BPF_ANY);
	free(states);
	return error;
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Each program gets the frame that the one before left, so those that parse get one that was written. */
static int run(const struct bpf_program *program, unsigned char *frame, unsigned int octets, int runs)
{
	LIBBPF_OPTS(bpf_test_run_opts, options, .data_in = frame, .data_size_in = octets, .data_out = frame,
		    .data_size_out = octets, .repeat = runs);
	double start = seconds();
	int error = bpf_prog_test_run_opts(bpf_program__fd(program), &options);

	if (error) {
		fprintf(stderr, "steps: %s: %s\n", bpf_program__name(program), strerror(-error));
		return 1;
	}
	printf("%s %.3f\n", bpf_program__name(program) + strlen("step_"), (seconds() - start) * 1e9 / runs);
	return 0;
}

int main(int count, char **arguments)
{
	unsigned char frame[MOST_OCTETS] = { 0 };
	struct bpf_object *object;
	struct bpf_program *program;
	int piece;

	if (count != 4 || atoi(arguments[3]) < 1 || read_plan(arguments[2])) {
		fprintf(stderr, "usage: steps OBJECT PLAN RUNS\n");
		return 2;
	}
	object = bpf_object__open_file(arguments[1], NULL);
	if (!object || give_plan(object) || set_entries(object, "windows", STREAMS) ||
	    set_entries(object, "recents", 1) || set_entries(object, "sender_stalls", 1))
		return 3;
	bpf_object__for_each_program (program, object)
		bpf_program__set_autoload(program, !strncmp(bpf_program__name(program), "step_", strlen("step_")));
	piece = make_piece(object);
	if (piece < 0 || bpf_object__load(object) || begin(object, piece))
		return 3;
	bpf_object__for_each_program (program, object)
		if (bpf_program__autoload(program) &&
		    run(program, frame, plan.messages[INITIATOR].form[INITIATOR].length.octets, atoi(arguments[3])))
			return 4;
	return 0;
}
