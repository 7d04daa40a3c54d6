"""Which changes a map draws: fair to classes, spread over places, and counted in full."""

import numpy as np
import pytest

from merestone.render.sampling import ACROSS, count_cells, sample


def places(count, seed=1):
    return np.random.default_rng(seed).uniform((0, 0), (100, 40), (count, 2))


def test_every_row_is_drawn_where_there_is_room():
    assert sample(np.zeros(5, np.int64), places(5), 5).tolist() == [0, 1, 2, 3, 4]


def test_small_classes_are_drawn_whole():
    kinds = np.array([0] * 2000 + [1] * 10 + [2] * 2000)
    drawn = kinds[sample(kinds, places(len(kinds)), 500)]
    assert np.bincount(drawn).tolist() == [245, 10, 245]


@pytest.mark.parametrize("order", ["by x", "by y", "as they come"])
def test_no_place_is_left_out_for_its_place_in_the_list(order):
    """The first 5,000 of 50,000 in the order of their keys were a stripe."""
    xy = places(50_000)
    xy = xy[{"by x": np.argsort(xy[:, 0]), "by y": np.argsort(xy[:, 1])}.get(order, slice(None))]
    drawn = xy[sample(np.zeros(len(xy), np.int64), xy, 5000)]
    assert len(drawn) == 5000
    counts, _, _ = np.histogram2d(*drawn.T, bins=(20, 8), range=((0, 100), (0, 40)))
    assert counts.min() > 0.5 * counts.mean()


def test_the_rows_of_one_cell_are_taken_from_all_of_its_list():
    """Rows of a cell come in the order of their keys, and what one night did to neighbours stands together."""
    drawn = sample(np.zeros(1000, np.int64), np.tile([[5.0, 52.0]], (1000, 1)), 10)
    assert np.diff(drawn).tolist() == [100] * 9


def test_a_crowded_cell_leaves_room_for_lonely_ones():
    xy = np.concatenate([np.tile([[50.0, 20.0]], (9000, 1)), places(100)])
    drawn = sample(np.zeros(len(xy), np.int64), xy, 200)
    assert (drawn >= 9000).sum() == 100


def test_cells_count_every_row_of_each_class_where_it_is():
    xy = places(3000)
    kinds = np.random.default_rng(2).integers(0, 4, 3000)
    xy[::7] = np.nan
    there = np.isfinite(xy).all(axis=1)
    cells = count_cells(kinds, xy, 4)
    table = np.array(cells.counts)
    assert table[:, 1:].sum(axis=0).tolist() == np.bincount(kinds[there], minlength=4).tolist()
    (number, *counts) = table[len(table) // 2]
    low = np.array([cells.x + number % ACROSS * cells.size, cells.y + number // ACROSS * cells.size])
    inside = there & (xy >= low).all(axis=1) & (xy < low + cells.size).all(axis=1)
    assert np.bincount(kinds[inside], minlength=4).tolist() == counts


def test_no_place_and_one_place():
    nowhere = np.full((3, 2), np.nan)
    assert count_cells(np.zeros(3, np.int64), nowhere, 4) is None
    assert len(sample(np.zeros(3, np.int64), nowhere, 2)) == 2
    one = count_cells(np.zeros(3, np.int64), np.tile([[5.0, 52.0]], (3, 1)), 4)
    assert list(one.counts) == [[0, 3, 0, 0, 0]]
    assert one.size > 0
