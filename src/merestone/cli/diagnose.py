"""The command `diagnose`.

Not here: the check behind it (`run.check`), the order of the walk (`report.diagnosis`).
"""

from __future__ import annotations

import click

from merestone.cli import edge, options
from merestone.contract.files import read_contract
from merestone.errors import EXIT_DONE, EXIT_REFUSED
from merestone.line import check as checking
from merestone.line.settings import CheckSettings
from merestone.render import diagnosis


@click.command()
@click.argument("delivery", metavar="DELIVERY")
@click.option("--contract", metavar="FILE", required=True, help="The contract to diagnose the delivery against.")
@click.option("--layer", metavar="NAME", help="The layer of the delivery.")
@options.as_json
def diagnose(delivery: str, contract: str, layer: str | None, as_json: bool) -> int:
    """Find the first fault of a delivery, surface by surface, and its remedy.

    The surfaces are walked in a fixed order: version pin, schema, CRS and axis order, precision, geometry, semantics, idempotency, service
    level. It stops at the first fault, since that may be the cause of what follows; `merestone check` lists everything at once.
    """
    publication = checking.of_contract(delivery, contract, layer)
    result, _ = checking.check(publication, CheckSettings(delivery, contract))
    steps = diagnosis.walk(result, str(read_contract(contract).contract_version))
    edge.answer(diagnosis.to_json(result, steps), diagnosis.text(result, steps), as_json=as_json)
    return EXIT_REFUSED if any(each.state == "fault" for each in steps) else EXIT_DONE
