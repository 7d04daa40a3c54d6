"""A pytest plugin that puts extensions built with sanitizers in the place of the usual ones: `make sanitize`.

MERESTONE_SANITIZED names the folder that `python setup.py build_ext --build-lib` filled.
"""

from __future__ import annotations

import os
import sys
from importlib.machinery import ExtensionFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

for room, name in (("columnar", "_hashing"), ("columnar", "_lookup"), ("geometry", "_kernel")):
    whole = f"merestone.{room}.{name}"
    (path,) = Path(os.environ["MERESTONE_SANITIZED"]).glob(f"merestone/{room}/{name}.*.so")
    loader = ExtensionFileLoader(whole, str(path))
    module = module_from_spec(spec_from_file_location(whole, path, loader=loader))
    loader.exec_module(module)
    sys.modules[whole] = module
