"""Runs a session's calls for `make bench-call`: prints the microseconds of one whenever it gets a line.

Arguments: the artifact, its input as .npy, and the number of calls that are measured together.
"""

import sys
import time

import numpy as np
import tilewright as tw

session = tw.load(sys.argv[1]).session()
image = np.load(sys.argv[2])
calls = int(sys.argv[3])
run = session.run
run(image)
for _ in sys.stdin:
    begun = time.perf_counter()
    for _ in range(calls):
        run(image)
    print((time.perf_counter() - begun) / calls * 1e6, flush=True)
