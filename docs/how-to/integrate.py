#!/usr/bin/env python3
"""integrate.py FROM TO FILE [N]: one part of the integral of 4 / (1 + x * x) over [0, 1], which is pi.

The interval is cut into N strips (default 20,000,000). The sum of the strips FROM to TO - 1 goes to FILE.
"""
import sys

first, last, n = int(sys.argv[1]), int(sys.argv[2]), int((sys.argv + ["20000000"])[4])
total = sum(4 / (1 + ((i + 0.5) / n) ** 2) for i in range(first, last)) / n
with open(sys.argv[3], "w") as part:
    print(total, file=part)
