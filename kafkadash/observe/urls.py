from django.urls import path

from kafkadash.observe.views.quorum import quorum, quorum_lag
from kafkadash.observe.views.reassignments import reassignment, reassignments

app_name = "observe"

urlpatterns = [
    path("clusters/<slug:slug>/quorum/", quorum, name="quorum"),
    path("clusters/<slug:slug>/quorum/lag/", quorum_lag, name="quorum_lag"),
    path("clusters/<slug:slug>/reassignments/", reassignments, name="reassignments"),
    path("clusters/<slug:slug>/reassignments/<slug:public_id>/", reassignment, name="reassignment"),
]
