# SPDX-License-Identifier: Apache-2.0
"""Inputs as options of the command line: help, default, and the words that give a value."""

from __future__ import annotations

from typing import Any

from natgauge.inputs.input import Input
from natgauge.inputs.types import Flag


def sentence(input_: Input) -> str:
    """The help with a capital letter."""
    return input_.help[:1].upper() + input_.help[1:]


def default_shown(input_: Input) -> str:
    """The default in words; empty where there is none."""
    if input_.default_text or input_.default is None or input_.default is False:
        return input_.default_text
    return "" if isinstance(input_.type, Flag) else input_.type.write(input_.default)


def words(input_: Input, value: Any) -> list[str]:
    """The words of a command line that give it this value; none for a flag that is off by default and stays off."""
    if isinstance(input_.type, Flag):
        if value:
            return [input_.option]
        return [option_off(input_)] if input_.default else []
    return [input_.option, input_.type.write(value)]


def option_off(input_: Input) -> str:
    """The option that turns a flag off."""
    return input_.option.replace("--", "--no-", 1)
