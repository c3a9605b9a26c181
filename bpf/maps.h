/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/* Maps whose keys are numbers; user space may change the number of entries before loading. */
#pragma once

#define NUMBERED(kind, name, entries, value_type)                                                                      \
	struct {                                                                                                       \
		__uint(type, BPF_MAP_TYPE_##kind);                                                                     \
		__uint(max_entries, entries);                                                                          \
		__type(key, __u32);                                                                                    \
		__type(value, value_type);                                                                             \
	} name SEC(".maps")
