"""What this GDAL makes of dates and times in text formats.

Not here: what Merestone makes of either (the tests of each format).
"""

from __future__ import annotations

import pyogrio

# Before 3.12 GDAL leaves dates and times of GML, and times of Esri's JSON, as the text that stands in the file: nothing of it is cut or changed.
TIMES_ARE_TEXT = pyogrio.__gdal_version__ < (3, 12)
