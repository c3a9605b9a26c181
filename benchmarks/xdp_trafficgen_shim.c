// SPDX-License-Identifier: Apache-2.0
/*
 * Lets Debian's xdp-trafficgen start on kernels that no longer have the xdp_redirect_map* tracepoints: libbpf is told
 * to leave out the two programs that count on them. The generator itself is untouched.
 */
#define _GNU_SOURCE
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

static int is_gone(const struct bpf_program *program)
{
	return strncmp(bpf_program__name(program), "tp_xdp_redirect_map", strlen("tp_xdp_redirect_map")) == 0;
}

static void leave_out(struct bpf_object *object)
{
	struct bpf_program *program;

	bpf_object__for_each_program (program, object)
		if (is_gone(program))
			bpf_program__set_autoload(program, false);
}

int bpf_object__load(struct bpf_object *object)
{
	int (*load)(struct bpf_object *) = dlsym(RTLD_NEXT, "bpf_object__load");

	leave_out(object);
	return load(object);
}

int bpf_object__load_skeleton(struct bpf_object_skeleton *skeleton)
{
	int (*load)(struct bpf_object_skeleton *) = dlsym(RTLD_NEXT, "bpf_object__load_skeleton");

	leave_out(*skeleton->obj);
	return load(skeleton);
}

struct bpf_link *bpf_program__attach(const struct bpf_program *program)
{
	struct bpf_link *(*attach)(const struct bpf_program *) = dlsym(RTLD_NEXT, "bpf_program__attach");

	if (is_gone(program)) {
		errno = 0; /* libbpf_get_error(NULL) is then 0: no error */
		return NULL;
	}
	return attach(program);
}

/* Newer kernels refuse test frames below an Ethernet header; the tool's own probe for live frames sends none at all. */
int bpf_prog_test_run_opts(int program, struct bpf_test_run_opts *options)
{
	int (*run)(int, struct bpf_test_run_opts *) = dlsym(RTLD_NEXT, "bpf_prog_test_run_opts");
	static const unsigned char shortest[14];

	if (options->data_size_in < sizeof(shortest)) {
		options->data_in = shortest;
		options->data_size_in = sizeof(shortest);
		if (options->ctx_in != NULL)
			((struct xdp_md *)options->ctx_in)->data_end = sizeof(shortest);
	}
	return run(program, options);
}
