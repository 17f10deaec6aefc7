from django.urls import path

from kafkadash.observe.views.overview import overview
from kafkadash.observe.views.reassignments import reassignment, reassignments
from kafkadash.observe.views.switcher import switcher

app_name = "observe"

urlpatterns = [
    path("clusters/", switcher, name="switcher"),
    path("clusters/<slug:slug>/", overview, name="overview"),
    path("clusters/<slug:slug>/reassignments/", reassignments, name="reassignments"),
    path("clusters/<slug:slug>/reassignments/<slug:public_id>/", reassignment, name="reassignment"),
]
