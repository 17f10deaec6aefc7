from django.urls import path

from kafkadash.observe.views.reassignments import reassignment, reassignments

app_name = "observe"

urlpatterns = [
    path("clusters/<slug:slug>/reassignments/", reassignments, name="reassignments"),
    path("clusters/<slug:slug>/reassignments/<slug:public_id>/", reassignment, name="reassignment"),
]
