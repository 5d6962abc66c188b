"""Stalls of workers: kept, summed up, and logged with a cure.

    advice      the cure, by library, worker class and verdict
    log_line    the sentence for the log, made of the record
    keeper      records, sums since the start and by minute, and what is logged when

Nothing of this is loaded before the first stall.
"""
