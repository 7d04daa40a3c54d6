"""Reading CSV."""

from typing import Any

from . import Table

class ConvertOptions:
    def __init__(self, **options: Any) -> None: ...

class ReadOptions:
    def __init__(self, **options: Any) -> None: ...

class ParseOptions:
    def __init__(self, **options: Any) -> None: ...

def read_csv(input_file: Any, **options: Any) -> Table: ...
