"""Build the compiled kernel; everything else is in pyproject.toml.

The extension is optional: without a C compiler the installation succeeds, and `merestone.geometry.kernel` takes the NumPy path.
"""

import sys

from setuptools import Extension, setup

FLAGS = [] if sys.platform == "win32" else ["-std=gnu11", "-O3", "-fno-math-errno", "-ffp-contract=off"]
ROOM = "src/merestone/geometry"

setup(
    ext_modules=[
        Extension(
            "merestone.geometry._kernel",
            sources=[f"{ROOM}/_kernel.c"],
            depends=[
                f"{ROOM}/_blake2b.h",
                f"{ROOM}/_blake2b_lanes.h",
                f"{ROOM}/_form.h",
                f"{ROOM}/_move.h",
                f"{ROOM}/_valid.h",
                f"{ROOM}/_wkb.h",
            ],
            define_macros=[("Py_LIMITED_API", "0x030B0000")],
            extra_compile_args=FLAGS,
            py_limited_api=True,
            optional=True,
        ),
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
