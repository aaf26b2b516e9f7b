"""Tuning: a search over the declared parameters of a method, judged on held-back data alone.

``space``   what is searched: from declared parameters to dimensions
``study``   the search's memory: Optuna studies in a journal file that survives a crash and can be shared
``trials``  the search itself: trials as ordinary cells, given up early when they lag
``chosen``  what is published: the history of every study and the parameters it chose
"""
