// SPDX-License-Identifier: Apache-2.0
/*
 * Preloaded into a DPDK program that offers no way to pass arguments to the EAL: replaces the program's list of lcores
 * ("-l",
 * "-c" or "--lcores" and its value) by the arguments in $EAL_ARGUMENTS, separated by spaces. All other arguments are
 * kept.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST 64

static int names_lcores(const char *argument)
{
	return !strcmp(argument, "-l") || !strcmp(argument, "-c") || !strcmp(argument, "--lcores");
}

int rte_eal_init(int argc, char **argv)
{
	int (*init)(int, char **) = dlsym(RTLD_NEXT, "rte_eal_init");
	const char *text = getenv("EAL_ARGUMENTS");
	char *arguments[MOST + 1];
	int count = 0;

	for (int i = 0; i < argc && count < MOST; i++) {
		if (text != NULL && names_lcores(argv[i]))
			i++;
		else
			arguments[count++] = argv[i];
	}
	/* The EAL keeps pointers to its arguments, so the copy is never freed. */
	if (text != NULL)
		for (char *one = strtok(strdup(text), " "); one != NULL && count < MOST; one = strtok(NULL, " "))
			arguments[count++] = one;
	if (count == MOST) {
		fprintf(stderr, "eal_arguments: more than %d arguments\n", MOST);
		return -1;
	}
	arguments[count] = NULL;
	return init(count, arguments);
}
