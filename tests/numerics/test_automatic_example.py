"""examples/automatic.py: the compiler chooses the shardings of a train step, which then trains."""

import re
from pathlib import Path

import forked_commands
from samples import large

CHECKOUT = Path(__file__).parents[2]
EXAMPLE = CHECKOUT / "examples/automatic.py"
PAGE = CHECKOUT / "docs/concepts/auto.md"


@large
def test_a_person_sees_the_plan_and_the_loss_fall() -> None:
    run = forked_commands.run([EXAMPLE])
    assert "mesh          data=4, model=2" in run.stdout
    assert "argument 0 (params[0]['down'])" in run.stdout
    losses = [float(each) for each in re.findall(r"step \d: loss ([\d.]+)", run.stdout)]
    assert len(losses) == 5
    assert losses == sorted(losses, reverse=True)
    planned, by_hand = (
        [int(number.replace(",", "")) for number in re.findall(r"[\d,]+(?= bytes)", line)]
        for line in run.stdout.splitlines()
        if "receives" in line
    )
    assert planned[0] <= 1.05 * by_hand[0]  # the plan takes the least predicted time, not the fewest bytes
    assert planned[1] <= 1.25 * by_hand[1]
    assert "".join(run.stdout.splitlines(keepends=True)[-2:]) in PAGE.read_text()
