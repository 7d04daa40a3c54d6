"""What a caller names: a dataset, a publication, a contract, each as a path or as the value itself.

Not here: what is done with them (the other modules of this room).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path as File

from merestone.contract.contract import Contract
from merestone.contract.files import read_contract as read_contract_file
from merestone.dataset.version import Dataset
from merestone.inspect import browse
from merestone.inspect.output import check_outputs
from merestone.line import environment
from merestone.publication.publication import Publication
from merestone.storage.open import open_store

Path = str | os.PathLike[str]
AnyDataset = Path | Dataset
"""A folder or URL that holds a dataset, a publication file (then its destination), or an opened dataset."""


def open_dataset(path: Path) -> Dataset:
    """Open a published dataset, to read from it.

    Its versions are read when they are asked for; each call sees what is current at that moment.

    Args:
        path: a folder or URL that holds a published dataset, or a publication file (then its destination).

    Raises:
        UsageError: there is nothing there, or the publication file is broken.

    Example:
        >>> dataset = merestone.open("parcels.yaml")
        >>> dataset.to_arrow(columns=["parcel_id"]).num_rows
        3
    """
    return browse.open_dataset(path)


def read_publication(path: Path) -> Publication:
    """Read a publication file.

    Raises:
        UsageError: the file is missing or broken, or is a contract or a delivery.

    Example:
        >>> merestone.read_publication("parcels.yaml").name
        'parcels'
    """
    return browse.publication_at(os.fspath(path))


def read_contract(path: Path) -> Contract:
    """Read a contract that can be published under.

    Raises:
        UsageError: the file is missing or broken, or the contract has errors.

    Example:
        >>> merestone.read_contract("parcels.contract.yaml").crs_epsg
        28992
    """
    return read_contract_file(os.fspath(path))


def current_version(dataset: AnyDataset) -> int | None:
    """The number of the version that readers see; None where nothing was published yet.

    Raises:
        UsageError: there is nothing there.
        CorruptError: the published state cannot be read.
    """
    return browse.current_version(whole(dataset).store)


def current_version_of(publication: Path) -> int | None:
    """The number of the version that readers see of what a publication file publishes; None where nothing was published yet.

    Raises:
        UsageError: the publication file is missing or broken.
        CorruptError: the published state cannot be read.
    """
    return browse.current_version(open_store(browse.destination_at(os.fspath(publication))))


def whole(dataset: AnyDataset) -> Dataset:
    """The dataset of a question about all of its versions.

    Raises:
        UsageError: there is nothing there, or a version is named.
    """
    return dataset if isinstance(dataset, Dataset) else browse.whole(os.fspath(dataset))


def any_version(dataset: AnyDataset) -> Dataset:
    """The dataset, whichever version is named. Raises UsageError where there is nothing."""
    return dataset if isinstance(dataset, Dataset) else browse.open_dataset(browse.parse_address(os.fspath(dataset)).where)


def text_of(dataset: AnyDataset) -> str:
    """A dataset as the rooms below take it: its path or URL."""
    return dataset.url if isinstance(dataset, Dataset) else os.fspath(dataset)


def as_typed(path: str) -> str:
    """A path below the work folder as a person would type it; any other as it is."""
    here = environment.work_folder()
    return str(File(path).relative_to(here)) if File(path).is_relative_to(here) else path


def keep_apart(outputs: Mapping[str, Path | None], inputs: Iterable[AnyDataset | None]) -> None:
    """Refuse to write over what a call reads, into a dataset, or to one file twice. To be called before anything is read.

    Args:
        outputs: the name of a parameter to the file to write; None where none is asked for.
        inputs: what the call reads.

    Raises:
        UsageError: one of the files may not be written.
    """
    check_outputs(
        {name: None if path is None else os.fspath(path) for name, path in outputs.items()},
        [None if each is None else text_of(each) for each in inputs],
    )
