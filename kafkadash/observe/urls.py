from django.urls import path

from kafkadash.observe import views

app_name = "observe"

urlpatterns = [
    path("clusters/", views.switcher, name="switcher"),
    path("clusters/<slug:slug>/", views.overview, name="overview"),
    path("clusters/<slug:slug>/reassignments/", views.reassignments, name="reassignments"),
    path("clusters/<slug:slug>/reassignments/<slug:public_id>/", views.reassignment, name="reassignment"),
]
