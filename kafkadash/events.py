"""The two signals between apps. Both are sent after commit; receivers compare state, so a lost one costs an interval.

``collected``: a refresh of a cluster was stored. Arguments: ``cluster_id`` (int), ``kinds`` (frozenset of
``observe.models.Kind`` values), ``seq`` (int, the refresh's number).
``changed``: rows behind these live keys changed. Argument: ``keys`` (frozenset of str, see ``live.panels``).
"""

from django.dispatch import Signal

collected = Signal()
changed = Signal()
