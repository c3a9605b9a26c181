# SPDX-License-Identifier: Apache-2.0
"""Transaction rate: the highest rate at which TCP connections are opened, used once, and closed.

docs/method/transaction-rate.md has the method. CSIT counts a connection when the SYN-ACK has arrived; the transaction
rate is a lower bound of a rate by that count. Each trial uses N four tuples once, so its table holds at most N entries,
and the bench refuses a smaller table. A device that is to sustain R transactions/s for longer needs a table of R times
the time for which it keeps a closed connection, `lingering_entries`.
"""

from __future__ import annotations

from dataclasses import dataclass

from natgauge.figure_text import at_most
from natgauge.inputs.input import chosen
from natgauge.metrics.catalogue import LINGERING_ENTRIES, TRANSACTION_RATE
from natgauge.notes import Note
from natgauge.procedures.kit.procedure import Procedure
from natgauge.procedures.kit.rate_search import SearchedRate, SearchSettings
from natgauge.procedures.kit.results import Measurement, with_handshakes
from natgauge.words import MOST_REQUEST_OCTETS, Close


@dataclass(frozen=True, kw_only=True)
class TransactionRateSettings(SearchSettings):
    """Settings of the transaction rate: the settings of a search, and what a transaction is."""

    limits_waits = True

    request_octets: int = chosen(
        0,
        "data in the request of each transaction, and in its response",
        "octets",
        (0, MOST_REQUEST_OCTETS),
        group="traffic",
    )
    close: Close = chosen("fin", "segment with which the Initiator closes a connection", group="traffic")

    def notes(self) -> list[Note]:
        """Return what a transaction is."""
        how = "FIN, FIN-ACK and ACK" if self.close == "fin" else "a reset"
        text = f"a transaction: handshake, request and response of {self.request_octets} octets each, {how}"
        return [*super().notes(), Note("method", text)]


class _TransactionRate(SearchedRate[TransactionRateSettings]):
    """The highest rate in transactions/s."""

    unit = TRANSACTION_RATE.unit

    def search_once(self, known: float | None) -> Measurement:
        repetition = with_handshakes(super().search_once(known))
        seconds = self.runner.measurer.lingering_seconds
        if seconds is None:
            return repetition
        entries = repetition.value * seconds
        needed = f"this rate for longer needs {at_most(entries)} entries"
        text = f"the device keeps a closed connection for {seconds} s: {needed}"
        return repetition.adding(Note("method", text), **{LINGERING_ENTRIES: entries})


PROCEDURE = Procedure(
    TRANSACTION_RATE, settings=TransactionRateSettings, start=_TransactionRate, profiles={"rfc": {"repeat": 10}}
)
