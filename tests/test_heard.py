"""Warnings of a library are heard by the thread that calls it, and those of other threads are left to them."""

from __future__ import annotations

import _thread
import threading
import warnings

import pytest

from merestone.heard import heard


def words(said):
    return [str(each.message) for each in said]


def test_what_is_warned_of_within_is_heard_and_not_raised():
    with heard() as said:
        warnings.warn("one", RuntimeWarning, stacklevel=1)
        with heard() as inner:
            warnings.warn("two", UserWarning, stacklevel=1)
        warnings.warn("one", RuntimeWarning, stacklevel=1)
    assert (words(said), words(inner)) == (["one", "one"], ["two"])
    with pytest.raises(UserWarning, match="three"):
        warnings.warn("three", UserWarning, stacklevel=1)


def test_what_another_thread_warns_of_meanwhile_goes_its_own_way():
    def warn():
        warnings.warn("theirs", UserWarning, stacklevel=1)

    with warnings.catch_warnings(record=True) as theirs:
        warnings.simplefilter("always")
        with heard() as said:
            other = threading.Thread(target=warn)
            other.start()
            other.join()
            warnings.warn("ours", UserWarning, stacklevel=1)
    assert (words(said), words(theirs)) == (["ours"], ["theirs"])


def test_a_thread_of_the_library_answers_the_call():
    done = threading.Event()

    def warn():
        warnings.warn("the library's", UserWarning, stacklevel=1)
        done.set()

    with heard() as said:
        _thread.start_new_thread(warn, ())  # as a thread that a library has started: Python's list of threads does not hold it
        assert done.wait(20)
    assert words(said) == ["the library's"]


def test_two_threads_hear_each_its_own():
    found, turn = {}, threading.Barrier(2)

    def call(name):
        turn.wait()
        for _ in range(50):
            with heard() as said:
                warnings.warn(name, UserWarning, stacklevel=1)
            found.setdefault(name, []).extend(words(said))

    threads = [threading.Thread(target=call, args=(name,)) for name in "ab"]
    before = warnings.showwarning
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == {name: [name] * 50 for name in "ab"}
    assert warnings.showwarning is before
