"""Build the compiled extensions; everything else is in pyproject.toml.

They are optional: without a C compiler the installation succeeds, and `merestone.columnar.hashing` and `merestone.geometry.kernel` take the
NumPy path. With MERESTONE_REQUIRE_KERNEL=1 the build stops instead; wheels are built that way. With
MERESTONE_WITHOUT_KERNEL=1 they are not built at all.
"""

import os
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup

FLAGS = [] if sys.platform == "win32" else ["-std=gnu11", "-O3", "-fno-math-errno", "-ffp-contract=off"]
SOURCES = Path("src/merestone")
# A free-threaded interpreter has no stable ABI: one wheel for each of its versions, without the limited API.
STABLE = not sysconfig.get_config_var("Py_GIL_DISABLED")
HEADERS = [str(each) for room in ("columnar", "geometry") for each in sorted((SOURCES / room).glob("*.h"))]


def extension(room: str, name: str) -> Extension:
    """One C file of a room as an extension, on the stable ABI where there is one."""
    return Extension(
        f"merestone.{room}.{name}",
        sources=[str(SOURCES / room / f"{name}.c")],
        depends=HEADERS,
        define_macros=[("Py_LIMITED_API", "0x030B0000")] if STABLE else [],
        extra_compile_args=FLAGS,
        py_limited_api=STABLE,
        optional=os.environ.get("MERESTONE_REQUIRE_KERNEL") != "1",
    )


setup(
    ext_modules=[]
    if os.environ.get("MERESTONE_WITHOUT_KERNEL") == "1"
    else [extension("columnar", "_hashing"), extension("columnar", "_lookup"), extension("geometry", "_kernel")],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if STABLE else {},
)
