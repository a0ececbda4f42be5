"""Trials with simulated trouble: damaged files, odd clouds, odd commands, interruptions.

    make fuzz                                                  five minutes of them, another seed each time
    python -m tests.fuzz --seed 7 --kind clouds --number 12    one of them again

Each kind has a function trial(rng, folder) that makes a case from its random numbers, checks what comes
of it and returns `answered` or `refused`. What else may happen is a fault: another
exception than InputError, a warning of NumPy, a process that ends, hours of thought, memory without end,
half a file.
"""
