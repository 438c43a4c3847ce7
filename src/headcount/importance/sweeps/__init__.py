"""Sweeps: one task evaluated with many sets of heads ablated, fast, journaled, tested.

>>> from headcount.records.heads import Head
>>> from headcount.importance.sweeps.interventions import Intervention
>>> Intervention([Head("enc", 0, 3)], "uniform").name
'enc.0.3 uniform'
"""
