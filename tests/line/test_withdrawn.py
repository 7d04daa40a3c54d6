"""A change that a roll-back withdrew does not come back by itself, also beside honest edits."""

import pytest
from shapely import Point

from estate import Estate, save
from merestone.dataset.log import status
from merestone.dataset.withdrawn import read_withdrawn
from merestone.errors import UsageError
from merestone.line.rollback import roll_back

FIELDS = [{"name": "pid", "type": "string", "nullable": False}, {"name": "owner", "type": "string"}]
SIZE = 200


def rows(gone=(), **owners):
    return [
        {"pid": f"p{n}", "owner": owners.get(f"p{n}", f"owner {n}"), "geometry": Point(10 + n / 1000.0, 56 + n % 7 / 1000)}
        for n in range(SIZE)
        if f"p{n}" not in gone
    ]


WRONG = {f"p{n}": "wrong" for n in range(30)}


@pytest.fixture
def product(tmp_path):
    made = Estate(tmp_path / "product", FIELDS, precision=4)
    made.nights = 0

    def deliver(*args, confirm=None, **owners):
        made.nights += 1
        return made.publish(save(rows(*args, **owners), tmp_path / f"{made.nights}.gpkg"), confirm=confirm).result

    made.deliver = deliver
    assert deliver().status == "published"
    return made


def stopped(result):
    return result.refused_by == "guard" and [each.rule for each in result.findings if each.surface == "guard"] in (
        ["withdrawn_change"],
        ["withdrawn_named"],
    )


def test_a_withdrawn_error_beside_an_honest_edit_stops(product):
    assert product.deliver(**WRONG).status == "published"
    roll_back(product.dataset, to=1, reason="owners are wrong")
    result = product.deliver(**WRONG, p150="honest")
    assert stopped(result)
    assert "30 of the 30 features" in result.findings[0].observed
    assert product.version == 3
    some = product.deliver(**dict(list(WRONG.items())[:16]), p150="honest")
    assert stopped(some), "16 of 30 are more than half"
    good = product.deliver(p150="honest", p0="wrong", p1="right at last")
    assert good.status == "published", "one of thirty is not the withdrawn change"
    assert product.manifest().withdrawn_page.rows == 1, "the others were delivered with other content; the one that came back stands"
    assert product.deliver(p150="honest", **WRONG).status == "published", "they were good in between: a new change"


def test_a_named_feature_stops_alone(product):
    assert product.deliver(**WRONG).status == "published"
    with pytest.raises(UsageError, match="p150: not part of the change"):
        roll_back(product.dataset, to=1, reason="wrong", wrong=["p150"])
    roll_back(product.dataset, to=1, reason="wrong", wrong=["p7"])
    others = {key: value for key, value in WRONG.items() if key != "p7"}
    assert stopped(product.deliver(p7="wrong", p150="honest"))
    assert "p7" in product.deliver(p7="wrong", p151="honest").findings[0].observed
    assert product.deliver(**others, p150="honest").status == "published", "the rest was not named"
    assert product.manifest().withdrawn_page is None


def test_a_withdrawn_removal_comes_back_when_the_keys_are_removed_again(product):
    gone = [f"p{n}" for n in range(30)]
    assert product.deliver(gone).status == "published"
    roll_back(product.dataset, to=1, reason="rows lost")
    assert stopped(product.deliver(gone, p150="honest"))
    assert product.deliver(gone[:10], p150="honest").status == "published"


def test_a_confirmation_lets_it_pass_and_ends_the_memory(product):
    assert product.deliver(**WRONG).status == "published"
    roll_back(product.dataset, to=1, reason="owners are wrong")
    result = product.deliver(**WRONG, p150="honest")
    assert stopped(result)
    product.nights -= 1
    assert product.deliver(**WRONG, p150="honest", confirm=result.confirm).status == "published"
    assert product.manifest().withdrawn_page is None


