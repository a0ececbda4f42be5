"""Names of arrays for pcreg.registration.gpu, as long as that is there."""

import numpy as np
from numpy.typing import NDArray

Floats, Rows = NDArray[np.float64], NDArray[np.int64]
