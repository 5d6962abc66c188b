"""`tricorn tune APP`: which worker class, how many workers and threads, by measurement.

`calibrate` measures one worker of each class, `model` predicts what several would serve within the machine's limits,
`trials` measures the best predictions beside today's configuration, and `verdict` says what to use and why.
"""
