import argparse
import secrets
import sys

from tests.fuzz.trials import KINDS, Fault, once, run

parser = argparse.ArgumentParser("python -m tests.fuzz")
parser.add_argument("--seconds", type=float, default=300)
parser.add_argument("--seed", type=int, default=secrets.randbelow(1 << 31), help="(default: a new one)")
parser.add_argument("--kind", choices=KINDS, help="one trial of this kind, once more")
parser.add_argument("--number", type=int, default=0)
options = parser.parse_args()
if options.kind:
    print(once(options.seed, options.kind, options.number))
    sys.exit()
print(f"seed {options.seed}, {options.seconds:g} seconds", flush=True)
try:
    for kind, counts in run(options.seed, options.seconds).items():
        print(f"{kind}: {counts.total()} trials, {dict(counts)}")
except Fault as fault:
    sys.exit(str(fault))
