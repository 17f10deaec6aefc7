"""Signals between apps, sent after commit. Receivers compare state, so a lost signal costs one interval.

``collected``: a refresh of a cluster was stored. Arguments: ``cluster_id`` (int), ``kinds`` (frozenset of
``monitoring.models.CollectorKind`` values), ``seq`` (int, the number of the refresh).
``changed``: rows behind these live keys changed. Argument: ``keys`` (frozenset of str, see ``live.panels``).
"""

from django.dispatch import Signal

collected = Signal()
changed = Signal()
