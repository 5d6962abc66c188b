"""The files of deploy/: are they what `tricorn init` prints, and do the programs that they are for accept them?"""
