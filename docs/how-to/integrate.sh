#!/bin/sh
# integrate.sh FROM TO [N]: one part of the integral of 4 / (1 + x * x) over [0, 1], which is pi. The interval is
# cut into N strips (default 4,000,000); prints the sum of the strips FROM to TO - 1.
exec awk -v from="$1" -v to="$2" -v n="${3:-4000000}" 'BEGIN {
    for (i = from; i < to; i++) { x = (i + 0.5) / n; sum += 4 / (1 + x * x) }
    printf "%.12f\n", sum / n
}'
