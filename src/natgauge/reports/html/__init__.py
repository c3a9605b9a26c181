# SPDX-License-Identifier: Apache-2.0
"""One self-contained page: verdict, figures, tables, evidence; needs jinja2 and vl-convert (`natgauge[report]`)."""
