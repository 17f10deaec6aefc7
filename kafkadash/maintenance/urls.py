from django.urls import path

from kafkadash.maintenance import pages

app_name = "maintenance"

urlpatterns = [
    path("clusters/<slug:slug>/maintenance/", pages.maintenance, name="maintenance"),
    path("clusters/<slug:slug>/maintenance/window/", pages.plan_window, name="plan_window"),
    path("clusters/<slug:slug>/maintenance/silence/", pages.add_silence, name="add_silence"),
    path("clusters/<slug:slug>/maintenance/end/", pages.end, name="end"),
]