def test_a_roll_back_to_the_withdrawn_version_ends_the_memory(product):
    assert product.deliver(**WRONG).status == "published"
    roll_back(product.dataset, to=1, reason="owners are wrong")
    assert product.manifest().withdrawn_page.rows == 30
    roll_back(product.dataset, to=2, reason="they were right")
    assert product.table().column("owner").to_pylist().count("wrong") == 30
    page = product.manifest().withdrawn_page
    assert page.rows == 30, "now the way back is what was withdrawn"
    assert product.deliver(**WRONG, p150="honest").status == "published"


def test_the_limit_is_a_setting(product):
    product.settings["guard"] = {"max_withdrawn_fraction": 1.0}
    assert product.deliver(**WRONG).status == "published"
    roll_back(product.dataset, to=1, reason="owners are wrong")
    assert product.deliver(**WRONG, p150="honest").status == "published"


def test_conditions_name_the_wrong_features_of_the_change(product):
    """Spec of roll-backs: `--wrong KEYS|FILTER`."""
    assert product.deliver(p150="honest", **WRONG).status == "published"
    roll_back(product.dataset, to=1, reason="owners", wrong=["owner = 'wrong'"])
    memory = read_withdrawn(product.dataset.store, product.manifest())
    assert len(memory) == 30
    assert stopped(product.deliver(p150="honest", p7="wrong"))
    assert product.deliver(p150="honest").status == "published", "it does not meet them"


def test_conditions_are_held_against_the_last_row_of_a_removed_feature(product):
    assert product.deliver(["p1", "p2"], p3="wrong").status == "published"
    roll_back(product.dataset, to=1, reason="gone", wrong=["owner = 'owner 1'", "p3"])
    assert stopped(product.deliver(["p1", "p2"]))
    assert stopped(product.deliver(["p2"], p3="wrong"))
    assert product.deliver(["p2"]).status == "published"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ("owner = 'nobody'", "no feature of the change that is taken back meets owner = 'nobody'"),
        ("rank = 1", "(?<!meets )rank"),
        ("p150", "p150: not part of the change"),
        ("owner like 'w%'", "owner like 'w%': not part of the change"),
    ],
)
def test_what_is_neither_a_key_of_the_change_nor_conditions_that_it_meets_is_refused(wrong, words, product):
    assert product.deliver(**WRONG).status == "published"
    with pytest.raises(UsageError, match=words):
        roll_back(product.dataset, to=1, reason="wrong", wrong=[wrong])
    assert product.version == 2


def test_a_key_that_reads_like_conditions_is_a_key(tmp_path):
    made = Estate(tmp_path / "product", FIELDS, precision=4)
    made.settings["guard"] = {"max_changed_fraction": 1.0}
    key = "owner = 'b'"
    for n, owner in enumerate("ab"):
        made.publish(save([{"pid": each, "owner": owner, "geometry": Point(5, 52)} for each in (key, "q")], tmp_path / f"{n}.gpkg"))
    roll_back(made.dataset, to=1, reason="wrong", wrong=[key])
    assert len(read_withdrawn(made.dataset.store, made.manifest())) == 1


def test_a_delivery_that_a_roll_back_took_back_makes_nothing_fresh(product):
    """The promise is kept by what is published: by its own delivery, by one that was the same, before and after."""
    first = status(product.dataset).fresh_utc
    assert product.deliver(**WRONG).status == "published"
    taken = product.deliver(**WRONG)
    assert taken.status == "unchanged"
    assert status(product.dataset).fresh_utc > first
    roll_back(product.dataset, to=1, reason="owners are wrong")
    assert status(product.dataset).fresh_utc == first
    refused = product.deliver(**WRONG)
    assert stopped_for_good(refused)
    found = status(product.dataset)
    assert (found.fresh_utc, [each.run_id for each in found.since]) == (first, [refused.run_id])
    assert product.deliver().status == "unchanged"
    assert status(product.dataset).fresh_utc > first
    assert status(product.dataset).since == ()


def stopped_for_good(result):
    return result.refused_by == "guard" and "withdrawn" in {each.rule for each in result.findings}
